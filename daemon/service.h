/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon as a service: signals, reloads, and its status for the service
 * manager.
 *
 * The watchdog is answered when each thread has reached the end of a turn, so
 * that a stuck loop is detected (round.h). The status of timers goes with it:
 * no further wake-up, and without a watchdog none while nothing happens.
 */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

#include "daemon/config.h"
#include "daemon/loop.h"

struct server;

#define SERVICE_STATUS_MAX	256

/**
 * struct service - the service
 * @configure: makes settings of the files and the command line as they are now;
 *	0, or -errno after saying on stderr what is wrong
 * @fd: a signalfd, -1 = not begun
 * @signalled: the read of @signal from it
 * @reload: to be done in this turn, or when the round is over
 * @reloaded: the round tells threads of other settings
 *
 * @ticked: the timeout of @period, under way if @ticking
 * @watchdog: the manager waits for an answer twice a @period
 * @tick: it fired in this turn
 * @asking: a round is in progress; @awaited answers are to come
 * @answered: one came in this turn
 * @alive: with this round the watchdog is answered
 * @reloading_us: since when settings are read anew, CLOCK_MONOTONIC; 0 = the
 *	manager knows
 * @behind: the manager did not take the last message: soon once more
 * @unready: READY is still to be sent
 * @status: last sent
 */
struct service {
	struct server *server;
	int (*configure)(struct config *config);
	int fd;
	struct loop_op signalled;
	struct signalfd_siginfo signal;
	bool reload;
	bool reloaded;

	struct loop_op ticked;
	struct __kernel_timespec period;
	bool ticking;
	bool watchdog;
	bool tick;
	bool asking;
	bool answered;
	bool alive;
	uint32_t awaited;
	uint64_t reloading_us;
	bool behind;
	bool unready;
	char status[SERVICE_STATUS_MAX];
};

/* Begins: the server is ready. -errno, and a line on stderr. */
int service_init(struct service *service, struct server *server,
		 int (*configure)(struct config *config));
void service_deinit(struct service *service);

/* A thread has answered a round. */
void service_answered(struct service *service);

/* At the end of a turn. */
void service_turn(struct service *service);

/* The server ends. */
void service_stopping(struct service *service);

#endif /* DAEMON_SERVICE_H */
