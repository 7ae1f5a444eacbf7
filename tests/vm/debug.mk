# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The module's tests on kernels that check themselves: all of them in User Mode
# Linux (tests/uml), those of the device once more on a kernel with two processors,
# emulated, which takes a quarter of an hour to build the first time. check-uml is
# the part that `make check` has: the daemon's tests.
#
#	make check-debug-uml [SUITES=device]

DEBUG_KERNEL = $(eval DEBUG_KERNEL := $$(shell tests/vm/build-kernel tests/vm/debug.config))$(DEBUG_KERNEL)

.PHONY: check-debug check-debug-uml check-debug-vm check-debug-programs \
	check-uml debug-modules

# How many times fewer of a thing its tests do than those of check-user, beside which
# they run at low priority; check-debug does all.
UML_SCALE ?= 4

check-uml: ## the daemon and its clients on the module's engine, in User Mode Linux that checks itself; LOOP=epoll
	@mkdir -p $(dir $(RESULTS))
	@$(MAKE) --no-print-directory check-debug-programs uml-module-debug || \
		{ echo '0 1 0 0 uml:build' >>$(RESULTS); exit 1; }
	@tests/vm/check $(RESULTS) uml 'lib socket' \
		tests/uml/run --kernel $(UML_DEBUG_KERNEL) --no-module \
		--memory 2048 --time 1800 --silence 1200 --append page_owner=on -- \
		tests/vm/debug-guest build/kmod/$$(cat $(UML_DEBUG_KERNEL)/release)/expiry.ko \
		env $(LOOP:%=EXPIRY_LOOP=%) EXPIRY_TEST_TIMEOUT=1100 \
		EXPIRY_TEST_SCALE=$(UML_SCALE) EXPIRY_TEST_OPERATIONS=200000

check-debug: check-debug-programs ## the module's tests under KASAN, UBSAN, lockdep, kmemleak (minutes)
	@$(call uml-make,$(UML_DEBUG_KERNEL)) debug-modules
	@$(call debug-make,$(DEBUG_KERNEL)) debug-modules
	@tests/vm/debug-check --uml $(UML_DEBUG_KERNEL) --x86 $(DEBUG_KERNEL) \
		--suites '$(SUITES)'

check-debug-uml: check-debug-programs
	@$(call uml-make,$(UML_DEBUG_KERNEL)) debug-modules
	@tests/vm/debug-check --uml $(UML_DEBUG_KERNEL) --suites '$(SUITES)'

check-debug-vm: check-debug-programs
	@$(call debug-make,$(DEBUG_KERNEL)) debug-modules
	@tests/vm/debug-check --x86 $(DEBUG_KERNEL)

check-debug-programs: $(filter-out module,$(VM_PROGRAMS))

# $(call debug-make,KERNEL): build modules for it
debug-make = test -n "$(1)" && $(MAKE) --no-print-directory \
	KDIR=$(1)/build KREL=$$(cat $(1)/release)

# With KDIR and KREL: the module, and beside it what must be found at fault, a
# module of faults and an expiry.ko that forgets its pages. UBSAN leaves out what
# does not ask for it.
DEBUG_FLAGS = W=1 UBSAN_SANITIZE=y
DEBUG_CANARY = $(MODULE_DIR)/canary

debug-modules:
	@$(MAKE) --no-print-directory module MODULE_FLAGS='$(DEBUG_FLAGS)'
	@$(MAKE) --no-print-directory module MODULE_DIR=$(DEBUG_CANARY) \
		MODULE_FLAGS='$(DEBUG_FLAGS) KCFLAGS=-DCONFIG_EXPIRY_CANARY'
	@mkdir -p $(DEBUG_CANARY)/faults
	@ln -sf $(CURDIR)/tests/vm/debug-canary.c $(DEBUG_CANARY)/faults
	@echo 'obj-m := debug-canary.o' >$(DEBUG_CANARY)/faults/Kbuild
	@$(MAKE) --no-print-directory -s -C $(KDIR) UBSAN_SANITIZE=y \
		M=$(CURDIR)/$(DEBUG_CANARY)/faults modules
	@cp $(DEBUG_CANARY)/faults/debug-canary.ko $(DEBUG_CANARY)
