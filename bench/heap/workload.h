/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What timers are used for. Each workload is a steady state: what expires or is
 * cancelled is armed again, so that after each step as many are armed as before.
 * docs/heaps-timers.md says what each stands for.
 */
#ifndef BENCH_HEAP_WORKLOAD_H
#define BENCH_HEAP_WORKLOAD_H

#include "load.h"

/* Batches choose their timers among at least so many. */
#define WORKLOAD_TIMERS_MIN	1000U

/**
 * struct workload - one of them
 * @name: as reports have it
 * @work: what an operation is called
 * @delivery: an operation is a delivery, and what follows from it is not counted
 * @cycle: what lazy peers leave behind they clear away after so many operations
 *	for each 10 timers: no round of theirs may be shorter
 * @step: a batch or more; returns the number of operations
 */
struct workload {
	const char *name;
	const char *work;
	bool delivery;
	uint32_t cycle;
	uint32_t (*step)(struct load *load);
};

/**
 * struct family - workloads that have their timers in common
 * @fill: arm all timers, as they stand after a long time
 * @ttl: all live as long as PEER_TTL_NS
 * @workloads: in the order in which they must be run; ends with no name
 */
struct family {
	const char *name;
	void (*fill)(struct load *load);
	bool ttl;
	const struct workload *workloads;
};

/* Ends with no name. */
extern const struct family families[];

/* The most time consuming one, since it takes all timers at once. */
#define WORKLOAD_STORM		"storm-100"

#endif /* BENCH_HEAP_WORKLOAD_H */
