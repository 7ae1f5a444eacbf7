// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The B-heap of P.-H. Kamp, "You're Doing It Wrong", ACM Queue 8 (2010), to the
 * formula: a binary heap in one array from 1 that fills its pages vertically.
 *
 * In the first page element e has children 2e and 2e + 1, as usual. In any
 * other page elements 0 and 1 are siblings, entered from above. They have one
 * child each, elements 2 and 3: the generation in which the tree does not
 * expand. From there on it is 2e and 2e + 1 again. Each element of a page's
 * lower half owns a page; elements 0 and 1 of that page are its children:
 *
 *	page p, element e >= HALF  ->  page p * HALF + (e - HALF) + 1
 */
#include "heaps.h"

#define NODES	BHEAP_NODES_PER_PAGE
#define HALF	(NODES / 2)

/* Callers know the first without touching its page. */
static inline void place(struct bheap *heap, struct bheap_node *nodes, u32 pos,
			 const struct bheap_node *node)
{
	nodes[pos] = *node;
	if (pos == 1)
		heap->first = *node;
}

static inline u32 parent_of(u32 pos)
{
	u32 page = pos / NODES, elem = pos % NODES;

	if (!page || elem > 3)
		return pos - elem + elem / 2;
	if (elem > 1)
		return pos - 2;
	page--;
	return page / HALF * NODES + HALF + page % HALF;
}

/* Returns the first child; *@nr: how many there are. */
static inline u32 child_of(u32 pos, u32 *nr)
{
	u32 page = pos / NODES, elem = pos % NODES;

	*nr = 2;
	if (elem >= HALF)
		return (page * HALF + (elem - HALF) + 1) * NODES;
	if (page && elem < 2) {
		*nr = 1;
		return pos + 2;
	}
	return pos + elem;
}

static int kamp_push(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_node *nodes = core_page_peek(heap->pages, 0);
	u32 hole = ++heap->nr, parent;

	for (; hole > 1; hole = parent) {
		parent = parent_of(hole);
		if (nodes[parent].deadline <= node->deadline)
			break;
		place(heap, nodes, hole, &nodes[parent]);
	}
	place(heap, nodes, hole, node);
	return 0;
}

static int kamp_pop(struct bheap *heap)
{
	struct bheap_node *nodes = core_page_peek(heap->pages, 0);
	u32 end = heap->nr--, hole = 1, child, nr;
	struct bheap_node last = nodes[end];

	for (; (child = child_of(hole, &nr)) < end; hole = child) {
		if (nr > 1 && child + 1 < end &&
		    nodes[child + 1].deadline < nodes[child].deadline)
			child++;
		if (last.deadline <= nodes[child].deadline)
			break;
		place(heap, nodes, hole, &nodes[child]);
	}
	place(heap, nodes, hole, &last);
	return 0;
}

const struct bheap_layout paper_kamp = {
	.name = "kamp",
	.push = kamp_push,
	.pop = kamp_pop,
};
