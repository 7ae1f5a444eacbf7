/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watchers: processes that wait for timers and note how late each comes, while
 * the one that started them has other things to do. One waits for expirations
 * of a queue, another for a timerfd: the control, since it needs nobody but the
 * kernel and is late only by what the machine does to any process.
 */
#ifndef BENCH_WATCH_H
#define BENCH_WATCH_H

#include <stdint.h>

#define WATCH_SAMPLES	(1U << 16)

/**
 * struct watch - a watcher
 * @late_ns: how late the timers of the last order were, @nr of them, in memory
 *	that both sides share
 * @order: a pipe to it; @done: one from it
 */
struct watch {
	uint64_t *late_ns;
	uint32_t nr;
	int order;
	int done;
};

/* Start one that consumes the queue @name at @path; the timers are armed by
 * whom it pleases.
 */
void watch_queue(struct watch *watch, const char *path, const char *name);

/* Start one that sets a timerfd for each timer. */
void watch_timerfd(struct watch *watch);

/* Wait for @nr timers, due every @every_ns from @first_ns on, CLOCK_MONOTONIC;
 * up to WATCH_SAMPLES. Returns at once.
 */
void watch_begin(struct watch *watch, uint64_t first_ns, uint64_t every_ns,
		 uint32_t nr);

/* The last of them has come; waits until it has. */
void watch_end(struct watch *watch);

#endif /* BENCH_WATCH_H */
