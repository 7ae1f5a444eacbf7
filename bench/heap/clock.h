/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libraries' clock. An event loop reads the time from the C library. This
 * program has its own clock_gettime() and gettimeofday(), which the dynamic
 * linker finds first, so that the benchmark controls the time.
 */
#ifndef BENCH_HEAP_CLOCK_H
#define BENCH_HEAP_CLOCK_H

#include <stdint.h>

/* Sets the time since boot; the time of day is the same. Processor time and
 * CLOCK_MONOTONIC_RAW do not change.
 */
void clock_set(uint64_t now_ns);

/* Returns the processor time of this thread. */
uint64_t clock_cpu(void);

/* Returns the real time. */
uint64_t clock_raw(void);

#endif /* BENCH_HEAP_CLOCK_H */
