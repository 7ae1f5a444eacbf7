# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Durable queues on two machines, see tests/failover/failover and
# docs/two-machines.md. Needs root, loop devices and FUSE. TURNS=20 of them.

TURNS ?= 20

.PHONY: check-failover
check-failover: $(B)/expiryd ## move durable queues to another machine, TURNS=20
	@tests/failover/test-configuration.sh
	@tests/failover/failover --turns $(TURNS) --seed $(or $(SEED),1)
	@tests/failover/failover --turns 2 --canary
