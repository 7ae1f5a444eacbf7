# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Durable queues on two machines, see tests/failover/failover and
# docs/two-machines.md. Needs root, loop devices and FUSE. TURNS=20 of them.

TURNS ?= 20

DRBD_KERNEL = $(shell tests/vm/build-kernel --arch um tests/uml/machine.config \
	tests/failover/drbd.config)
IN_DRBD = tests/uml/run --name drbd --kernel $$kernel --no-module --memory 3072 \
	--time 1800 --silence 300 --

.PHONY: check-failover check-failover-drbd
check-failover: $(B)/expiryd ## move durable queues to another machine, TURNS=20
	@tests/failover/test-configuration.sh
	@tests/failover/failover --turns $(TURNS) --seed $(or $(SEED),1)
	@tests/failover/failover --turns 2 --canary

check-failover-drbd: $(B)/expiryd ## the same with DRBD, in User Mode Linux
	@kernel=$(DRBD_KERNEL); \
	$(IN_DRBD) tests/failover/failover --drbd --turns $(TURNS) --seed $(or $(SEED),1) && \
	$(IN_DRBD) tests/failover/failover --drbd --turns 2 --canary
