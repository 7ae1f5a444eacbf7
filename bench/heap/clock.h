/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libraries' clock. An event loop asks the C library for the time; this
 * program has its own clock_gettime() and gettimeofday(), which the dynamic
 * linker finds first, so that an hour passes when the benchmark says so.
 */
#ifndef BENCH_HEAP_CLOCK_H
#define BENCH_HEAP_CLOCK_H

#include <stdint.h>

/* Since boot; the time of day is the same. Processor time and
 * CLOCK_MONOTONIC_RAW stay what they are.
 */
void clock_set(uint64_t now_ns);

/* Processor time of this thread. */
uint64_t clock_cpu(void);

/* What really went by. */
uint64_t clock_raw(void);

#endif /* BENCH_HEAP_CLOCK_H */
