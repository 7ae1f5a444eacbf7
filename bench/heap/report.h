/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The output of bench/heap/timers: a line of JSON for each figure of a round.
 */
#ifndef BENCH_HEAP_REPORT_H
#define BENCH_HEAP_REPORT_H

#include "workload.h"

/* Whether the peers are interleaved, round by round. */
extern bool report_interleaved;

void report_version(const struct peer *peer);

/* Reports the cost of arming all timers, and their memory. */
void report_fill(const struct load *load, const struct family *family);

/* Reports the cost of an operation of the workload ("main"), the memory, and
 * the cost of each kind of request.
 */
void report_round(const struct load *load, const struct workload *workload,
		  uint32_t round, uint32_t ops);

#endif /* BENCH_HEAP_REPORT_H */
