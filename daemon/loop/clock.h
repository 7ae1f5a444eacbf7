/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The watch on CLOCK_REALTIME: reports when it is set. */
#ifndef DAEMON_CLOCK_H
#define DAEMON_CLOCK_H

#include "daemon/loop/loop.h"

struct server;

/**
 * struct clock_watch - the watch
 * @fd: a timerfd without expiration, cancelled by a step
 * @op: a poll of @fd
 */
struct clock_watch {
	struct server *server;
	int fd;
	struct loop_op op;
};

int clock_init(struct clock_watch *clock, struct server *server);
void clock_deinit(struct clock_watch *clock);

#endif /* DAEMON_CLOCK_H */
