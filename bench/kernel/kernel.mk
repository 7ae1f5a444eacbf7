# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The module measured: its speed, in User Mode Linux and in the virtual machine,
# that of the daemon with it, its layouts where memory is short, and its waiting. docs/kernel-performance.md has the method
# and a run.

BENCH_KERNEL := $(B)/bench/kernel
BENCH_KERNEL_PROGRAMS := $(BENCH_KERNEL)/speed $(BENCH_KERNEL)/pressure \
	$(BENCH_KERNEL)/waits

$(BENCH_KERNEL_PROGRAMS): $(BENCH_KERNEL)/%: $(B)/obj/plain/bench/kernel/%.o \
		$(call objects,plain,bench/kernel/queue.c)
	$(call link)

$(BENCH_KERNEL)/speed: $(call objects,plain,bench/kernel/peer-expiry.c \
	bench/kernel/peer-system.c)

.PHONY: bench-kernel bench-kernel-daemon bench-swap bench-swap-module bench-waits

bench-kernel: $(BENCH_KERNEL)/speed uml-module-fast module ## batches, pageable memory, timerfd and POSIX timers, in kernels
	@bench/kernel/run speed $(call quick,--quick) --uml $(UML_FAST_KERNEL) --vm $(KREL)

bench-kernel-daemon: all $(B)/bench/daemon/echo $(B)/bench/daemon/expiry \
		uml-module-fast module ## the daemon with the module's engine and its own beside an echo, in kernels
	@mkdir -p $(BENCH_KERNEL)
	@bench/kernel/run engines $(call quick,--quick) --uml $(UML_FAST_KERNEL) --vm $(KREL)

bench-swap: $(BENCH_KERNEL)/pressure bench-swap-module ## page-ins of the three layouts and a binary heap where memory is short
	@bench/kernel/run pressure $(call quick,--quick) --uml $(UML_FAST_KERNEL) \
		--modules $(BENCH_KERNEL)/kmod

# With MODULES=DIR of another checkout's build/kmod: of that module.
bench-waits: $(BENCH_KERNEL)/waits module ## a request beside a SCAN that waits for pages, with two processors
	@bench/kernel/run waits $(call quick,--quick) --vm $(KREL) $(MODULES:%=--modules %)

# With the binary heap, which the module of a release does not have.
bench-swap-module:
	@$(call uml-make,$(UML_FAST_KERNEL)) module EXPIRY_BINARY=1 \
		MODULE_DIR=$(BENCH_KERNEL)/kmod/$$(cat $(UML_FAST_KERNEL)/release)

# That heap under the core's own tests, in place of the subtree pages.
$(B)/obj/binary/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$< [binary heap])$(CC) $(CPPFLAGS) -Icore $(CFLAGS) \
		$(SANITIZE) -DCORE_PAGE_SHIFT=6 -Wno-type-limits \
		-Dbheap_subtree=bheap_binary -MMD -MP -c -o $@ $<

BINARY_TESTS := $(B)/tests/bench/test-binary-model \
	$(B)/tests/bench/test-binary-bheap-sweep

$(BINARY_TESTS): $(B)/tests/bench/test-binary-%: $(B)/obj/binary/tests/core/test-%.o \
		$(call objects,binary,bench/kernel/bheap_binary.c $(CORE_SUPPORT) \
			$(filter-out core/bheap_subtree.c,$(CORE)))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^ -lcmocka

BENCH_GROUP += $(BINARY_TESTS)
check-bench check-programs check-user: $(BINARY_TESTS)
