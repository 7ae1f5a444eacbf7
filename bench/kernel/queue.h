/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A queue of /dev/expiry for a benchmark: failures end the program. */
#ifndef BENCH_KERNEL_QUEUE_H
#define BENCH_KERNEL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <linux/expiry.h>

/* Makes a new queue, never blocking; @layout: EXPIRY_LAYOUT_*, 0 = the default.
 */
int queue_new(clockid_t clock, unsigned long layout);

/* Sets the module parameter pageable for queues from now on. */
void queue_pageable(bool pageable);

void queue_stat(int fd, struct expiry_stat *stat);

/* Submits all @nr records; each must succeed. */
void queue_submit(int fd, struct expiry_record *records, uint32_t nr);

/* Does the same with a call for each. */
void queue_submit_single(int fd, struct expiry_record *records, uint32_t nr);

/* Reads @nr due records, in order. */
void queue_read(int fd, struct expiry_record *records, uint32_t nr);

/* Requires that each has succeeded. */
void queue_check(const struct expiry_record *records, uint32_t nr);

/* Submits through a ring, in one command. */
struct uring;
void queue_ring(struct uring *ring);
void queue_submit_ring(struct uring *ring, int fd,
		       struct expiry_record *records, uint32_t nr);

/*
 * Time without waiting: deadlines in the past of CLOCK_REALTIME, so that
 * everything is due and a reader gets the least.
 */
struct hold {
	int fd;
	uint64_t random;
	uint64_t horizon_ns;
	bool in_order;		/* all last equally long */
};

/* Arms @nr timers in an empty queue. */
void hold_fill(struct hold *hold, uint32_t nr);

/* Reads @nr and arms as many, batch by batch; gives the nanoseconds of either.
 */
void hold_run(struct hold *hold, uint64_t nr, uint64_t *read_ns,
	      uint64_t *arm_ns);

/* Reports the machine, as the first line of JSON. */
void report_machine(const char *bench);

#endif /* BENCH_KERNEL_QUEUE_H */
