// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The binary heap of J. W. J. Williams, "Algorithm 232: Heapsort", CACM 7
 * (1964), in one array: the children of n are 2n and 2n + 1. A moving node
 * leaves a hole, and the hole moves; no nodes are exchanged.
 *
 * The lesser child is chosen by a branch, or without one. The branch is
 * mispredicted half of the time, but allows speculation on the predicted path.
 * Without it the heap is faster in the cache.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "heap.h"

/**
 * struct binary - a heap
 * @nodes: from 1, so that siblings share a line
 * @nr: how many
 */
struct binary {
	struct heap_node *nodes;
	uint32_t nr;
	size_t size;
};

static void *binary_create(uint32_t nr_max)
{
	struct binary *heap = calloc(1, sizeof(*heap));

	if (!heap)
		die("no memory");
	heap->size = ((size_t)nr_max + 1) * sizeof(*heap->nodes);
	heap->nodes = bench_map(heap->size);
	return heap;
}

static void binary_destroy(void *memory)
{
	struct binary *heap = memory;

	bench_unmap(heap->nodes, heap->size);
	free(heap);
}

static void binary_push(void *memory, const struct heap_node *node)
{
	struct binary *heap = memory;
	struct heap_node *nodes = heap->nodes;
	uint32_t hole = ++heap->nr;

	for (; hole > 1 && node->deadline < nodes[hole / 2].deadline; hole /= 2)
		nodes[hole] = nodes[hole / 2];
	nodes[hole] = *node;
}

static inline struct heap_node pop(void *memory, bool branch)
{
	struct binary *heap = memory;
	struct heap_node *nodes = heap->nodes, first = nodes[1];
	uint32_t end = heap->nr--, hole = 1, child;
	struct heap_node last = nodes[end];

	/* A missing right child is @end: the last node itself. */
	for (child = 2; child < end; child = 2 * hole) {
		if (!branch)
			child += nodes[child + 1].deadline <
				 nodes[child].deadline;
		else if (child + 1 < end && nodes[child + 1].deadline <
					    nodes[child].deadline)
			child++;
		if (last.deadline <= nodes[child].deadline)
			break;
		nodes[hole] = nodes[child];
		hole = child;
	}
	nodes[hole] = last;
	return first;
}

static struct heap_node binary_pop(void *memory)
{
	return pop(memory, true);
}

static struct heap_node binary_pop_free(void *memory)
{
	return pop(memory, false);
}

const struct heap_kind heap_binary = {
	.name = "binary",
	.create = binary_create,
	.destroy = binary_destroy,
	.push = binary_push,
	.pop = binary_pop,
};

const struct heap_kind heap_binary_free = {
	.name = "binary-branch-free",
	.create = binary_create,
	.destroy = binary_destroy,
	.push = binary_push,
	.pop = binary_pop_free,
};
