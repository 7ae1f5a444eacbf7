# SPDX-License-Identifier: LGPL-2.1-or-later

.PHONY: bench-django
bench-django: $(B)/expiryd ## Django: what a timer costs a request, how late ends are; BENCH='sessions=10000 rate=100'
	@integrations/django/bench/bench-django $(BENCH)
