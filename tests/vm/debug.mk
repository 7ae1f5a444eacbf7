# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The tests of check-vm on kernels that check themselves: all of them in User
# Mode Linux (tests/uml), those of the device once more on a kernel with two
# processors, emulated. Not part of `make check`: the first time it takes a
# quarter of an hour to build those kernels.

DEBUG_KERNEL = $(eval DEBUG_KERNEL := $$(shell tests/vm/build-kernel tests/vm/debug.config))$(DEBUG_KERNEL)

.PHONY: check-debug check-debug-uml check-debug-vm check-debug-programs \
	debug-modules

check-debug: check-debug-programs ## check-vm under KASAN, UBSAN, lockdep, kmemleak (minutes)
	@$(call uml-make,$(UML_DEBUG_KERNEL)) debug-modules
	@$(call debug-make,$(DEBUG_KERNEL)) debug-modules
	@tests/vm/debug-check --uml $(UML_DEBUG_KERNEL) --x86 $(DEBUG_KERNEL)

check-debug-uml: check-debug-programs
	@$(call uml-make,$(UML_DEBUG_KERNEL)) debug-modules
	@tests/vm/debug-check --uml $(UML_DEBUG_KERNEL)

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
