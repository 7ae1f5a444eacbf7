/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Merging sorted runs of nodes, and sorting a page of them.
 *
 * Which of two runs the next node comes from is as good as chance, so it is
 * chosen without a branch. How many nodes can be taken before either run may
 * be at its end is known beforehand, so that the loop asks nothing else.
 */
#ifndef CORE_RUNS_H
#define CORE_RUNS_H

#include "bheap.h"

static inline bool node_less(const struct bheap_node *a,
			     const struct bheap_node *b)
{
	return a->deadline < b->deadline;
}

/* @b if @is_b, else @a. Said so that no compiler makes a branch of it. */
static inline const struct bheap_node *
runs_either(const struct bheap_node *a, const struct bheap_node *b, bool is_b)
{
	unsigned long x = (unsigned long)a, y = (unsigned long)b;

	return (const void *)(x ^ ((x ^ y) & -(unsigned long)is_b));
}

/**
 * struct runs - two sorted runs that are being merged
 * @a: what is left of the one; of equals it goes first
 * @a_end: behind its last
 * @b: what is left of the other
 * @b_end: behind its last
 *
 * A run may lie where it is merged to, behind a gap (ahead of one, from the
 * greater end) that just holds what is left of the other.
 */
struct runs {
	const struct bheap_node *a;
	const struct bheap_node *a_end;
	const struct bheap_node *b;
	const struct bheap_node *b_end;
};

static inline void runs_init(struct runs *runs, const struct bheap_node *a,
			     const struct bheap_node *a_end,
			     const struct bheap_node *b,
			     const struct bheap_node *b_end)
{
	runs->a = a;
	runs->a_end = a_end;
	runs->b = b;
	runs->b_end = b_end;
}

/* Nodes left in both. */
static inline u32 runs_nr(const struct runs *runs)
{
	return (runs->a_end - runs->a) + (runs->b_end - runs->b);
}

/* How many can be taken, at most @nr, before either run may be at its end. */
static inline u32 runs_safe(const struct runs *runs, u32 nr)
{
	u32 a = runs->a_end - runs->a, b = runs->b_end - runs->b;

	if (a > b)
		a = b;
	return a < nr ? a : nr;
}

/* Move the least @nr nodes to @to, in order. */
static inline void runs_take_least(struct runs *runs, struct bheap_node *to,
				   u32 nr)
{
	const struct bheap_node *from;
	u32 n;

	/* Runs that do not overlap are common: deadlines tend to be in order. */
	if (runs->a_end - runs->a >= nr && runs->b != runs->b_end &&
	    !node_less(runs->b, runs->a + nr - 1)) {
		memmove(to, runs->a, nr * sizeof(*to));
		runs->a += nr;
		return;
	}
	while ((n = runs_safe(runs, nr))) {
		const struct bheap_node *a = runs->a, *b = runs->b;

		nr -= n;
		while (n--) {
			bool is_b = node_less(b, a);

			*to++ = *runs_either(a, b, is_b);
			a += !is_b;
			b += is_b;
		}
		runs->a = a;
		runs->b = b;
	}
	if (!nr)
		return;
	if (runs->a != runs->a_end) {
		from = runs->a;
		runs->a += nr;
	} else {
		from = runs->b;
		runs->b += nr;
	}
	if (to != from)
		memmove(to, from, nr * sizeof(*to));
}

/* Move the greatest @nr nodes to where they end at @to, in order. */
static inline void runs_take_greatest(struct runs *runs, struct bheap_node *to,
				      u32 nr)
{
	const struct bheap_node *from;
	u32 n;

	if (runs->a_end - runs->a >= nr && runs->b != runs->b_end &&
	    !node_less(runs->a_end - nr, runs->b_end - 1)) {
		runs->a_end -= nr;
		memmove(to - nr, runs->a_end, nr * sizeof(*to));
		return;
	}
	while ((n = runs_safe(runs, nr))) {
		const struct bheap_node *a = runs->a_end, *b = runs->b_end;

		nr -= n;
		while (n--) {
			bool is_b = !node_less(b - 1, a - 1);

			*--to = *runs_either(a - 1, b - 1, is_b);
			a -= !is_b;
			b -= is_b;
		}
		runs->a_end = a;
		runs->b_end = b;
	}
	if (!nr)
		return;
	if (runs->a != runs->a_end) {
		runs->a_end -= nr;
		from = runs->a_end;
	} else {
		runs->b_end -= nr;
		from = runs->b_end;
	}
	if (to - nr != from)
		memmove(to - nr, from, nr * sizeof(*to));
}

static inline bool runs_is_sorted(const struct bheap_node *node,
				  const struct bheap_node *end)
{
	for (; node + 1 < end; node++)
		if (node_less(node + 1, node))
			return false;
	return true;
}

/* Runs so short are sorted by insertion: an even number of doublings below a
 * page, so that the sorting ends in the page where it began.
 */
#define RUNS_SHORT	(BHEAP_NODES_PER_PAGE & 0x55555555U ? 4U : 8U)

static inline void runs_sort_short(struct bheap_node *run)
{
	u32 i, j;

	for (i = 1; i < RUNS_SHORT; i++) {
		struct bheap_node node = run[i];

		for (j = i; j && node_less(&node, &run[j - 1]); j--)
			run[j] = run[j - 1];
		run[j] = node;
	}
}

/* Sort @page, which is full; @scratch is another. */
static inline void runs_sort_page(struct bheap_node *page,
				  struct bheap_node *scratch)
{
	struct bheap_node *from = page, *to = scratch, *swap;
	struct runs runs;
	u32 i, len;

	if (runs_is_sorted(page, page + BHEAP_NODES_PER_PAGE))
		return;
	for (i = 0; i < BHEAP_NODES_PER_PAGE; i += RUNS_SHORT)
		runs_sort_short(page + i);
	for (len = RUNS_SHORT; len < BHEAP_NODES_PER_PAGE; len *= 2) {
		for (i = 0; i < BHEAP_NODES_PER_PAGE; i += 2 * len) {
			runs_init(&runs, from + i, from + i + len,
				  from + i + len, from + i + 2 * len);
			runs_take_least(&runs, to + i, 2 * len);
		}
		swap = from;
		from = to;
		to = swap;
	}
}

#endif /* CORE_RUNS_H */
