/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Common to all benchmarks: exit with a reason, a clock, reproducible random
 * numbers, and the median of a few rounds.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NSEC_PER_SEC	1000000000ULL

#define die(...)							\
	do {								\
		fprintf(stderr, "bench: " __VA_ARGS__);			\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

static inline uint64_t bench_clock(clockid_t clock_id)
{
	struct timespec ts;

	clock_gettime(clock_id, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static inline uint64_t bench_now(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

/* Returns the processor time of this thread. */
static inline uint64_t bench_cpu(void)
{
	return bench_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* SplitMix64. */
static inline uint64_t bench_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Returns a number from 0 to @limit - 1, without a division. */
static inline uint64_t bench_below(uint64_t *state, uint64_t limit)
{
	return (unsigned __int128)bench_random(state) * limit >> 64;
}

/* A figure of several rounds. */
struct bench_figure {
	double median;
	double min;
	double max;
};

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the median, the least and the greatest; sorts @rounds. */
static inline struct bench_figure bench_median(double *rounds, unsigned int nr)
{
	qsort(rounds, nr, sizeof(*rounds), bench_compare);
	return (struct bench_figure) {
		.median = nr & 1 ? rounds[nr / 2] :
			  (rounds[nr / 2 - 1] + rounds[nr / 2]) / 2,
		.min = rounds[0],
		.max = rounds[nr - 1],
	};
}

static inline int bench_compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline void bench_sort_ns(uint64_t *ns, size_t nr)
{
	qsort(ns, nr, sizeof(*ns), bench_compare_ns);
}

#endif /* BENCH_BENCH_H */
