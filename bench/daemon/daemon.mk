# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The daemon side by side with its floor and with what people use instead; see
# bench/README.md.

BENCH_DAEMON := $(B)/bench/daemon
BENCH_DRIVER := bench/daemon/driver.c bench/daemon/traffic.c

# What is measured beside it, where the packages are there.
BENCH_PEERS := redis beanstalk local-timerfd \
	$(if $(wildcard /usr/include/event2/event.h),local-libevent) \
	$(if $(wildcard /usr/include/ev.h),local-libev)
# What is measured beside durable queues: stores under the core, where their packages
# are there.
BENCH_STORES := none $(if $(wildcard /usr/include/rocksdb/c.h),rocksdb) \
	$(if $(wildcard /usr/include/sqlite3.h),sqlite) \
	$(if $(wildcard /usr/include/lmdb.h),lmdb)
PQ_HEADER := $(wildcard /usr/include/postgresql/libpq-fe.h)
BENCH_DURABLE := $(addprefix $(BENCH_DAEMON)/,flush $(BENCH_STORES:%=store-%) \
	$(if $(PQ_HEADER),postgres))
BENCH_DAEMON_PROGRAMS := $(addprefix $(BENCH_DAEMON)/,echo expiry overload \
	lateness victim abuser scaling churn library client-c $(BENCH_PEERS))

$(BENCH_DAEMON_PROGRAMS) $(BENCH_DURABLE): $(BENCH_DAEMON)/%:
	$(call link,$(LIBS))

# The same loop, with an engine that does nothing.
$(BENCH_DAEMON)/echo: $(call objects,plain,bench/daemon/echo.c \
	$(filter-out daemon/engine/kernel.c daemon/engine/embedded.c,$(DAEMON)))
$(BENCH_DAEMON)/echo: LIBS = $(URING_LIBS) $(SYSTEMD_LIBS)

$(addprefix $(BENCH_DAEMON)/,expiry overload lateness victim abuser scaling \
	churn): $(BENCH_DAEMON)/%: \
	$(B)/obj/plain/bench/daemon/%.o $(call objects,plain, \
	bench/daemon/wire.c bench/mix.c $(BENCH_DRIVER))
$(BENCH_DAEMON)/overload $(BENCH_DAEMON)/lateness: \
	$(call objects,plain,bench/daemon/waiter.c)

$(BENCH_DAEMON)/expiry: $(call objects,plain,bench/daemon/checkpoints.c)

$(BENCH_STORES:%=$(BENCH_DAEMON)/store-%): $(BENCH_DAEMON)/%: \
	$(B)/obj/plain/bench/daemon/%.o \
	$(call objects,plain,bench/daemon/store.c bench/pages.c bench/subject.c \
		$(CORE))
$(BENCH_DAEMON)/store-rocksdb: LIBS = -lrocksdb
$(BENCH_DAEMON)/store-sqlite: LIBS = -lsqlite3
$(BENCH_DAEMON)/store-lmdb: LIBS = -llmdb

$(BENCH_DAEMON)/flush $(BENCH_DAEMON)/postgres: $(BENCH_DAEMON)/%: \
	$(B)/obj/plain/bench/daemon/%.o $(call objects,plain,$(BENCH_DRIVER))
$(BENCH_DAEMON)/postgres: LIBS = -lpq
$(B)/obj/plain/bench/daemon/postgres.o: CPPFLAGS += -I$(dir $(PQ_HEADER))

$(BENCH_DAEMON)/library: $(B)/obj/plain/bench/daemon/library.o \
	$(call objects,plain,bench/mix.c $(BENCH_DRIVER)) $(B)/libexpiry.a

$(BENCH_DAEMON)/client-c: $(B)/obj/plain/bench/daemon/client-c.o $(B)/libexpiry.a

$(BENCH_DAEMON)/redis $(BENCH_DAEMON)/beanstalk: $(BENCH_DAEMON)/%: \
	$(B)/obj/plain/bench/daemon/%.o $(call objects,plain,$(BENCH_DRIVER))

# The peers of the heap's timers, with the real clock.
$(B)/obj/local/%.o: bench/daemon/local.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [$*])$(CC) $(CPPFLAGS) -DLOCAL_PEER=peer_$* $(CFLAGS) \
		-MMD -MP -c -o $@ $<

$(addprefix $(BENCH_DAEMON)/,local-timerfd local-libevent local-libev): \
	$(BENCH_DAEMON)/local-%: $(B)/obj/local/%.o \
	$(call objects,plain,$(BENCH_DRIVER))
$(BENCH_DAEMON)/local-timerfd: $(call objects,plain,bench/daemon/peer-timerfd.c)
$(BENCH_DAEMON)/local-libevent $(BENCH_DAEMON)/local-libev: \
	$(BENCH_DAEMON)/local-%: $(B)/obj/plain/bench/heap/peer-%.o
$(BENCH_DAEMON)/local-libevent: LIBS = -levent
$(BENCH_DAEMON)/local-libev: LIBS = -lev -lm

# The daemon without its histograms and what they read the clock for.
$(B)/obj/no-histograms/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [no histograms])$(CC) $(CPPFLAGS) -DNO_HISTOGRAMS \
		$(CFLAGS) -Wno-unused-parameter -MMD -MP -c -o $@ $<

$(BENCH_DAEMON)/no-histograms: $(call objects,no-histograms,$(DAEMON) $(CORE))
	$(call link,$(URING_LIBS) $(SYSTEMD_LIBS))

.PHONY: bench bench-clients bench-durable bench-instructions bench-histograms bench-lateness bench-overload \
	bench-connections bench-isolation bench-quick bench-threads
bench-quick: all $(BENCH_DAEMON)/library $(B)/bench/heap/timers-core ## rates and memory, in about a minute
	@bench/daemon/run quick

bench-clients: all $(BENCH_DAEMON)/client-c ## processor time of the clients of each language, beside libexpiry and Redis'; PEERS=1 with go-redis from the module proxy
	@bench/daemon/run clients $(call quick,--rounds 1)

bench-lateness: all $(BENCH_DAEMON)/lateness ## how late expirations come, beside a timerfd's
	@bench/daemon/run lateness $(call quick,--quick)

bench-connections: all $(addprefix $(BENCH_DAEMON)/,expiry churn) ## one client beside 15,000 idle ones, and ten million that come and go
	@bench/daemon/run connections $(call quick,--rounds 2 --visits 5)

bench-isolation: all $(addprefix $(BENCH_DAEMON)/,victim abuser) ## a victim beside abusers: how much of their load it notices
	@bench/daemon/run isolation $(call quick,--rounds 1)

bench-durable: all $(BENCH_DURABLE) $(B)/bench/heap/timers-core \
		$(addprefix $(BENCH_DAEMON)/,expiry redis beanstalk) ## durable queues beside others, and beside databases; QUICK=1 in two minutes
	@bench/daemon/run durable $(call quick,--quick)

bench-instructions: $(B)/expiryd ## instructions of the daemon a request, counted by valgrind; BASE=COMMIT beside it
	@bench/daemon/instructions $(if $(BASE),--base $(BASE))

bench-histograms: all $(BENCH_DAEMON)/no-histograms $(BENCH_DAEMON)/expiry ## what the histograms cost that are always on
	@bench/daemon/run histograms $(call quick,--rounds 1)

bench-overload: all $(BENCH_DAEMON)/overload ## goodput and punctuality from half to ten times its capacity
	@bench/daemon/run overload $(call quick,--daemons 1 --rounds 1)

bench-threads: all $(addprefix $(BENCH_DAEMON)/,echo expiry scaling) ## two threads of the daemon beside one, two queues and one
	@bench/daemon/run threads $(call quick,--rounds 1)

bench: all $(BENCH_DAEMON_PROGRAMS) $(B)/bench/heap/timers-core ## the daemon beside an echo, Redis, beanstalkd, libevent and libev
	@bench/daemon/run capacity $(call quick,--quick)
