// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The 4-ary heap in one array, aligned, as in libev: four siblings share a
 * cache line, so that a level costs one line, and there are half as many
 * levels. The first is element 3; the children of k are 4 (k - 2) and the three
 * after it. With and without branches, as in binary.c.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "heap.h"

#define FIRST	3U

/**
 * struct quad - a heap
 * @nodes: from FIRST
 * @end: after the last
 */
struct quad {
	struct heap_node *nodes;
	uint32_t end;
	size_t size;
};

static void *quad_create(uint32_t nr_max)
{
	struct quad *heap = calloc(1, sizeof(*heap));

	if (!heap)
		die("no memory");
	heap->size = ((size_t)FIRST + nr_max) * sizeof(*heap->nodes);
	heap->nodes = bench_map(heap->size);
	heap->end = FIRST;
	return heap;
}

static void quad_destroy(void *memory)
{
	struct quad *heap = memory;

	bench_unmap(heap->nodes, heap->size);
	free(heap);
}

static inline uint32_t parent_of(uint32_t k)
{
	return k / 4 + 2;
}

static inline uint32_t child_of(uint32_t k)
{
	return 4 * (k - 2);
}

static inline bool less(const struct heap_node *nodes, uint32_t a, uint32_t b)
{
	return nodes[a].deadline < nodes[b].deadline;
}

/* Returns the lesser of two by arithmetic, without a branch. */
static inline uint32_t lesser(const struct heap_node *nodes, uint32_t a,
			      uint32_t b)
{
	return a + (-(uint32_t)less(nodes, b, a) & (b - a));
}

static void quad_push(void *memory, const struct heap_node *node)
{
	struct quad *heap = memory;
	struct heap_node *nodes = heap->nodes;
	uint32_t hole = heap->end++;

	for (; hole > FIRST &&
	     node->deadline < nodes[parent_of(hole)].deadline;
	     hole = parent_of(hole))
		nodes[hole] = nodes[parent_of(hole)];
	nodes[hole] = *node;
}

static inline uint32_t least_child(const struct heap_node *nodes,
				   uint32_t child, uint32_t end, bool branch)
{
	uint32_t least = child, i;

	if (!branch && child + 3 < end)
		return lesser(nodes, lesser(nodes, child, child + 1),
			      lesser(nodes, child + 2, child + 3));
	if (end > child + 4)
		end = child + 4;
	for (i = child + 1; i < end; i++)
		if (less(nodes, i, least))
			least = i;
	return least;
}

static inline struct heap_node pop(void *memory, bool branch)
{
	struct quad *heap = memory;
	struct heap_node *nodes = heap->nodes, first = nodes[FIRST];
	uint32_t end = --heap->end, hole = FIRST, child;
	struct heap_node last = nodes[end];

	for (child = child_of(hole); child < end; child = child_of(hole)) {
		child = least_child(nodes, child, end, branch);
		if (last.deadline <= nodes[child].deadline)
			break;
		nodes[hole] = nodes[child];
		hole = child;
	}
	nodes[hole] = last;
	return first;
}

static struct heap_node quad_pop(void *memory)
{
	return pop(memory, true);
}

static struct heap_node quad_pop_free(void *memory)
{
	return pop(memory, false);
}

const struct heap_kind heap_quad = {
	.name = "4-ary",
	.create = quad_create,
	.destroy = quad_destroy,
	.push = quad_push,
	.pop = quad_pop,
};

const struct heap_kind heap_quad_free = {
	.name = "4-ary-branch-free",
	.create = quad_create,
	.destroy = quad_destroy,
	.push = quad_push,
	.pop = quad_pop_free,
};
