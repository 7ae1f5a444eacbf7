# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests by layer; tests/README.md tells them apart. Each layer appends to
# $(RESULTS), of which tests/run makes the last line.

RESULTS := $(B)/check/results
# Tests mostly wait: more programs at a time than there are processors.
JOBS ?= $(shell echo $$((3 * $$(nproc))))
RUN_TESTS = tests/run --jobs $(JOBS) --results $(RESULTS)
# LOOP=epoll: the daemons of the tests are on that loop.
ifneq ($(LOOP),)
export EXPIRY_LOOP := $(LOOP)
endif

CORE_TESTS := $(patsubst tests/core/%.c,%,$(wildcard tests/core/test-*.c))
CORE_SUPPORT := $(wildcard tests/core/support*.c)
CORE_PROGRAMS := $(CORE_TESTS:%=$(B)/tests/core/%) \
	$(CORE_TESTS:%=$(B)/tests/core/%-p6)
LIB_TESTS := $(patsubst tests/lib/%.c,%,$(wildcard tests/lib/test-*.c))
LIB_PROGRAMS := $(LIB_TESTS:%=$(B)/tests/lib/%)
UNIT_TESTS := $(wildcard tests/daemon/test-*.c tests/demo/test-*.c tests/tools/test-*.c)
UNIT_PROGRAMS := $(UNIT_TESTS:%.c=$(B)/%)

$(B)/tests/core/%-p6: $(B)/obj/p6/tests/core/%.o \
		$(call objects,p6,$(CORE) $(CORE_SUPPORT))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^ -lcmocka

$(B)/tests/core/%: $(B)/obj/asan/tests/core/%.o \
		$(call objects,asan,$(CORE) $(CORE_SUPPORT))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^ -lcmocka

# The other page sizes up to 64 KiB, which nobody ships: build/obj/pN/ and
# test-NAME-pN.
define core_pages
$$(B)/obj/p$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(call say,CC,$$< [pages of 2^$(1) bytes])$$(CC) $$(CPPFLAGS) -Icore \
		$$(CFLAGS) $$(SANITIZE) -DCORE_PAGE_SHIFT=$(1) -MMD -MP -c -o $$@ $$<

$$(B)/tests/core/%-p$(1): $$(B)/obj/p$(1)/tests/core/%.o \
		$$(call objects,p$(1),$$(CORE) $$(CORE_SUPPORT))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)$$(CC) $$(CFLAGS) $$(SANITIZE) -o $$@ $$^ -lcmocka
endef

CORE_SHIFTS := 7 8 9 10 11 13 14 15 16
$(foreach shift,$(CORE_SHIFTS),$(eval $(call core_pages,$(shift))))
CORE_SIZES := $(foreach shift,$(CORE_SHIFTS),$(CORE_TESTS:%=$(B)/tests/core/%-p$(shift)))

# Of these, what is quick and tells most.
CORE_SIZES_QUICK := $(foreach shift,8 16,$(B)/tests/core/test-bheap-sweep-p$(shift) \
	$(B)/tests/core/test-model-p$(shift))

# Without sanitizers, half of the operations with either page size.
OPS ?= 100000000
SOAK_SOURCES := tests/core/soak.c $(CORE) $(CORE_SUPPORT)
$(B)/tests/core/soak-%: $(SOAK_SOURCES) $(wildcard core/*.h tests/core/*.h)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) -Icore $(CFLAGS) -w -O2 \
		-DCORE_PAGE_SHIFT=$* -o $@ $(SOAK_SOURCES) -lcmocka

include tests/fuzz/fuzz.mk tests/proof/proof.mk tests/mutate/mutate.mk tests/sim/sim.mk \
	tests/static/static.mk tests/clients/clients.mk tests/journal/journal.mk tests/power/power.mk \
	tests/failover/failover.mk tests/model/model.mk

# The library's tests know it as a program does: by its header and its .so.
$(B)/tests/lib/%: $(B)/obj/plain/tests/lib/%.o \
		$(call objects,plain,$(wildcard tests/lib/support*.c)) \
		$(B)/libexpiry.so.0
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ \
		-Wl,-rpath,'$$ORIGIN/../..' -lcmocka -lpthread

PARSE_TIME := $(addprefix tools/input/,digits.c parse-span.c parse-time.c timestamp.c)

# Unit tests of the daemon and of expiryctl: one program with a few sources of theirs,
# under the sanitizers. $(call unit_program,NAME,SOURCES)
define unit_program
$$(B)/tests/$(1): $$(call objects,asan,tests/$(1).c $(2))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)$$(CC) $$(CFLAGS) $$(SANITIZE) -o $$@ $$^ -lcmocka
endef

UTIL := daemon/util
$(eval $(call unit_program,daemon/test-alarm,daemon/engine/alarm.c \
	tests/daemon/fake-loop.c))
$(eval $(call unit_program,daemon/test-arena,daemon/engine/arena.c))
$(eval $(call unit_program,daemon/test-commit-way,daemon/journal/commit-way.c))
$(eval $(call unit_program,daemon/test-crc32c,daemon/journal/crc32c.c))
$(eval $(call unit_program,daemon/test-crowded,daemon/queue/crowded.c))
$(eval $(call unit_program,daemon/test-defaults,$(UTIL)/config.c $(UTIL)/key-file.c \
	$(UTIL)/socket-default.c))
$(eval $(call unit_program,daemon/test-embedded,$(addprefix daemon/engine/,embedded.c \
	alarm.c arena.c) tests/daemon/fake-loop.c $(CORE)))
$(eval $(call unit_program,daemon/test-memory-limit,tests/fake-root.c \
	$(UTIL)/memory-limit.c))
$(eval $(call unit_program,daemon/test-name,$(UTIL)/name.c))
$(eval $(call unit_program,daemon/test-pace,daemon/queue/pace.c))
$(eval $(call unit_program,daemon/test-pool,$(UTIL)/pool.c))
$(eval $(call unit_program,demo/test-ledger,demo/ledger.c))
$(eval $(call unit_program,tools/test-local-time,tools/input/local-time.c $(PARSE_TIME)))
$(eval $(call unit_program,tools/test-module,tests/fake-root.c tools/module.c))
$(eval $(call unit_program,tools/test-parse,tools/input/lines.c tools/input/parse-line.c \
	$(PARSE_TIME)))
$(eval $(call unit_program,tools/test-span,$(PARSE_TIME)))
$(eval $(call unit_program,tools/test-span-text,tools/output/span.c $(PARSE_TIME)))
$(eval $(call unit_program,tools/test-timestamp,tools/input/local-time.c $(PARSE_TIME)))

$(eval $(call unit_program,daemon/test-recovery,tests/journal/simulated-disk.c $(JOURNAL_PARTS)))

$(B)/tests/tools/test-import: $(call objects,asan,tests/tools/test-import.c \
		tests/journal/simulated-disk.c $(JOURNAL_PARTS) $(addprefix tools/journal/,\
		contents.c import.c line.c) tools/queue-list.c tools/ctl.c tools/input/digits.c \
		$(addprefix tools/output/,error.c json.c span.c time-text.c) $(LIB))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^ -lcmocka $(JANSSON_LIBS)

# Preloaded into expiryctl where what it prints is compared whole.
$(B)/tests/tools/fixed-time.so: tests/tools/fixed-time.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -shared \
		-fPIC -o $@ $<

# Preloaded into the daemon by some of them.
$(B)/tests/socket/%.so: tests/socket/%.c
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -shared \
		-fPIC -o $@ $< -ldl

# The daemon with an engine that takes its time.
$(B)/obj/slow/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [slow])$(CC) $(CPPFLAGS) $(CFLAGS) \
		-Dengine_embedded=engine_fast -MMD -MP -c -o $@ $<

$(B)/slow/expiryd: $(call objects,slow,daemon/engine/embedded.c) \
		$(call objects,plain,tests/socket/slow-engine.c \
		$(filter-out daemon/engine/embedded.c,$(DAEMON)) $(CORE))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(URING_LIBS) \
		$(SYSTEMD_LIBS)

$(B)/tests/daemon/test-loops: $(call objects,asan,tests/daemon/test-loops.c \
		$(addprefix daemon/loop/,attempt.c epoll.c loop.c timeouts.c uring.c))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^ -lcmocka $(URING_LIBS)

$(B)/tests/daemon/test-directory: $(call objects,tsan,\
		tests/daemon/test-directory.c daemon/queue/directory.c daemon/util/pool.c)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) -fsanitize=thread -o $@ $^ -lcmocka

# The daemon as ThreadSanitizer watches it. What the kernel writes by the ring
# it does not see, nor what liburing does; what threads do to each other it does.
$(B)/obj/tsan/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [tsan])$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=thread \
		-MMD -MP -c -o $@ $<

$(B)/tsan/expiryd: $(call objects,tsan,$(DAEMON) $(CORE))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=thread -o $@ $^ \
		$(URING_LIBS) $(SYSTEMD_LIBS)

# Daemon, library, core with pages of 4 KiB, and what is tested alone, under
# AddressSanitizer and UBSan; at their end LeakSanitizer looks at what was left.
$(B)/obj/asan/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [asan])$(CC) $(CPPFLAGS) -Icore $(CFLAGS) $(SANITIZE) \
		-MMD -MP -c -o $@ $<

$(B)/asan/expiryd: $(call objects,asan,$(DAEMON) $(CORE))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE) -o $@ $^ \
		$(URING_LIBS) $(SYSTEMD_LIBS)

$(B)/asan/%: $(B)/obj/asan/tests/lib/%.o \
		$(call objects,asan,$(wildcard tests/lib/support*.c) $(LIB))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE) -o $@ $^ \
		-lcmocka -lpthread

CALLS := $(B)/tests/socket/count-calls.so $(B)/tests/socket/fail-calls.so \
	$(B)/tests/socket/fail-disk.so $(B)/tests/socket/fail-submit.so \
	$(B)/tests/socket/log-random.so $(B)/tests/socket/refuse-uring.so \
	$(B)/tests/socket/step-clock.so

# For any number of threads: all but the tests of several; and what of the
# library's is a daemon's client.
SOCKET_TESTS := $(wildcard tests/socket/test-*.py)
SOCKET_ANY := $(filter-out %/test-threads.py,$(SOCKET_TESTS))
socket_programs = $(patsubst %,tests/socket/test-%.py,$(1))
# What is about start, settings and log is tried once in check-socket, and with more
# threads in check-threads. The watchdog's test has several threads itself.
SOCKET_ONCE := $(call socket_programs,config config-bounds conformance-notices declared \
	disk-errors disk-full disk-trouble durable-space journal log loop memory \
	no-memory seeds service socket-file start time-namespace watchdog)
# On the other loop.
SOCKET_LOOP := $(filter-out $(SOCKET_ONCE),$(SOCKET_ANY))
# With two threads: not what one connection or one queue shows. Each is in one thread,
# and a thread has the same code however many there are.
SOCKET_TWO := $(filter-out $(call socket_programs,half-close lateness measures \
	partial requests),$(SOCKET_LOOP))
# On an engine that answers later: not what counts system calls a batch, has a daemon
# with such an engine of its own, or is about connections and users, which never wait
# for the engine.
SOCKET_SLOW := $(filter-out $(call socket_programs,access accounts arrivals hello \
	lateness manager overload steady-state),$(SOCKET_LOOP))
LIB_CLIENTS := $(filter %/test-api %/test-existing %/test-handle \
	%/test-observer %/test-reconnect %/test-reconnect-consume \
	%/test-replies %/test-stream %/test-timers,$(LIB_PROGRAMS)) \
	tests/tools/test-ctl.py tests/tools/test-metrics.py tests/lib/test-restart.py

# What is about memory, and not about times, the slow engine or what the sanitizer
# does itself, in two minutes.
ASAN_SOCKET := $(filter-out $(call socket_programs,config-bounds conformance-notices \
	histograms lateness log manager measures memory no-memory overload socket-file \
	steady-state time-namespace watchdog),$(SOCKET_TESTS))
ASAN_LIB := $(patsubst $(B)/tests/lib/%,$(B)/asan/%,\
	$(filter %/test-cuts %/test-existing %/test-handle %/test-observer \
	%/test-reconnect %/test-reconnect-consume %/test-replies %/test-stream \
	%/test-timers,$(LIB_PROGRAMS)))

# The daemon is killed fifty times on each loop, and fewer where the journal works as
# there: with a thread more, a slower engine, a sanitizer.
FEWER_KILLS := EXPIRY_TEST_KILLS=15

# The programs of a layer, as a group of tests/run or several, and what is built for them.
RUNNER_GROUP := tests/run-selftest tests/vm/test-module-pages tests/vm/test-reports.py
CORE_GROUP := $(CORE_PROGRAMS) $(CORE_SIZES_QUICK) $(FUZZ_REPLAYS)
BENCH_GROUP := $(PAPER_TESTS) $(HEAP_TESTS) $(BOUNDS_TESTS) $(TIMERS_TESTS) \
	tests/bench/test-figures.py
SIM_GROUP = SEEDS=$(SEEDS) tests/sim/test-seeds tests/sim/test-crashes
LIB_GROUP := $(UNIT_PROGRAMS) $(LIB_PROGRAMS) \
	$(foreach folder,lib tools packaging,$(wildcard \
	tests/$(folder)/test-*.sh tests/$(folder)/test-*.py)) \
	tests/static/plain-english tests/static/links tests/static/planted tests/static/kunit \
	tests/static/layers tests/targets/test-record.py tests/mutate/test-record.py
SOCKET_GROUP := $(SOCKET_TESTS) \
	--and --prefix '2 threads: ' EXPIRY_THREADS=2 $(FEWER_KILLS) $(SOCKET_TWO) \
	--and --prefix 'slow: ' EXPIRYD=$(CURDIR)/$(B)/slow/expiryd EXPIRY_SLOW_MS=1 \
	$(FEWER_KILLS) $(SOCKET_SLOW)
# And the daemon's clients of the library, which are in check-lib otherwise. With
# LOOP=auto the daemon chooses: check-container, where io_uring is refused.
EPOLL_LOOP = $(or $(LOOP),epoll)
EPOLL_GROUP = --prefix '$(EPOLL_LOOP): ' EXPIRY_LOOP=$(EPOLL_LOOP) $(SOCKET_LOOP) \
	$(LIB_CLIENTS)
# What was freed is kept for long, but not so much of it that memory is measured
# as the daemon's.
ASAN_GROUP := --prefix 'asan: ' EXPIRYD=$(CURDIR)/$(B)/asan/expiryd \
	EXPIRY_TEST_SHADOW=1 ASAN_OPTIONS=quarantine_size_mb=1 $(FEWER_KILLS) \
	$(ASAN_SOCKET) $(ASAN_LIB)

CORE_NEEDS := $(CORE_GROUP)
LIB_NEEDS := all $(B)/demo/storm examples examples-asan $(UNIT_PROGRAMS) $(LIB_PROGRAMS) $(CALLS) \
	$(B)/tests/tools/fixed-time.so
SOCKET_NEEDS := all $(CALLS) $(B)/slow/expiryd
ASAN_NEEDS := $(SOCKET_NEEDS) $(B)/asan/expiryd $(ASAN_LIB)
USER_NEEDS := $(sort $(CORE_NEEDS) $(BENCH_GROUP) $(B)/tests/sim/sim $(LIB_NEEDS) \
	$(ASAN_NEEDS) $(CLIENTS_NEEDS) $(JOURNAL_PROGRAMS))

.PHONY: check check-asan check-bench check-core check-core-sizes check-soak \
	check-disk-errors check-epoll check-guests check-kills check-lib check-programs check-shaken check-socket check-threads \
	check-runner check-user

# The programs are built with every processor. Then the tests run at once: those of
# check-user, and at low priority the machines, whose output follows at the end.
check: ## every test: core, library, daemon, then the module in a VM and in User Mode Linux
	@mkdir -p $(dir $(RESULTS))
	@rm -f $(RESULTS)
	@begin=$$(date +%s); \
	$(MAKE) --no-print-directory -k -j$$(nproc) check-programs; status=$$?; \
	$(MAKE) --no-print-directory check-guests >$(B)/check/guests.log 2>&1 & guests=$$!; \
	$(MAKE) --no-print-directory check-user || status=1; \
	wait $$guests || status=1; \
	cat $(B)/check/guests.log; \
	took=$$(($$(date +%s) - begin)); \
	echo "took $$((took / 60)) min $$((took % 60)) s"; \
	tests/run --summary $(RESULTS) && exit $$status

check-programs: $(USER_NEEDS)

# A machine that computes must not delay the tests of check-user. What both need is
# built before.
check-guests:
	@nice -n 19 $(MAKE) --no-print-directory -s vm-programs; \
	nice -n 19 $(MAKE) --no-print-directory -k -j2 check-vm check-uml

check-user: $(USER_NEEDS) ## the tests that need no module
	@$(RUN_TESTS) $(RUNNER_GROUP) --and $(CORE_GROUP) --and $(BENCH_GROUP) \
		--and $(SIM_GROUP) --and $(LIB_GROUP) --and $(SOCKET_GROUP) \
		--and $(EPOLL_GROUP) --and $(ASAN_GROUP) --and $(CLIENT_QUICK) \
		--and $(JOURNAL_GROUP)

check-runner: ## the test runner notices what fails
	@$(RUN_TESTS) $(RUNNER_GROUP)

check-core: $(CORE_NEEDS) ## heap, slots, index, timers against a naive model
	@$(RUN_TESTS) $(CORE_GROUP)

check-core-sizes: $(CORE_PROGRAMS) $(CORE_SIZES) ## the same with every page size from 64 bytes to 64 KiB
	@$(RUN_TESTS) --timeout 600 $^

check-soak: $(B)/tests/core/soak-6 $(B)/tests/core/soak-12 ## OPS=100000000 operations on core/, by SEED
	@half=$$(($(OPS) / 2)); $(B)/tests/core/soak-6 $$half $(SEED) && \
		$(B)/tests/core/soak-12 $$half $(SEED)

check-bench: $(BENCH_GROUP) ## what the benchmarks' figures rest on
	@$(RUN_TESTS) $(BENCH_GROUP)

check-lib: $(LIB_NEEDS) ## libexpiry, expiryctl and what is installed, on the embedded engine; LOOP=epoll
	@$(RUN_TESTS) $(LIB_GROUP)

# The file that says what programs rely on: its changes are read like those of a header.
.PHONY: abi check-abi
abi: $(B)/libexpiry.so.0
	abidw --headers-dir include --drop-private-types --no-corpus-path \
		--no-comp-dir-path --no-show-locs --exported-interfaces-only \
		--type-id-style hash --out-file tests/abi/libexpiry.abi $<

check-abi: $(B)/libexpiry.so.0 ## programs built with an earlier libexpiry run with this one
	@$(RUN_TESTS) tests/packaging/test-abi.sh

check-socket: $(SOCKET_NEEDS) ## the daemon as an independent client sees it; LOOP=epoll
	@$(RUN_TESTS) $(SOCKET_GROUP)

# All of them.
TRIES ?= 1000000
check-disk-errors: $(SOCKET_NEEDS) ## each call about the journal's files fails in turn (a quarter of an hour), TRIES=N of each kind
	@EXPIRY_TEST_TRIES=$(TRIES) $(RUN_TESTS) --timeout 3600 tests/socket/test-disk-errors.py

KILLS ?= 500
KILLS_TEST = EXPIRY_TEST_KILLS=$(KILLS) EXPIRY_TEST_SEED=$(or $(SEED),1) \
	tests/socket/test-kills.py
check-kills: $(SOCKET_NEEDS) ## KILLS=500 of the daemon under load by SEED, on both loops and with the module (half an hour)
	@$(RUN_TESTS) --timeout 3600 --prefix 'io_uring: ' EXPIRY_LOOP=io_uring $(KILLS_TEST) \
		--and --prefix 'epoll: ' EXPIRY_LOOP=epoll $(KILLS_TEST)
	@$(call uml-make,$(UML_FAST_KERNEL)) module
	@tests/uml/run --kernel $(UML_FAST_KERNEL) --memory 2048 --time 7200 \
		--silence 7200 -- tests/run --timeout 7000 \
		--prefix 'module: ' EXPIRY_ENGINE=kernel $(KILLS_TEST)

# What measures time, or needs more than the time that a round has, is left out.
ROUNDS ?= 3
SHAKEN := $(filter-out $(call socket_programs,kills disk-errors disk-full disk-trouble),$(SOCKET_TESTS)) \
	$(LIB_PROGRAMS) $(wildcard tests/lib/test-*.py tests/tools/test-*.py)
check-shaken: $(SOCKET_NEEDS) $(LIB_NEEDS) ## while their processes stand still by turns, do the tests pass? ROUNDS=3, SEED=1
	@tests/shake --rounds $(ROUNDS) --seed $(or $(SEED),1) $(SHAKEN)

check-epoll: $(SOCKET_NEEDS) $(LIB_PROGRAMS) ## daemon and clients on the epoll loop
	@$(RUN_TESTS) $(EPOLL_GROUP)

check-asan: $(ASAN_NEEDS) ## daemon and library under ASan, UBSan and LeakSanitizer
	@$(RUN_TESTS) $(ASAN_GROUP)

# Under ThreadSanitizer without what counts calls, which are not the daemon's own
# then.
check-threads: all $(LIB_PROGRAMS) $(CALLS) \
		$(B)/slow/expiryd $(B)/tsan/expiryd ## daemon and clients with 2 and 4 threads, and under ThreadSanitizer
	@$(RUN_TESTS) --timeout 600 \
		--prefix '2 threads: ' EXPIRY_THREADS=2 $(SOCKET_ANY) $(LIB_CLIENTS) \
		--and --prefix '4 threads: ' EXPIRY_THREADS=4 $(SOCKET_ANY) $(LIB_CLIENTS) \
		--and --prefix 'tsan: ' EXPIRYD=$(CURDIR)/$(B)/tsan/expiryd \
		EXPIRY_THREADS=4 EXPIRY_TEST_SHADOW=4 \
		$(filter-out %/test-steady-state.py,$(SOCKET_TESTS)) $(LIB_CLIENTS)
