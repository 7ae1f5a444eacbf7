# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The module's tests on three of Debian's kernels:
#
#	make check-kernels [KERNELS='6.1 7.2'] [SUITES=device]
#
# Not part of `make check`: it fetches half a gigabyte the first time, and boots
# three times.
#
# check-arm64: the device's tests on a kernel of another architecture, with pages of
# 16 KiB.

KERNELS ?= 6.1 6.12 7.2
SUITES ?= device lib socket

.PHONY: check-kernels check-arm64

check-kernels: $(filter-out module,$(VM_PROGRAMS)) ## the module's tests on Debian's 6.1, 6.12 and 7.2, with a table (minutes)
	@tests/vm/check-kernels --kernels '$(KERNELS)' --suites '$(SUITES)'

check-arm64: ## the device's tests on Debian's kernel of arm64 with pages of 16 KiB, emulated (10 minutes)
	@tests/vm/check-kernels --kernels arm64
