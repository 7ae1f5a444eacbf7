# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Models of the lock of queues and of the reclaim of their memory, searched by Spin
# (tests/README.md, "Models").

.PHONY: check-model
check-model: ## Spin: the lock of the module's queues, its readers, its memory and reclaim; OLD=1 must fail
	@tests/model/run || [ $$? -eq 4 ]
