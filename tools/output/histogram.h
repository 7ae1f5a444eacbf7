/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Histograms of the daemon and its queues, by powers of two. Bucket n counts
 * values from 2^(n-1) to 2^n - 1, the last bucket all higher ones.
 */
#ifndef TOOLS_HISTOGRAM_H
#define TOOLS_HISTOGRAM_H

#include <stdint.h>
#include <expiry/expiry.h>

/* Both kinds of histogram have this number. */
#define BUCKETS	EXPIRY_SERVER_BUCKETS

uint64_t histogram_total(const __u64 *counts);

/* Returns the percentile @share (0 to 1): the upper bound of a bucket. The last
 * bucket's is UINT64_MAX. Returns 0 for an empty histogram.
 */
uint64_t histogram_below(const __u64 *counts, double share);

/* Computes the difference between two samples. */
void histogram_since(__u64 *counts, const __u64 *now,
		     const __u64 *before);

/* Prints the buckets from the first to the last that is not empty. @text() formats
 * their bounds.
 */
void histogram_print(const __u64 *counts,
		     const char *(*text)(char *text, uint64_t value));

#endif /* TOOLS_HISTOGRAM_H */
