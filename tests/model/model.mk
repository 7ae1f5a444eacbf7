# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The model of a queue's lock, searched by Spin (tests/README.md, "Models").

.PHONY: check-model
check-model: ## Spin: the lock of the module's queues, its readers and its memory; OLD=1 must fail
	@tests/model/run || [ $$? -eq 4 ]
