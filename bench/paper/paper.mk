# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The paper's experiment (docs/paper.md). The heaps are compiled four ways: with
# elements of 8 and of 16 bytes, each watched (watch.h) and not.

PAPER := $(B)/bench/paper
PAPER_HEAPS := $(wildcard core/bheap_*.c) bench/paper/binary.c bench/paper/kamp.c

SMALL := -DCORE_NODE_SMALL
# Copying memory is reading and writing, too: as the source has it, and as the
# compiler makes it of a struct's assignment.
WATCHED := -fsanitize=thread -U_FORTIFY_SOURCE -Dmemcpy=__tsan_memcpy \
	-Dmemmove=__tsan_memmove -Dmemset=__tsan_memset
OBJCOPY ?= objcopy
WATCH_COPIES = $(OBJCOPY) --redefine-sym memcpy=__tsan_memcpy \
	--redefine-sym memmove=__tsan_memmove --redefine-sym memset=__tsan_memset

$(B)/obj/paper8/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [8-byte elements])$(CC) $(CPPFLAGS) $(CFLAGS) \
		$(SMALL) -MMD -MP -c -o $@ $<

$(B)/obj/paper8-watched/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [8-byte elements watched])$(CC) $(CPPFLAGS) $(CFLAGS) \
		$(SMALL) $(WATCHED) -MMD -MP -c -o $@ $<
	$(Q)$(WATCH_COPIES) $@

$(B)/obj/paper16-watched/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [watched])$(CC) $(CPPFLAGS) $(CFLAGS) $(WATCHED) \
		-MMD -MP -c -o $@ $<
	$(Q)$(WATCH_COPIES) $@

# Radix pages with digits of 2 and 3 bits.
define paper_bits
$(B)/obj/paper16-bits$(1)/%.o: %.c VERSION
	@mkdir -p $$(@D)
	$$(call say,CC,$$< [digits of $(1) bits])$$(CC) $$(CPPFLAGS) $$(CFLAGS) \
		-DBHEAP_RADIX_BITS=$(1) -MMD -MP -c -o $$@ $$<

$(B)/obj/paper16-bits$(1)-watched/%.o: %.c VERSION
	@mkdir -p $$(@D)
	$$(call say,CC,$$< [digits of $(1) bits watched])$$(CC) $$(CPPFLAGS) $$(CFLAGS) \
		$$(WATCHED) -DBHEAP_RADIX_BITS=$(1) -MMD -MP -c -o $$@ $$<
	$$(Q)$$(WATCH_COPIES) $$@
endef
$(foreach bits,2 3,$(eval $(call paper_bits,$(bits))))

PAPER_BITS := $(PAPER)/trace-16-bits2 $(PAPER)/trace-16-bits3
PAPER_TRACERS := $(PAPER)/trace-8 $(PAPER)/trace-16
PAPER_TIMERS := $(PAPER)/time-8 $(PAPER)/time-16

$(PAPER_TRACERS) $(PAPER_BITS): $(PAPER)/trace-%:
	$(call link)

$(PAPER_TIMERS): $(PAPER)/time-%:
	$(call link)

PAPER_TRACE := bench/paper/trace.c bench/paper/experiment.c bench/paper/lru.c \
	bench/paper/watch.c
PAPER_TIME := bench/paper/time.c bench/paper/experiment.c $(PAPER_HEAPS)

$(PAPER)/trace-8: $(call objects,paper8,$(PAPER_TRACE)) \
	$(call objects,paper8-watched,$(PAPER_HEAPS))
$(PAPER)/trace-16: $(call objects,plain,$(PAPER_TRACE)) \
	$(call objects,paper16-watched,$(PAPER_HEAPS))
$(PAPER_BITS): $(PAPER)/trace-16-%: $(call objects,plain,bench/paper/lru.c \
	bench/paper/watch.c)
$(foreach bits,2 3,$(eval $(PAPER)/trace-16-bits$(bits): \
	$(call objects,paper16-bits$(bits),bench/paper/trace.c bench/paper/experiment.c) \
	$(call objects,paper16-bits$(bits)-watched,$(PAPER_HEAPS))))
$(PAPER)/time-8: $(call objects,paper8,$(PAPER_TIME))
$(PAPER)/time-16: $(call objects,plain,$(PAPER_TIME))

.PHONY: bench-paper
bench-paper: $(PAPER_TRACERS) $(PAPER_TIMERS) ## Kamp's experiment and figures, in about a minute
	@bench/paper/run

# Its test, with either element.
PAPER_TESTS := $(B)/tests/bench/test-paper-8 $(B)/tests/bench/test-paper-16
PAPER_TEST := tests/bench/test-paper.c $(filter-out %/trace.c,$(PAPER_TRACE))

$(PAPER_TESTS): $(B)/tests/bench/test-paper-%:
	$(call link,-lcmocka)

$(B)/tests/bench/test-paper-8: $(call objects,paper8,$(PAPER_TEST)) \
	$(call objects,paper8-watched,$(PAPER_HEAPS))
$(B)/tests/bench/test-paper-16: $(call objects,plain,$(PAPER_TEST)) \
	$(call objects,paper16-watched,$(PAPER_HEAPS))
