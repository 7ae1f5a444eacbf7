/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The insertion heap, in one page: 4-ary, with siblings in one cache line. The
 * children of element e are 4e + 4 to 4e + 7; the first four have no parent.
 */
#ifndef CORE_INSERT_HEAP_H
#define CORE_INSERT_HEAP_H

#include "runs.h"

#define INSERT_HEAP_GROUP	4U

/* Returns @b if its node is less, else @a, without a branch. */
static inline u32 insert_heap_less(const struct bheap_node *page, u32 a, u32 b)
{
	return a + ((b - a) & -(u32)node_less(page + b, page + a));
}

/* Returns the least of the siblings from @from on, below @end. */
static inline u32 insert_heap_least(const struct bheap_node *page, u32 from,
				    u32 end)
{
	u32 i, least = from;

	if (likely(end >= from + INSERT_HEAP_GROUP))
		return insert_heap_less(page,
					insert_heap_less(page, from, from + 1),
					insert_heap_less(page, from + 2,
							 from + 3));
	for (i = from + 1; i < end; i++)
		least = insert_heap_less(page, least, i);
	return least;
}

/* Puts @node into the gap at @elem or above it; returns its position. */
static inline u32 insert_heap_up(struct bheap_node *page, u32 elem,
				 const struct bheap_node *node)
{
	while (elem >= INSERT_HEAP_GROUP) {
		u32 parent = elem / INSERT_HEAP_GROUP - 1;

		if (!node_less(node, page + parent))
			break;
		page[elem] = page[parent];
		elem = parent;
	}
	page[elem] = *node;
	return elem;
}

/* Puts @node into the gap at @elem or below it, among elements up to @end. */
static inline void insert_heap_down(struct bheap_node *page, u32 elem, u32 end,
				    const struct bheap_node *node)
{
	u32 child;

	while ((child = elem * INSERT_HEAP_GROUP + INSERT_HEAP_GROUP) < end) {
		child = insert_heap_least(page, child, end);
		if (!node_less(page + child, node))
			break;
		page[elem] = page[child];
		elem = child;
	}
	page[elem] = *node;
}

/* Removes @elem by moving the last of @nr elements into its gap. Returns true
 * if that element moved up: its former ancestor is then at @elem.
 */
static inline bool insert_heap_remove(struct bheap_node *page, u32 elem,
				      u32 nr)
{
	struct bheap_node last = page[--nr];

	if (elem == nr)
		return false;
	if (insert_heap_up(page, elem, &last) != elem)
		return true;
	insert_heap_down(page, elem, nr, &last);
	return false;
}

static inline bool insert_heap_is_ordered(const struct bheap_node *page, u32 nr)
{
	u32 i;

	for (i = INSERT_HEAP_GROUP; i < nr; i++)
		if (node_less(page + i, page + i / INSERT_HEAP_GROUP - 1))
			return false;
	return true;
}

#endif /* CORE_INSERT_HEAP_H */
