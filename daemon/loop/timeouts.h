/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timeouts of the epoll loop on one clock: a heap of them, and a timerfd for the
 * first.
 */
#ifndef DAEMON_TIMEOUTS_H
#define DAEMON_TIMEOUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "daemon/loop/loop.h"

/**
 * struct timeouts - the timeouts
 * @fd: a timerfd, readable when @armed_ns has passed; -1 = none
 * @armed_ns: never later than the first deadline; 0: it is not armed
 * @fired: it is readable, and has to be armed anew or disarmed
 * @heap: a binary heap of @nr requests by deadline, from [1] on
 */
struct timeouts {
	int fd;
	clockid_t clock_id;
	uint64_t armed_ns;
	bool fired;
	struct loop_op **heap;
	uint32_t nr;
	uint32_t nr_max;
};

/* -errno */
int timeouts_init(struct timeouts *timeouts, clockid_t clock_id);
void timeouts_deinit(struct timeouts *timeouts);

/* Adds @op with its @request.deadline_ns. -ENOMEM: there is no memory, or what is
 * left is for timeouts that are not @many.
 */
int timeouts_add(struct timeouts *timeouts, struct loop_op *op, bool many);

/* Removes @op, if it is there. */
void timeouts_remove(struct timeouts *timeouts, struct loop_op *op);

/* Removes the first request whose deadline has come, and returns it, or NULL. */
struct loop_op *timeouts_take(struct timeouts *timeouts, uint64_t now_ns);

/* Arms the timerfd if that is needed. A timeout that was removed leaves it armed:
 * it costs one wake-up at most. -errno
 */
int timeouts_arm(struct timeouts *timeouts);

#endif /* DAEMON_TIMEOUTS_H */
