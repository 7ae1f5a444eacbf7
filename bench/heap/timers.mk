# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Timers in process beside what people use instead (docs/heaps-timers.md).

TIMERS_PEERS := $(patsubst bench/heap/%.c,%,$(wildcard bench/heap/peer-*.c))
TIMERS_LOAD := bench/heap/clock.c bench/heap/load.c \
	bench/heap/workload.c bench/pages.c bench/subject.c $(CORE)
TIMERS_OBJECTS := $(call objects,plain,$(TIMERS_LOAD) bench/heap/peers.c \
	$(TIMERS_PEERS:%=bench/heap/%.c)) $(B)/obj/plain/bench/heap/peer-queue.o
# libev has functions of libevent's names, too: libevent first.
TIMERS_LIBS := -levent_core -lev

$(HEAP)/timers: HEAP_LIBS := $(TIMERS_LIBS)
$(HEAP)/timers: $(call objects,plain,bench/heap/timers.c) $(TIMERS_OBJECTS)

# The core alone, without the peers and what they need.
$(HEAP)/timers-core: $(call objects,plain,bench/heap/timers.c $(TIMERS_LOAD) \
		bench/heap/peers-core.c bench/heap/peer-expiry.c)
	$(call link,-lm)

# Its test.
TIMERS_TESTS := $(B)/tests/bench/test-timers

$(TIMERS_TESTS): $(call objects,plain,tests/bench/test-timers.c) \
		$(TIMERS_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(TIMERS_LIBS) -lm -lcmocka

.PHONY: bench-heap-instructions
bench-heap-instructions: $(HEAP)/timers ## instructions an operation, counted by valgrind
	@bench/heap/instructions $(call quick,-t 10000 -o 4096)
