/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Workloads of timers. Each is a steady state: expired or cancelled timers are
 * armed again, so that their number is the same after each step.
 * docs/heaps-timers.md describes each.
 */
#ifndef BENCH_HEAP_WORKLOAD_H
#define BENCH_HEAP_WORKLOAD_H

#include "load.h"

/* Least number of timers that batches choose among. */
#define WORKLOAD_TIMERS_MIN	1000U

/**
 * struct workload - one of them
 * @name: in reports
 * @work: the name of an operation
 * @delivery: an operation is a delivery
 * @cycle: operations for each 10 timers until lazy peers clean up
 * @step: a batch or more; returns the number of operations
 *
 * The consequences of a delivery are not counted. No round of a lazy peer may
 * be shorter than its @cycle.
 */
struct workload {
	const char *name;
	const char *work;
	bool delivery;
	uint32_t cycle;
	uint32_t (*step)(struct load *load);
};

/**
 * struct family - workloads with the same timers
 * @fill: arm all timers, in the state after a long time
 * @ttl: all live as long as PEER_TTL_NS
 * @workloads: in their order of execution; ends with no name
 */
struct family {
	const char *name;
	void (*fill)(struct load *load);
	bool ttl;
	const struct workload *workloads;
};

/* Ends with no name. */
extern const struct family families[];

/* The longest one, because it takes all timers at once. */
#define WORKLOAD_STORM		"storm-100"

#endif /* BENCH_HEAP_WORKLOAD_H */
