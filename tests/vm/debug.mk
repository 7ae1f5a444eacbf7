# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The tests of check-vm on a kernel that checks itself, made by
# tests/vm/build-kernel. Not part of `make check`: the first time it takes ten
# minutes to build that kernel.

DEBUG_KERNEL = $(eval DEBUG_KERNEL := $$(shell tests/vm/build-kernel tests/vm/debug.config))$(DEBUG_KERNEL)
DEBUG_RELEASE = $(shell cat $(DEBUG_KERNEL)/release)
DEBUG_MAKE = $(MAKE) --no-print-directory KDIR=$(DEBUG_KERNEL)/build \
	KREL=$(DEBUG_RELEASE)
DEBUG_CANARY = $(B)/vm/debug-canary
DEBUG_RESULTS = $(B)/check/debug-results

.PHONY: check-debug debug-canary

check-debug: $(filter-out module,$(VM_PROGRAMS)) ## check-vm under KASAN, UBSAN, lockdep, kmemleak (minutes)
	@test -n "$(DEBUG_KERNEL)"
	@$(DEBUG_MAKE) module debug-canary
	@mkdir -p $(dir $(DEBUG_RESULTS))
	@rm -f $(DEBUG_RESULTS)
	@status=0; tests/vm/debug-check $(DEBUG_RESULTS) $(DEBUG_KERNEL) \
		build/kmod/$(DEBUG_RELEASE)/expiry.ko \
		$(DEBUG_CANARY)/debug-canary.ko || status=1; \
		tests/run --summary $(DEBUG_RESULTS) && exit $$status

debug-canary:
	@mkdir -p $(DEBUG_CANARY)
	@ln -sf $(CURDIR)/tests/vm/debug-canary.c $(DEBUG_CANARY)
	@echo 'obj-m := debug-canary.o' >$(DEBUG_CANARY)/Kbuild
	@$(MAKE) --no-print-directory -s -C $(KDIR) M=$(CURDIR)/$(DEBUG_CANARY) modules
