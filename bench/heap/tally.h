/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A histogram of values, exact below 64 and within a 32nd above. It is small,
 * so that counting disturbs the measurement little.
 */
#ifndef BENCH_HEAP_TALLY_H
#define BENCH_HEAP_TALLY_H

#include <stdint.h>

#define TALLY_STEPS	32U	/* to a power of two */
#define TALLY_NR	(TALLY_STEPS * 28)

/**
 * struct tally - values seen
 * @seen: by class
 * @nr: of all
 */
struct tally {
	uint32_t seen[TALLY_NR];
	uint64_t nr;
	uint32_t max;
};

static inline void tally_add(struct tally *tally, uint32_t value)
{
	unsigned int shift = 0;

	if (value >= 2 * TALLY_STEPS)
		shift = 26 - __builtin_clz(value);
	tally->seen[shift * TALLY_STEPS + (value >> shift)]++;
	tally->nr++;
	if (value > tally->max)
		tally->max = value;
}

/* Returns the value that @part of all do not exceed. */
static inline uint32_t tally_at(const struct tally *tally, double part)
{
	uint64_t left = part * tally->nr;
	unsigned int i, shift;
	uint32_t value;

	for (i = 0; i < TALLY_NR && left >= tally->seen[i]; i++)
		left -= tally->seen[i];
	if (i == TALLY_NR)
		return tally->max;
	shift = i < 2 * TALLY_STEPS ? 0 : i / TALLY_STEPS - 1;
	value = ((i - shift * TALLY_STEPS + 1) << shift) - 1;
	return value < tally->max ? value : tally->max;
}

#endif /* BENCH_HEAP_TALLY_H */
