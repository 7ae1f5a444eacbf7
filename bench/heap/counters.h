/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The processor's own counters, of this thread in user mode, where the machine
 * allows it.
 */
#ifndef BENCH_HEAP_COUNTERS_H
#define BENCH_HEAP_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#define COUNTERS_NR	3

/* Names in reports: instructions, misses of the last cache and the TLB. */
extern const char *const counters_names[COUNTERS_NR];

/* Opens the counters. False: there are none, and counters_read() must not be
 * called.
 */
bool counters_open(void);
void counters_read(uint64_t values[COUNTERS_NR]);

#endif /* BENCH_HEAP_COUNTERS_H */
