# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The module in a virtual machine: tests/vm/run boots Debian's kernel, of the
# release the module is built for, and runs a command there. Its exit status
# tells a failed command from a kernel report, a hang and trouble of its own.

VM_RUN = tests/vm/run --release $(KREL) $(VM_FLAGS)
VM_FLAGS ?=
VM_RUN_COMMAND ?= env EXPIRY_ENGINE=kernel demo/main-job

# What guests run, built beforehand: they have no time for compilers.
VM_PROGRAMS = all module device-tests $(LIB_PROGRAMS) $(B)/demo/storm \
	$(CALLS) $(B)/slow/expiryd

.PHONY: vm-run check-vm check-memory check-hibernation check-vm-harness check-module-faults \
	device-tests vm-programs

vm-run: all module $(B)/demo/storm ## the main job with the real module, in a VM
	@$(VM_RUN) --time 900 --silence 300 --memory 2048 -- $(VM_RUN_COMMAND)

# A build that fails here must be counted, or `make check` would not see it. As to
# silence: tests/run keeps a program's output until it ends.
check-vm: ## the module on Debian's kernel, two processors: kselftests, a smoke test of the daemon
	@mkdir -p $(dir $(RESULTS))
	@$(MAKE) --no-print-directory vm-programs || \
		{ echo '0 1 0 0 vm:build' >>$(RESULTS); exit 1; }
	@$(RUN_TESTS) --prefix 'vm: ' LAYERS_MODULE=$(MODULE_DIR)/src \
		tests/static/layers; layers=$$?; \
	tests/vm/check $(RESULTS) vm 'device smoke' \
		$(VM_RUN) --time 1500 --silence 330 -- env EXPIRY_TEST_TIMERS=50000 \
		&& exit $$layers

vm-programs: $(VM_PROGRAMS)

# Memory that is short in one group, or on one node of two: boots of their own.
check-memory: device-tests module ## pinned pages where kernel memory is not charged, and on two nodes (2 minutes)
	@mkdir -p $(dir $(RESULTS))
	@status=0; \
	for boot in nokmem=cgroup.memory=nokmem numa=numa=fake=2; do \
		tests/vm/check $(RESULTS) vm $${boot%%=*} $(VM_RUN) --time 300 \
			--memory 512 --append $${boot#*=} -- || status=1; \
	done; exit $$status

# A machine of its own: nothing of the host's comes back from it. Linux 6.1 cannot
# read an image from swap in use.
HIBERNATION_KERNEL ?= 7.2

check-hibernation: ## timers in an image of the machine and in the swap around it (minutes)
	@source=$$(tests/vm/kselftest-source $(KREL)) && \
		$(MAKE) --no-print-directory -s -C tests/device USERLDFLAGS=-static \
			KSFT=$$source/tools/testing/selftests \
			OUTPUT=$(CURDIR)/$(B)/tests/device-static \
			$(CURDIR)/$(B)/tests/device-static/test-suspend
	@$(RUN_TESTS) --timeout 900 KERNEL=$(HIBERNATION_KERNEL) tests/vm/test-hibernation

check-vm-harness: ## what goes wrong in a VM is noticed (2 to 4 minutes)
	@$(RUN_TESTS) --timeout 900 tests/vm/selftest

check-module-faults: device-tests ## are the defects of a review noticed when they are planted again? (half an hour)
	@tests/vm/faults $(FAULTS)

# The kselftests, on the harness from the kernel's own sources.
device-tests:
	@source=$$(tests/vm/kselftest-source $(KREL)) && \
		$(MAKE) --no-print-directory -s -C tests/device \
			KSFT=$$source/tools/testing/selftests \
			OUTPUT=$(CURDIR)/$(B)/tests/device all

include tests/uml/uml.mk tests/vm/debug.mk tests/vm/kernels.mk tests/kunit/kunit.mk
