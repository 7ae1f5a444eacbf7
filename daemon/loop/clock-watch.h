/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The watch on CLOCK_REALTIME: reports when it is set. A timer that a step makes due may
 * fire before the report. clock_is_ahead_of_watch() finds out.
 */
#ifndef DAEMON_CLOCK_H
#define DAEMON_CLOCK_H

#include <stdbool.h>

#include "daemon/loop/loop.h"

/**
 * struct clock_watch - the watch
 * @was_set: called after a step, with @data
 * @fd: a timerfd without expiration, cancelled by a step
 * @op: a poll of @fd
 */
struct clock_watch {
	struct loop *loop;
	void (*was_set)(void *data);
	void *data;
	int fd;
	struct loop_op op;
};

int clock_init(struct clock_watch *clock, struct loop *loop,
	       void (*was_set)(void *data), void *data);
void clock_deinit(struct clock_watch *clock);

/* Timers that are less late need no look at the clock. */
#define CLOCK_STEP_NS	10000000

/* Returns whether CLOCK_REALTIME was set, and the watch of @loop has not reported it. */
bool clock_is_ahead_of_watch(const struct loop *loop);

#endif /* DAEMON_CLOCK_H */
