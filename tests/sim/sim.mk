# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The simulator: the daemon in one process on a simulated kernel, see sim.h.

SIM := $(wildcard tests/sim/*.c)
# Not main(), and not what the log is written to.
SIM_DAEMON := $(filter-out $(addprefix daemon/,main.c engine/embedded.c \
	util/log-sink.c),$(DAEMON))
SIM_WRAPS := malloc calloc realloc aligned_alloc mmap malloc_trim \
	pthread_create pthread_join pthread_setname_np sem_wait \
	pthread_cond_wait pthread_cond_timedwait pthread_cond_signal \
	log_write log_client key_file_visit_folder queue_file_read \
	clock_gettime getrandom close shutdown send write getsockopt setsockopt \
	poll accept4 socketpair eventfd signalfd timerfd_create timerfd_settime \
	recv sendmsg socket connect fcntl epoll_create1 epoll_ctl \
	open read pthread_mutex_lock journal_directory_open \
	journal_directory_close journal_init commit_way_is_linked checkpoint_init durable_make \
	durable_drop madvise sd_listen_fds_with_names sd_is_socket sd_watchdog_enabled fstat
OBJCOPY ?= objcopy
comma := ,

$(B)/obj/sim/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [sim])$(CC) $(CPPFLAGS) -Icore $(CFLAGS) $(SANITIZE) \
		$(if $(filter daemon/%,$<),-Dengine_embedded=engine_fast) \
		-MMD -MP -c -o $@ $<

# The library in one object, which shows only its interface.
$(B)/obj/simlib/%.o: %.c VERSION
	@mkdir -p $(@D)
	$(call say,CC,$< [simulated])$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) \
		-fvisibility=hidden -MMD -MP -c -o $@ $<

$(B)/tests/sim/libexpiry.o: $(call objects,simlib,$(LIB))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(LD) -r -o $@ $^ && \
		$(OBJCOPY) --localize-hidden $@

$(B)/tests/sim/sim: $(B)/tests/sim/libexpiry.o $(call objects,sim,$(SIM) daemon/engine/embedded.c) \
		$(call objects,asan,$(SIM_DAEMON) $(CORE) tests/core/support-horrible.c \
		tests/journal/simulated-disk.c)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(SANITIZE) -o $@ $^ \
		$(SIM_WRAPS:%=-Wl$(comma)--wrap=%) $(SYSTEMD_LIBS) -lcmocka -lpthread

SEEDS ?= 200
TIME ?= 600

.PHONY: check-sim soak-sim
check-sim: $(B)/tests/sim/sim ## the daemon on a simulated kernel, SEEDS=200
	@$(RUN_TESTS) --timeout 600 $(SIM_GROUP)

soak-sim: $(B)/tests/sim/sim ## the same with other seeds for TIME=600 seconds
	@seed=$$(date +%s); half=$$(($(TIME) / 2)); \
	$< --seed $$seed --seconds $$half; first=$$?; \
	$< --crashes --seed $$seed --seconds $$half && exit $$first
