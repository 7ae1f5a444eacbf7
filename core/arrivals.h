/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * A small heap in one page: 4-ary, siblings in a cache line. Element e has the
 * children 4e + 4 to 4e + 7; the first four have no parent.
 */
#ifndef CORE_ARRIVALS_H
#define CORE_ARRIVALS_H

#include "runs.h"

#define ARRIVALS_GROUP	4U

/* @b if its node is less, else @a. Said so that no compiler makes a branch. */
static inline u32 arrivals_less(const struct bheap_node *page, u32 a, u32 b)
{
	return a + ((b - a) & -(u32)node_less(page + b, page + a));
}

/* The least of the siblings from @from on, the last of all being @end - 1. */
static inline u32 arrivals_least(const struct bheap_node *page, u32 from,
				 u32 end)
{
	u32 i, least = from;

	if (likely(end >= from + ARRIVALS_GROUP))
		return arrivals_less(page, arrivals_less(page, from, from + 1),
				     arrivals_less(page, from + 2, from + 3));
	for (i = from + 1; i < end; i++)
		least = arrivals_less(page, least, i);
	return least;
}

/* Put @node where there is none, at @elem or above. Returns where. */
static inline u32 arrivals_up(struct bheap_node *page, u32 elem,
			      const struct bheap_node *node)
{
	while (elem >= ARRIVALS_GROUP) {
		u32 parent = elem / ARRIVALS_GROUP - 1;

		if (!node_less(node, page + parent))
			break;
		page[elem] = page[parent];
		elem = parent;
	}
	page[elem] = *node;
	return elem;
}

/* The same, at @elem or below, with elements up to @end. */
static inline void arrivals_down(struct bheap_node *page, u32 elem, u32 end,
				 const struct bheap_node *node)
{
	u32 child;

	while ((child = elem * ARRIVALS_GROUP + ARRIVALS_GROUP) < end) {
		child = arrivals_least(page, child, end);
		if (!node_less(page + child, node))
			break;
		page[elem] = page[child];
		elem = child;
	}
	page[elem] = *node;
}

/* Fill the place of @elem with the last, of @nr. Returns true if that went
 * further up, so that what stood above is at @elem now.
 */
static inline bool arrivals_remove(struct bheap_node *page, u32 elem, u32 nr)
{
	struct bheap_node last = page[--nr];

	if (elem == nr)
		return false;
	if (arrivals_up(page, elem, &last) != elem)
		return true;
	arrivals_down(page, elem, nr, &last);
	return false;
}

static inline bool arrivals_is_heap(const struct bheap_node *page, u32 nr)
{
	u32 i;

	for (i = ARRIVALS_GROUP; i < nr; i++)
		if (node_less(page + i, page + i / ARRIVALS_GROUP - 1))
			return false;
	return true;
}

#endif /* CORE_ARRIVALS_H */
