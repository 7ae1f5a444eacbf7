/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Histograms by powers of two, as the daemon and the queues keep them: [n]
 * counts values below 2^n and not below 2^(n-1), the last one all the rest.
 */
#ifndef TOOLS_HISTOGRAM_H
#define TOOLS_HISTOGRAM_H

#include "ctl.h"

/* Of both kinds. */
#define BUCKETS	EXPIRY_SERVER_BUCKETS

uint64_t histogram_total(const __u64 *counts);

/* Returns what @share (0 to 1) of all were below: the end of a bucket.
 * UINT64_MAX: the last one has no end. 0: there are none.
 */
uint64_t histogram_below(const __u64 *counts, double share);

/* Returns @now less @before. */
void histogram_since(__u64 *counts, const __u64 *now,
		     const __u64 *before);

/* The rows that are not empty, with those between them; bounds as @text() has
 * them.
 */
void histogram_print(const __u64 *counts,
		     const char *(*text)(char *text, uint64_t value));

#endif /* TOOLS_HISTOGRAM_H */
