/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Merging sorted runs of nodes, and sorting a page of them.
 *
 * Two runs of n nodes each are merged from both ends at once: n steps find the
 * n least, beginning at the least, and in each of them one of the n greatest is
 * found, too, beginning at the greatest. Neither way can come to the end of a
 * run before its last step, so that the loop asks nothing but which of two nodes
 * is less. That is as good as chance, and chosen without a branch; what waits
 * for it is the next step of the same way only, and the other way fills the
 * time.
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

/*
 * Merge the sorted runs @a and @b of @nr nodes each: the least @nr go to @least,
 * the others to @greatest, where nothing of @a and @b may lie. Of equals, those
 * of @a are the lesser, seen from either end.
 */
static inline void runs_merge(const struct bheap_node *a,
			      const struct bheap_node *b, u32 nr,
			      struct bheap_node *least,
			      struct bheap_node *greatest)
{
	const struct bheap_node *a_last = a + nr - 1, *b_last = b + nr - 1;

	/* Runs that do not overlap are common: deadlines tend to be in order. */
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
 * Move the @count greatest of the sorted runs @a and @b, of *@a_nr and *@b_nr
 * nodes, to below @end, and leave in those how many were not. The place of @a
 * may be moved to where it is not read any more.
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

static inline bool runs_is_sorted(const struct bheap_node *node,
				  const struct bheap_node *end)
{
	for (; node + 1 < end; node++)
		if (node_less(node + 1, node))
			return false;
	return true;
}

/* Sort four nodes into another place. Each goes where its rank says, which is
 * how many come before it: no branch here either.
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

/* Sort @page, which is full; @scratch is another. Returns the one of them where
 * the nodes are then.
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
