// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The binary heap of J. W. J. Williams, "Algorithm 232: Heapsort", CACM 7
 * (1964), in one array from 1: the children of n are 2n and 2n + 1. A moving
 * node leaves a hole, and the hole moves; no nodes are exchanged.
 */
#include "heaps.h"

static inline struct bheap_node *nodes_of(const struct bheap *heap)
{
	return core_page_peek(heap->pages, 0);
}

/* Callers know the first without touching its page. */
static inline void place(struct bheap *heap, u32 pos,
			 const struct bheap_node *node)
{
	nodes_of(heap)[pos] = *node;
	if (pos == 1)
		heap->first = *node;
}

static int binary_push(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_node *nodes = nodes_of(heap);
	u32 hole = ++heap->nr;

	for (; hole > 1; hole /= 2) {
		if (nodes[hole / 2].deadline <= node->deadline)
			break;
		place(heap, hole, &nodes[hole / 2]);
	}
	place(heap, hole, node);
	return 0;
}

static int binary_pop(struct bheap *heap)
{
	struct bheap_node *nodes = nodes_of(heap);
	u32 end = heap->nr--, hole = 1, child;
	struct bheap_node last = nodes[end];

	for (; 2 * hole < end; hole = child) {
		child = 2 * hole;
		if (child + 1 < end &&
		    nodes[child + 1].deadline < nodes[child].deadline)
			child++;
		if (last.deadline <= nodes[child].deadline)
			break;
		place(heap, hole, &nodes[child]);
	}
	place(heap, hole, &last);
	return 0;
}

const struct bheap_layout paper_binary = {
	.name = "binary",
	.push = binary_push,
	.pop = binary_pop,
};
