/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A queue of /dev/expiry as a benchmark uses it: what fails ends the program.
 */
#ifndef BENCH_KERNEL_QUEUE_H
#define BENCH_KERNEL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <linux/expiry.h>

/* A new queue, never blocking; @layout: EXPIRY_LAYOUT_*, 0 = as it comes. */
int queue_new(clockid_t clock, unsigned long layout);

/* As the module's parameter pageable says for queues from now on. */
void queue_pageable(bool pageable);

void queue_stat(int fd, struct expiry_stat *stat);

/* All @nr records, each of which must succeed. */
void queue_submit(int fd, struct expiry_record *records, uint32_t nr);

/* The same in a call each. */
void queue_submit_single(int fd, struct expiry_record *records, uint32_t nr);

/* @nr records that are due, in order. */
void queue_read(int fd, struct expiry_record *records, uint32_t nr);

/* Each must have succeeded. */
void queue_check(const struct expiry_record *records, uint32_t nr);

/* The same through a ring, in one command. */
struct uring;
void queue_ring(struct uring *ring);
void queue_submit_ring(struct uring *ring, int fd,
		       struct expiry_record *records, uint32_t nr);

/*
 * Time without waiting: deadlines on CLOCK_REALTIME which lie in the past, so
 * that everything is due and a reader gets the least.
 */
struct hold {
	int fd;
	uint64_t random;
	uint64_t horizon_ns;
	bool in_order;		/* each lasts as long as the others */
};

/* Arm @nr timers in an empty queue. */
void hold_fill(struct hold *hold, uint32_t nr);

/* Read @nr and arm as many anew, batch by batch: nanoseconds of either. */
void hold_run(struct hold *hold, uint64_t nr, uint64_t *read_ns,
	      uint64_t *arm_ns);

/* What it runs on and in, as the first line of JSON. */
void report_machine(const char *bench);

#endif /* BENCH_KERNEL_QUEUE_H */
