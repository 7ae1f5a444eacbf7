/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What bench/heap/timers prints: a line of JSON for each figure of a round.
 */
#ifndef BENCH_HEAP_REPORT_H
#define BENCH_HEAP_REPORT_H

#include "workload.h"

/* Whether the peers take turns, round by round. */
extern bool report_interleaved;

void report_version(const struct peer *peer);

/* What it took to arm all timers, and the memory they take. */
void report_fill(const struct load *load, const struct family *family);

/* What an operation of the workload takes ("main") and the memory, and then
 * what each kind of request has taken.
 */
void report_round(const struct load *load, const struct workload *workload,
		  uint32_t round, uint32_t ops);

#endif /* BENCH_HEAP_REPORT_H */
