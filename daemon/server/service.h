/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon as a service: signals, reloads, and its status for the service
 * manager.
 *
 * The watchdog is answered when each thread has reached the end of a turn. So a
 * blocked_lru loop is detected (heartbeat.h). The status of timers goes with it: no
 * further wake-up, and without a watchdog none while nothing happens.
 */
#ifndef DAEMON_SERVICE_H
#define DAEMON_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

#include "daemon/loop/loop.h"
#include "daemon/util/config.h"

struct heartbeats;
struct worker;

#define SERVICE_STATUS_MAX	256

/**
 * struct service - the service
 * @worker: of the first thread (const)
 * @heartbeats: of all threads (const)
 * @configure: makes settings of the files and the command line
 * @fd: a signalfd, -1 = not begun
 * @signalled: the read of @signal from it
 * @reload: due in this turn, or after the heartbeat
 * @reloaded: the heartbeat passes new settings to threads
 *
 * @ticked: the timeout of @period, in progress if @ticking
 * @watchdog: the manager requires answers, at most two periods apart
 * @tick: the timeout fired in this turn
 * @pending: a heartbeat is in progress, with @awaited answers
 * @answered: an answer came in this turn
 * @alive: with this heartbeat the watchdog is answered
 * @reloading_us: start of a reload, CLOCK_MONOTONIC, 0 = reported
 * @behind: the manager refused the last message: repeat it soon
 * @unready: READY must still be sent
 * @status: last sent
 *
 * @configure reads both as they are now. It returns 0, or -errno after a line
 * in the log.
 */
struct service {
	struct worker *worker;
	struct heartbeats *heartbeats;
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
	bool pending;
	bool answered;
	bool alive;
	uint32_t awaited;
	uint64_t reloading_us;
	bool behind;
	bool unready;
	char status[SERVICE_STATUS_MAX];
};

/* Begins the service when the server is ready. Returns 0, or -errno after a
 * line in the log.
 */
int service_init(struct service *service, struct worker *worker,
		 struct heartbeats *heartbeats,
		 int (*configure)(struct config *config));
void service_deinit(struct service *service);

/* Ends a turn: sends due messages and begins due heartbeats. */
void service_turn(struct service *service);

/* Tells the manager that the server ends. */
void service_stopping(struct service *service);

#endif /* DAEMON_SERVICE_H */
