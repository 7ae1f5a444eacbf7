/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Histograms by powers of two: always on, since an entry is one addition. Only
 * `make bench-histograms` compiles a daemon with NO_HISTOGRAMS, to measure
 * their cost.
 */
#ifndef DAEMON_HISTOGRAM_H
#define DAEMON_HISTOGRAM_H

#include <stdint.h>
#include <expiry/wire.h>

#include "daemon/util/counter.h"

/* @counts: [n] counts values below 2^n and not below 2^(n-1); the last one all
 * greater values.
 */
struct histogram {
	counter_t counts[EXPIRY_SERVER_BUCKETS];
};

#ifndef NO_HISTOGRAMS

/* Reads a time that only a histogram needs. */
#define histogram_time(now_ns)	(now_ns)

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
	unsigned int n = value ? 64 - __builtin_clzll(value) : 0;

	if (n >= EXPIRY_SERVER_BUCKETS)
		n = EXPIRY_SERVER_BUCKETS - 1;
	counter_add(&histogram->counts[n], 1);
}

#else

#define histogram_time(now_ns)	((uint64_t)0)

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
	(void)histogram;
	(void)value;
}

#endif

/* Adds @histogram to @sums. */
static inline void histogram_sum(const struct histogram *histogram,
				 __u64 *sums)
{
	unsigned int n;

	for (n = 0; n < EXPIRY_SERVER_BUCKETS; n++)
		sums[n] += counter_read(&histogram->counts[n]);
}

#endif /* DAEMON_HISTOGRAM_H */
