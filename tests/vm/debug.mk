# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The module's tests on kernels that check themselves: all of them in User Mode
# Linux (tests/uml), those of the device once more on a kernel with two processors,
# emulated, which takes a quarter of an hour to build the first time.
# check-uml is the part that `make check` has: the daemon's tests.
#
#	make check-debug-uml [SUITES=device] [KERNELS='6.12 7.2']
#	make check-debug-vm [CHECKERS=kcsan] [PROGRAMS='test-uring test-killed']
#
# KERNELS: of Debian's sources for these (tests/vm/build-kernel); else of those of
# the kernel that the module is built for.
# CHECKERS: of the kernels with two processors, one or more. debug: KASAN, UBSAN and
# failing allocations. kcsan: data races. rt: PREEMPT_RT, which takes KERNELS from 6.12 on.
# PROGRAMS: of the device's tests those alone.

CHECKERS ?= debug
PROGRAMS ?=
VM_CONFIGS = tests/vm/machine.config tests/vm/checkers.config

.PHONY: check-debug check-debug-uml check-debug-vm check-debug-programs \
	check-uml debug-modules

# kernels.mk has a default for KERNELS, which is not meant here.
DEBUG_SERIES = $(if $(findstring command,$(origin KERNELS))$(findstring \
	environment,$(origin KERNELS)),$(KERNELS),own)

# How many times fewer of a thing its tests do than those of check-user, beside which
# they run at low priority; check-debug does all.
UML_SCALE ?= 4

# A machine has one processor: two run side by side, with half of the programs each.
UML_PARTS := 1 2
UML_PART = tests/vm/check $(RESULTS) uml-$$part daemon \
	tests/uml/run --name uml-$$part --kernel $(UML_DEBUG_KERNEL) --no-module \
	--memory 2048 --time 1800 --silence 1200 --append page_owner=on -- \
	tests/vm/debug-guest build/kmod/$$(cat $(UML_DEBUG_KERNEL)/release)/expiry.ko \
	env $(LOOP:%=EXPIRY_LOOP=%) EXPIRY_TEST_PART=$$part/$(words $(UML_PARTS)) \
	EXPIRY_TEST_TIMEOUT=1100 EXPIRY_TEST_SCALE=$(UML_SCALE) \
	EXPIRY_TEST_OPERATIONS=200000

check-uml: ## the daemon and its clients on the module's engine, in User Mode Linux that checks itself; LOOP=epoll
	@mkdir -p $(dir $(RESULTS))
	@$(MAKE) --no-print-directory check-debug-programs uml-module-debug || \
		{ echo '0 1 0 0 uml:build' >>$(RESULTS); exit 1; }
	@status=0; \
	for part in $(UML_PARTS); do $(UML_PART) & parts="$$parts $$!"; done; \
	for part in $$parts; do wait $$part || status=1; done; \
	exit $$status

# $(call debug-kernel,OPTION,SERIES...,CONFIGS,[um]): build kernels and modules for
# them; `checked` gets OPTION with each kernel's directory.
debug-kernel = for series in $(2); do \
		[ $$series != own ] || series=; \
		kernel=$$(tests/vm/build-kernel $(if $(4),--arch $(4)) \
			--series "$$series" $(3)) || exit 1; \
		$(MAKE) --no-print-directory $(if $(4),ARCH=$(4)) \
			KDIR=$$kernel/build KREL=$$(cat $$kernel/release) \
			debug-modules || exit 1; \
		checked="$$checked $(1) $$kernel"; \
	done
debug-uml = $(call debug-kernel,--uml,$(DEBUG_SERIES),tests/uml/machine.config tests/uml/debug.config,um)
debug-vm = $(foreach checkers,$(CHECKERS),$(call debug-kernel,--x86,$(DEBUG_SERIES),$(VM_CONFIGS) tests/vm/$(checkers).config);)

check-debug: check-debug-programs ## the module's tests under KASAN, UBSAN, lockdep, kmemleak (minutes); KERNELS='6.12 7.2'
	@$(debug-uml); $(debug-vm) tests/vm/debug-check $$checked --suites '$(SUITES)'

check-debug-uml: check-debug-programs ## the part of check-debug in User Mode Linux; KERNELS='6.12 7.2'
	@$(debug-uml); tests/vm/debug-check $$checked --suites '$(SUITES)'

check-debug-vm: device-tests ## the part of check-debug on two processors; CHECKERS='debug kcsan'
	@$(debug-vm) tests/vm/debug-check $$checked --programs '$(PROGRAMS)'

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
	@printf '%s\n' 'obj-m := debug-canary.o' \
		'include $(CURDIR)/kmod/compat/Kbuild.include' \
		'ccflags-y += $$(expiry-compat) -I$(CURDIR)/kmod -I$(CURDIR)/include/uapi' \
		>$(DEBUG_CANARY)/faults/Kbuild
	@$(MAKE) --no-print-directory -s -C $(KDIR) UBSAN_SANITIZE=y \
		M=$(CURDIR)/$(DEBUG_CANARY)/faults modules
	@cp $(DEBUG_CANARY)/faults/debug-canary.ko $(DEBUG_CANARY)
