# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Loss of power under real file systems, see tests/power/power. Needs root, loop devices
# and FUSE. SECONDS=12 of requests, CUTS=1000 of each file system.

SECONDS ?= 12
CUTS ?= 1000
POWER = tests/power/power --seconds $(SECONDS) --seed $(or $(SEED),1)

.PHONY: check-power
check-power: $(B)/expiryd ## cut the power under ext4 and XFS, CUTS=1000
	@tests/power/test-logged-disk.py
	@$(POWER) --kind ext4 --states $(CUTS)
	@$(POWER) --kind xfs --states $(CUTS)
	@$(POWER) --kind ext4 --states 50 --canary
