# SPDX-License-Identifier: LGPL-2.1-or-later

.PHONY: bench-django
bench-django: $(B)/expiryd ## Django: what a timer costs a request, how late ends are; BENCH='sessions=10000 rate=100'
	@integrations/django/bench/bench-django $(call quick,\
		sessions=5000 rate=100 seconds=10 ends=50 rounds=3 requests=300) $(BENCH)
