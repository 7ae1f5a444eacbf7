# SPDX-License-Identifier: LGPL-2.1-or-later
#
# User Mode Linux: the module at the speed of the machine, on one processor,
# where there is no KVM. Two kernels, each made the first time it is asked for:
# UML_DEBUG_KERNEL has every checker, UML_FAST_KERNEL none.
#
#	make uml-module-fast
#	tests/uml/run --kernel $(make -s uml-kernel-fast) -- COMMAND

uml-kernel = $(shell tests/vm/build-kernel --arch um tests/uml/machine.config tests/uml/$(1).config)
UML_DEBUG_KERNEL = $(eval UML_DEBUG_KERNEL := $$(call uml-kernel,debug))$(UML_DEBUG_KERNEL)
UML_FAST_KERNEL = $(eval UML_FAST_KERNEL := $$(call uml-kernel,fast))$(UML_FAST_KERNEL)

# $(call uml-make,KERNEL): build modules for it
uml-make = test -n "$(1)" && $(MAKE) --no-print-directory ARCH=um \
	KDIR=$(1)/build KREL=$$(cat $(1)/release)

.PHONY: uml-kernel-debug uml-kernel-fast uml-module-debug uml-module-fast \
	check-uml-harness

uml-kernel-debug:
	@test -n "$(UML_DEBUG_KERNEL)" && echo $(UML_DEBUG_KERNEL)

uml-kernel-fast:
	@test -n "$(UML_FAST_KERNEL)" && echo $(UML_FAST_KERNEL)

# UBSAN leaves out what does not ask for it.
uml-module-debug:
	@$(call uml-make,$(UML_DEBUG_KERNEL)) module \
		MODULE_FLAGS='W=1 UBSAN_SANITIZE=y'

uml-module-fast:
	@$(call uml-make,$(UML_FAST_KERNEL)) module

check-uml-harness: ## what goes wrong in User Mode Linux is noticed (a minute)
	@$(RUN_TESTS) --timeout 300 tests/uml/selftest
