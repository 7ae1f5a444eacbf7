/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exponentially distributed times at the cost of two loads: the inverse of the
 * distribution, interpolated between 2048 points. In the hold model these keep
 * the shape of a heap of any size after any number of operations.
 */
#ifndef BENCH_HEAP_INCREMENTS_H
#define BENCH_HEAP_INCREMENTS_H

#include <math.h>

#include "bench/bench.h"

#define INCREMENTS_SHIFT	11
#define INCREMENTS_NR		(1U << INCREMENTS_SHIFT)
#define INCREMENTS_MEAN		1e12

struct increments {
	uint64_t at[INCREMENTS_NR + 1];
};

static inline void increments_init(struct increments *increments)
{
	uint32_t i;

	for (i = 0; i < INCREMENTS_NR; i++)
		increments->at[i] = -log1p(-(double)i / INCREMENTS_NR) *
				    INCREMENTS_MEAN;
	/* Beyond the last point: the distance of its mean, once more. */
	increments->at[i] = increments->at[i - 1] + 2 * INCREMENTS_MEAN;
}

static inline uint64_t increments_next(const struct increments *increments,
				       uint64_t *random)
{
	uint64_t bits = bench_random(random);
	const uint64_t *at = increments->at + (bits >> (64 - INCREMENTS_SHIFT));
	uint64_t part = bits & 0xffffffff;

	/* The distances are below 2^42: no more than 22 bits of it fit. */
	return at[0] + ((at[1] - at[0]) * (part >> 10) >> 22);
}

#endif /* BENCH_HEAP_INCREMENTS_H */
