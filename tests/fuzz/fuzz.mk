# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Fuzz targets of core/ (tests/README.md, "Fuzzing"): each with libFuzzer, with
# AFL++, and as a program that lives through the seeds that are kept. TIME is
# seconds for each.

FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz-%.c,%,$(wildcard tests/fuzz/fuzz-*.c))
FUZZ_REPLAYS := $(FUZZ_TARGETS:%=$(B)/tests/fuzz/replay-%)
FUZZ_SOURCES := $(CORE) $(CORE_SUPPORT)
FUZZ_CPPFLAGS := -Icore -Itests/core -Itests/fuzz
FUZZ_CFLAGS := -DCORE_PAGE_SHIFT=6 -Wno-type-limits

FUZZ_CLANG ?= clang
FUZZ_AFL ?= afl-clang-fast
TIME ?= 60

$(B)/obj/p6/tests/fuzz/%.o: CPPFLAGS += -Itests/core -Itests/fuzz
$(B)/obj/p6/tests/fuzz/replay-%.o: tests/fuzz/replay.c
	@mkdir -p $(@D)
	$(call say,CC,$< [$*])$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) \
		-DFUZZ_SEEDS='"tests/fuzz/seeds/$*"' -MMD -MP -c -o $@ $<

$(B)/tests/fuzz/replay-%: $(B)/obj/p6/tests/fuzz/fuzz-%.o \
		$(B)/obj/p6/tests/fuzz/replay-%.o \
		$(call objects,p6,$(CORE) $(CORE_SUPPORT))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^ -lcmocka

# In one call each: clang's objects are of no use to anything else.
$(B)/fuzz/libfuzzer-%: tests/fuzz/fuzz-%.c $(FUZZ_SOURCES) $(wildcard core/*.h \
		tests/core/*.h tests/fuzz/*.h)
	@mkdir -p $(@D)
	$(call say,CLANG,$@)$(FUZZ_CLANG) $(CPPFLAGS) $(FUZZ_CPPFLAGS) \
		-std=gnu11 -O1 -g -fno-strict-aliasing $(FUZZ_CFLAGS) \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o $@ $(filter %.c,$^) -lcmocka

$(B)/fuzz/afl-%: tests/fuzz/fuzz-%.c $(FUZZ_SOURCES) $(wildcard core/*.h \
		tests/core/*.h tests/fuzz/*.h)
	@mkdir -p $(@D)
	$(call say,AFL,$@)AFL_QUIET=1 AFL_USE_ASAN=1 $(FUZZ_AFL) $(CPPFLAGS) \
		$(FUZZ_CPPFLAGS) -std=gnu11 -O1 -g -fno-strict-aliasing \
		$(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $(filter %.c,$^) -lcmocka

.PHONY: fuzz fuzz-afl fuzz-seeds
fuzz: $(FUZZ_TARGETS:%=$(B)/fuzz/libfuzzer-%) ## libFuzzer on core/, TIME=60 seconds a target
	@tests/fuzz/run libfuzzer $(TIME) $(FUZZ_TARGETS)

fuzz-afl: $(FUZZ_TARGETS:%=$(B)/fuzz/afl-%) ## AFL++ on core/, TIME=60 seconds a target
	@tests/fuzz/run afl $(TIME) $(FUZZ_TARGETS)

fuzz-seeds: $(FUZZ_TARGETS:%=$(B)/fuzz/libfuzzer-%) ## what fuzzing found new, minimised, to the seeds kept
	@tests/fuzz/run seeds 0 $(FUZZ_TARGETS)
