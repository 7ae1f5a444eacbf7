# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The heap beside other heaps and timer queues (docs/heaps.md).

HEAP := $(B)/bench/heap
HEAP_CORE := $(CORE) bench/pages.c bench/subject.c
HEAP_KINDS := bench/heap/arrays.c bench/heap/kinds.c bench/heap/shipped.c

CXX ?= g++
CXXFLAGS := -std=gnu++17 $(OPTIMIZE) -Wall -Wextra -Wshadow $(CXXFLAGS)

$(B)/obj/plain/%.o: %.cc VERSION
	@mkdir -p $(@D)
	$(call say,CXX,$<)$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

cc_objects = $(1:%.cc=$(B)/obj/plain/%.o)

HEAP_KIND_OBJECTS := $(call objects,plain,$(HEAP_KINDS)) \
	$(call cc_objects,bench/heap/queue.cc)

# What is measured, by program.
HEAP_PROGRAMS := $(HEAP)/heaps $(HEAP)/timers $(HEAP)/bounds \
	$(HEAP)/bounds-watched

$(HEAP_PROGRAMS):
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(HEAP_LIBS) -lm

$(HEAP)/heaps: $(call objects,plain,bench/heap/heaps.c $(HEAP_CORE)) \
	$(HEAP_KIND_OBJECTS)

include bench/heap/timers.mk
include bench/heap/maps.mk

# Single operations: by the clock, and by the lines of memory that core/ touches
# (bench/paper/watch.h), which nothing else on the machine can disturb.
HEAP_BOUNDS := $(filter-out %-clock.c %-watch.c,$(wildcard bench/heap/bounds*.c))

$(HEAP)/bounds: $(call objects,plain,$(HEAP_BOUNDS) \
	bench/heap/bounds-clock.c $(HEAP_CORE))
$(HEAP)/bounds-watched: $(call objects,plain,$(HEAP_BOUNDS) \
	bench/heap/bounds-watch.c bench/paper/watch.c bench/pages.c \
	bench/subject.c) $(call objects,paper16-watched,$(CORE))

.PHONY: bench-heap
bench-heap: $(HEAP_PROGRAMS) ## the heap beside others, and its bounds, in twelve minutes
	@bench/heap/run $(call quick,--quick)

# Its test.
HEAP_TESTS := $(B)/tests/bench/test-heaps

$(HEAP_TESTS): $(call objects,plain,tests/bench/test-heaps.c $(HEAP_CORE)) \
		$(HEAP_KIND_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CXX) $(CXXFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka

# The work of single calls, watched like that.
BOUNDS_TESTS := $(B)/tests/bench/test-bounds

$(BOUNDS_TESTS): $(call objects,plain,tests/bench/test-bounds.c bench/paper/watch.c \
		bench/pages.c bench/subject.c) $(call objects,paper16-watched,$(CORE))
	$(call link,-lcmocka)
