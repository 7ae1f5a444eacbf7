// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Binary and 4-ary heaps in one array (bench/sift.h), with and without branches.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "heap.h"

/**
 * struct array - a heap
 * @nodes: from sift_first()
 * @end: after the last
 */
struct array {
	struct heap_node *nodes;
	uint32_t end;
	size_t size;
};

#define SIFT_HEAP	struct array
#define SIFT_NODE	struct heap_node

#include "bench/sift.h"

static inline void sift_moved(struct array *heap, uint32_t pos,
			      const struct heap_node *node)
{
	(void)heap;
	(void)pos;
	(void)node;
}

static void *create(uint32_t nr_max, uint32_t d)
{
	struct array *heap = calloc(1, sizeof(*heap));

	if (!heap)
		die("no memory");
	heap->end = sift_first(d);
	heap->size = ((size_t)heap->end + nr_max) * sizeof(*heap->nodes);
	heap->nodes = bench_map(heap->size);
	return heap;
}

static void destroy(void *memory)
{
	struct array *heap = memory;

	bench_unmap(heap->nodes, heap->size);
	free(heap);
}

static inline void push(struct array *heap, const struct heap_node *node,
			uint32_t d)
{
	sift_up(heap, heap->nodes, heap->end++, node, d);
}

static inline struct heap_node pop(struct array *heap, uint32_t d, bool branch)
{
	struct heap_node *nodes = heap->nodes, first = nodes[sift_first(d)];
	struct heap_node last = nodes[--heap->end];

	sift_down(heap, nodes, sift_first(d), heap->end, &last, d, branch);
	return first;
}

static void *binary_create(uint32_t nr_max)
{
	return create(nr_max, 2);
}

static void binary_push(void *heap, const struct heap_node *node)
{
	push(heap, node, 2);
}

static struct heap_node binary_pop(void *heap)
{
	return pop(heap, 2, true);
}

static struct heap_node binary_pop_free(void *heap)
{
	return pop(heap, 2, false);
}

static void *quad_create(uint32_t nr_max)
{
	return create(nr_max, 4);
}

static void quad_push(void *heap, const struct heap_node *node)
{
	push(heap, node, 4);
}

static struct heap_node quad_pop(void *heap)
{
	return pop(heap, 4, true);
}

static struct heap_node quad_pop_free(void *heap)
{
	return pop(heap, 4, false);
}

#define ARRAY(what, its_create, its_push, its_pop) {	\
	.name = what,					\
	.create = its_create,				\
	.destroy = destroy,				\
	.push = its_push,				\
	.pop = its_pop,					\
}

const struct heap_kind heap_binary =
	ARRAY("binary", binary_create, binary_push, binary_pop);
const struct heap_kind heap_binary_free =
	ARRAY("binary-branch-free", binary_create, binary_push, binary_pop_free);
const struct heap_kind heap_quad =
	ARRAY("4-ary", quad_create, quad_push, quad_pop);
const struct heap_kind heap_quad_free =
	ARRAY("4-ary-branch-free", quad_create, quad_push, quad_pop_free);
