# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Fuzz targets of core/ and of the journal (tests/README.md, "Fuzzing"): each with libFuzzer, with
# AFL++, and as a program that lives through the seeds that are kept; and the
# fuzzer of the module in a kernel. TIME is seconds for each.

FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz-%.c,%,$(wildcard tests/fuzz/fuzz-*.c))
FUZZ_REPLAYS := $(FUZZ_TARGETS:%=$(B)/tests/fuzz/replay-%)
FUZZ_CORE := $(CORE) $(CORE_SUPPORT)
FUZZ_JOURNAL := $(JOURNAL) $(wildcard tools/journal/*.c) tools/queue-list.c \
	$(addprefix tools/output/,error.c json.c span.c time-text.c) tools/ctl.c \
	tools/input/digits.c $(LIB) tests/fuzz/memory-disk.c tests/fuzz/journals.c
# The sources beside its own that a target needs.
fuzz_sources = $(if $(filter journal import,$(1)),$(FUZZ_JOURNAL),$(FUZZ_CORE))
FUZZ_CPPFLAGS := -Icore -Itests/core -Itests/fuzz
FUZZ_LIBS := -lcmocka $(JANSSON_LIBS)
FUZZ_CFLAGS := -DCORE_PAGE_SHIFT=6 -Wno-type-limits

FUZZ_CLANG ?= clang
FUZZ_AFL ?= afl-clang-fast
TIME ?= 60

$(B)/obj/p6/tests/fuzz/%.o: CPPFLAGS += -Itests/core -Itests/fuzz
$(B)/obj/p6/tests/fuzz/replay-%.o: tests/fuzz/replay.c
	@mkdir -p $(@D)
	$(call say,CC,$< [$*])$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) \
		-DFUZZ_SEEDS='"tests/fuzz/seeds/$*"' -MMD -MP -c -o $@ $<

# In one call each: clang's objects are of no use to anything else.
FUZZ_HEADERS := $(wildcard core/*.h tests/core/*.h tests/fuzz/*.h daemon/journal/*.h \
	tools/journal/*.h)
FUZZ_UNCOVERED := tests/fuzz/uncovered
define fuzz_target
$$(B)/tests/fuzz/replay-$(1): $$(B)/obj/p6/tests/fuzz/fuzz-$(1).o \
		$$(B)/obj/p6/tests/fuzz/replay-$(1).o \
		$$(call objects,p6,$$(call fuzz_sources,$(1)))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)$$(CC) $$(CFLAGS) $$(SANITIZE) -o $$@ $$^ $$(FUZZ_LIBS)

$$(B)/fuzz/libfuzzer-$(1): tests/fuzz/fuzz-$(1).c $$(call fuzz_sources,$(1)) $$(FUZZ_HEADERS) \
		$$(FUZZ_UNCOVERED)
	@mkdir -p $$(@D)
	$$(call say,CLANG,$$@)$$(FUZZ_CLANG) $$(CPPFLAGS) $$(FUZZ_CPPFLAGS) \
		-std=gnu11 -O1 -g -fno-strict-aliasing $$(FUZZ_CFLAGS) \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-fsanitize-coverage-ignorelist=$$(FUZZ_UNCOVERED) \
		-o $$@ $$(filter %.c,$$^) $$(FUZZ_LIBS)

$$(B)/fuzz/afl-$(1): tests/fuzz/fuzz-$(1).c $$(call fuzz_sources,$(1)) $$(FUZZ_HEADERS)
	@mkdir -p $$(@D)
	$$(call say,AFL,$$@)AFL_QUIET=1 AFL_USE_ASAN=1 $$(FUZZ_AFL) $$(CPPFLAGS) \
		$$(FUZZ_CPPFLAGS) -std=gnu11 -O1 -g -fno-strict-aliasing \
		$$(FUZZ_CFLAGS) -fsanitize=fuzzer -o $$@ $$(filter %.c,$$^) $$(FUZZ_LIBS)
endef
$(foreach target,$(FUZZ_TARGETS),$(eval $(call fuzz_target,$(target))))

.PHONY: fuzz fuzz-afl fuzz-seeds
fuzz: $(FUZZ_TARGETS:%=$(B)/fuzz/libfuzzer-%) ## libFuzzer on core/ and the journal, TIME=60 seconds a target
	@tests/fuzz/run libfuzzer $(TIME) $(FUZZ_TARGETS)

fuzz-afl: $(FUZZ_TARGETS:%=$(B)/fuzz/afl-%) ## AFL++ on core/ and the journal, TIME=60 seconds a target
	@tests/fuzz/run afl $(TIME) $(FUZZ_TARGETS)

fuzz-seeds: $(FUZZ_TARGETS:%=$(B)/fuzz/libfuzzer-%) ## what fuzzing found new, minimised, to the seeds kept
	@tests/fuzz/run seeds 0 $(FUZZ_TARGETS)

# The module that tells KCOV where it is, beside the one that does not: the
# kernel's makefiles take KCOV_INSTRUMENT for every object of it.
FUZZ_DEVICE := $(B)/fuzz/fuzz-device
FUZZ_MODULE = build/kmod-kcov/$(notdir $(FUZZ_KERNEL))
MACHINE ?= um
FUZZ_SERIES = $(filter-out own,$(firstword $(DEBUG_SERIES)))
ifeq ($(MACHINE),um)
FUZZ_CONFIGS = --arch um tests/uml/machine.config tests/uml/debug.config
FUZZ_MODULE_MAKE = $(call uml-make,$(FUZZ_KERNEL))
else
FUZZ_CONFIGS = $(VM_CONFIGS) tests/vm/debug.config
FUZZ_MODULE_MAKE = $(call debug-make,$(FUZZ_KERNEL))
endif
FUZZ_KERNEL = $(eval FUZZ_KERNEL := $$(shell tests/vm/build-kernel \
	$$(FUZZ_SERIES:%=--series %) $$(FUZZ_CONFIGS)))$(FUZZ_KERNEL)

$(FUZZ_DEVICE): $(wildcard tests/fuzz/device/*.[ch]) tests/device/files.h tests/device/uring.h \
		include/uapi/linux/expiry.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CFLAGS) -isystem include/uapi \
		-pthread -o $@ $(filter %.c,$^)

.PHONY: fuzz-kernel fuzz-kernel-seeds fuzz-kernel-module
fuzz-kernel-module:
	@$(FUZZ_MODULE_MAKE) module MODULE_DIR=$(FUZZ_MODULE) \
		MODULE_FLAGS='W=1 UBSAN_SANITIZE=y KCOV_INSTRUMENT=y'

fuzz-kernel: $(FUZZ_DEVICE) fuzz-kernel-module ## calls by chance on /dev/expiry in User Mode Linux, TIME=60; MACHINE=x86, KERNELS=7.2
	@tests/fuzz/device/run $(MACHINE) $(FUZZ_KERNEL) $(FUZZ_MODULE)/expiry.ko $(TIME)

fuzz-kernel-seeds: $(FUZZ_DEVICE) fuzz-kernel-module ## what that found new, minimised, to the seeds kept
	@rm -rf $(B)/fuzz/merged/device
	@mkdir -p $(B)/fuzz/merged/device
	@tests/fuzz/device/run $(MACHINE) $(FUZZ_KERNEL) $(FUZZ_MODULE)/expiry.ko 0 \
		--cover $(B)/fuzz/merged/device
	@find $(B)/fuzz/seeds/device -type f ! -name '*-*' -delete
	@cp $(B)/fuzz/merged/device/* $(B)/fuzz/seeds/device
	@tests/fuzz/pack $(B)/fuzz/seeds/device tests/fuzz/seeds/device

# SYZKALLER: a checkout of it, which brings its own compiler along.
.PHONY: check-syzkaller
check-syzkaller: ## the descriptions for syzkaller compile, by SYZKALLER=its sources
	@test -e "$(SYZKALLER)/pkg/compiler" || { \
		echo 'check-syzkaller: SYZKALLER= must name a checkout of syzkaller' >&2; \
		exit 2; }
	@cd $(SYZKALLER) && go run $(CURDIR)/tests/fuzz/syzkaller/check.go \
		$(CURDIR)/tests/fuzz/syzkaller
