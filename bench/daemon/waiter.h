/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiters: processes that wait for timers and record how late each comes,
 * while their parent does other work. One waits for expirations of a queue.
 * Another waits for a timerfd as the control: it depends only on the kernel, so
 * only the machine makes it late.
 */
#ifndef BENCH_DAEMON_WAITER_H
#define BENCH_DAEMON_WAITER_H

#include <stdint.h>

#define WAITER_SAMPLES	(1U << 16)

/**
 * struct waiter - a waiter
 * @late_ns: lateness of the last order's @nr timers, shared memory
 * @order: a pipe to it; @done: one from it
 */
struct waiter {
	uint64_t *late_ns;
	uint32_t nr;
	int order;
	int done;
};

/* Starts one that consumes the queue @name at @path; any client may arm the
 * timers.
 */
void waiter_queue(struct waiter *waiter, const char *path, const char *name);

/* Starts one that sets a timerfd for each timer. */
void waiter_timerfd(struct waiter *waiter);

/* Waits until @due_ns by the timerfd @fd. Returns how late it comes. */
uint64_t waiter_late(int fd, uint64_t due_ns);

/* Lets it wait for @nr timers, due every @every_ns from @first_ns on,
 * CLOCK_MONOTONIC; up to WAITER_SAMPLES. Returns at once.
 */
void waiter_begin(struct waiter *waiter, uint64_t first_ns, uint64_t every_ns,
		 uint32_t nr);

/* Waits until the last of them has come. */
void waiter_end(struct waiter *waiter);

#endif /* BENCH_DAEMON_WAITER_H */
