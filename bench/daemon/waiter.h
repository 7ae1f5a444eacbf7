/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Watchers: processes that wait for timers and record how late each comes,
 * while their parent does other work. One waits for expirations of a queue.
 * Another waits for a timerfd as the control: it depends only on the kernel, so
 * only the machine makes it late.
 */
#ifndef BENCH_WATCH_H
#define BENCH_WATCH_H

#include <stdint.h>

#define WATCH_SAMPLES	(1U << 16)

/**
 * struct watch - a watcher
 * @late_ns: lateness of the last order's @nr timers, shared memory
 * @order: a pipe to it; @done: one from it
 */
struct watch {
	uint64_t *late_ns;
	uint32_t nr;
	int order;
	int done;
};

/* Starts one that consumes the queue @name at @path; any client may arm the
 * timers.
 */
void watch_queue(struct watch *watch, const char *path, const char *name);

/* Starts one that sets a timerfd for each timer. */
void watch_timerfd(struct watch *watch);

/* Lets it wait for @nr timers, due every @every_ns from @first_ns on,
 * CLOCK_MONOTONIC; up to WATCH_SAMPLES. Returns at once.
 */
void watch_begin(struct watch *watch, uint64_t first_ns, uint64_t every_ns,
		 uint32_t nr);

/* Waits until the last of them has come. */
void watch_end(struct watch *watch);

#endif /* BENCH_WATCH_H */
