// SPDX-License-Identifier: LGPL-2.1-or-later
/* The textbooks' binary heap in one array, from element 1 (bench/sift.h). */
#include "heaps.h"

#define SIFT_HEAP	struct bheap
#define SIFT_NODE	struct bheap_node

#include "bench/sift.h"

/* Callers know the first without touching its page. */
static inline void sift_moved(struct bheap *heap, u32 pos,
			      const struct bheap_node *node)
{
	if (pos == 1)
		heap->first = *node;
}

static int binary_push(struct bheap *heap, const struct bheap_node *node)
{
	sift_up(heap, core_page_peek(heap->pages, 0), ++heap->nr, node, 2);
	return 0;
}

static int binary_pop(struct bheap *heap)
{
	struct bheap_node *nodes = core_page_peek(heap->pages, 0);
	u32 end = heap->nr--;
	struct bheap_node last = nodes[end];

	sift_down(heap, nodes, 1, end, &last, 2, true);
	return 0;
}

const struct bheap_layout paper_binary = {
	.name = "binary",
	.push = binary_push,
	.pop = binary_pop,
};
