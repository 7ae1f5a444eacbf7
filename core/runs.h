/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Merge sorted runs of nodes, and sort a page of nodes.
 *
 * Two runs of n nodes each are merged from both ends at once. n steps find the
 * n least from one end and the n greatest from the other. Neither direction can
 * reach the end of a run before its last step, so the loop only compares two
 * nodes. That comparison is unpredictable and is made without a branch. Only
 * the next step in the same direction depends on it; the other direction fills
 * the latency.
 */
#ifndef CORE_RUNS_H
#define CORE_RUNS_H

#include "bheap.h"

static inline bool node_less(const struct bheap_node *a,
			     const struct bheap_node *b)
{
	return a->deadline < b->deadline;
}

/* Returns @b if @is_b, else @a, without a branch. */
static inline const struct bheap_node *
runs_either(const struct bheap_node *a, const struct bheap_node *b, bool is_b)
{
	unsigned long x = (unsigned long)a, y = (unsigned long)b;

	return (const void *)(x ^ ((x ^ y) & -(unsigned long)is_b));
}

/*
 * Merges the sorted runs @a and @b of @nr nodes each. The least @nr go to
 * @least, the others to @greatest; neither may overlap @a or @b. Of equal
 * nodes, those of @a are the lesser, seen from either end.
 */
static inline void runs_merge(const struct bheap_node *a,
			      const struct bheap_node *b, u32 nr,
			      struct bheap_node *least,
			      struct bheap_node *greatest)
{
	const struct bheap_node *a_last = a + nr - 1, *b_last = b + nr - 1;

	/* Runs often do not overlap: deadlines tend to be in order. */
	if (!node_less(b, a_last)) {
		memcpy(least, a, nr * sizeof(*a));
		memcpy(greatest, b, nr * sizeof(*b));
		return;
	}
	greatest += nr;
	while (nr--) {
		bool is_b = node_less(b, a), is_a = node_less(b_last, a_last);

		*least++ = *runs_either(a, b, is_b);
		*--greatest = *runs_either(b_last, a_last, is_a);
		a += !is_b;
		b += is_b;
		a_last -= is_a;
		b_last -= !is_a;
	}
}

/*
 * Moves the @count greatest of the sorted runs @a and @b to below @end. Updates
 * *@a_nr and *@b_nr to the nodes left. May overwrite the nodes of @a that were
 * already read.
 */
static inline void runs_merge_greatest(const struct bheap_node *a, u32 *a_nr,
				       const struct bheap_node *b, u32 *b_nr,
				       u32 count, struct bheap_node *end)
{
	u32 i = *a_nr, j = *b_nr;

	for (; count && i && j; count--) {
		bool is_a = node_less(b + j - 1, a + i - 1);

		*--end = *runs_either(b + j - 1, a + i - 1, is_a);
		i -= is_a;
		j -= !is_a;
	}
	for (; count && i; count--)
		*--end = a[--i];
	for (; count && j; count--)
		*--end = b[--j];
	*a_nr = i;
	*b_nr = j;
}

/* Returns how many of the first @max nodes of a sorted run are not later than @last.
 */
static inline u32 runs_count(const struct bheap_node *run, u32 max, u64 last)
{
	u32 nr;

	if (max && run[max - 1].deadline <= last)
		return max;
	for (nr = 0; nr < max && run[nr].deadline <= last; nr++)
		;
	return nr;
}

static inline bool runs_is_sorted(const struct bheap_node *node,
				  const struct bheap_node *end)
{
	for (; node + 1 < end; node++)
		if (node_less(node + 1, node))
			return false;
	return true;
}

/* Sorts four nodes into another place. A node's rank is the number of nodes
 * before it, computed without a branch.
 */
static inline void runs_sort_four(const struct bheap_node *from,
				  struct bheap_node *to)
{
	u32 less10 = node_less(from + 1, from), less20, less21;
	u32 less30, less31, less32;

	less20 = node_less(from + 2, from);
	less21 = node_less(from + 2, from + 1);
	less30 = node_less(from + 3, from);
	less31 = node_less(from + 3, from + 1);
	less32 = node_less(from + 3, from + 2);
	to[less10 + less20 + less30] = from[0];
	to[1 - less10 + less21 + less31] = from[1];
	to[2 - less20 - less21 + less32] = from[2];
	to[3 - less30 - less31 - less32] = from[3];
}

/* Sorts the full page @page, with @scratch as second page. Returns the one that
 * holds the result.
 */
static inline struct bheap_node *runs_sort_page(struct bheap_node *page,
						struct bheap_node *scratch)
{
	struct bheap_node *from = scratch, *to = page, *swap;
	u32 i, len;

	if (runs_is_sorted(page, page + BHEAP_NODES_PER_PAGE))
		return page;
	for (i = 0; i < BHEAP_NODES_PER_PAGE; i += 4)
		runs_sort_four(page + i, scratch + i);
	for (len = 4; len < BHEAP_NODES_PER_PAGE; len *= 2) {
		for (i = 0; i < BHEAP_NODES_PER_PAGE; i += 2 * len)
			runs_merge(from + i, from + i + len, len, to + i,
				   to + i + len);
		swap = from;
		from = to;
		to = swap;
	}
	return from;
}

#endif /* CORE_RUNS_H */
