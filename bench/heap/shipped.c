// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The heaps of core/, as shipped. A call also goes through their own table of
 * functions.
 */
#include "bench/bench.h"
#include "bench/pages.h"
#include "core/bheap.h"
#include "heap.h"

static_assert(sizeof(struct heap_node) == sizeof(struct bheap_node),
	      "nodes as they ship");

struct shipped {
	struct bheap heap;
	struct run run;
	void *memory;
	size_t size;
};

static void *create(const struct bheap_layout *layout, uint32_t nr_max)
{
	struct shipped *shipped = calloc(1, sizeof(*shipped));
	u32 pages = bheap_pages_max(layout, nr_max), i;

	if (!shipped)
		die("no memory");
	shipped->size = run_size(pages);
	shipped->memory = bench_map(shipped->size);
	run_init(&shipped->run, shipped->memory, pages);
	/* The other heaps need no directory: create this one in advance. */
	for (i = 0; i < pages; i++)
		core_page(&shipped->run.pages, i);
	bheap_init(&shipped->heap, layout, &shipped->run.pages);
	return shipped;
}

static void *subtree_create(uint32_t nr_max)
{
	return create(&bheap_subtree, nr_max);
}

static void *sorted_create(uint32_t nr_max)
{
	return create(&bheap_sorted, nr_max);
}

static void *radix_create(uint32_t nr_max)
{
	return create(&bheap_radix, nr_max);
}

static void destroy(void *heap)
{
	struct shipped *shipped = heap;

	run_deinit(&shipped->run);
	bench_unmap(shipped->memory, shipped->size);
	free(shipped);
}

static void push(void *heap, const struct heap_node *node)
{
	struct shipped *shipped = heap;
	struct bheap_node own = {
		.deadline = node->deadline,
		.slot = node->slot,
		.stamp = node->stamp,
	};

	if (bheap_push(&shipped->heap, &own))
		die("push failed");
}

static struct heap_node pop(void *heap)
{
	struct shipped *shipped = heap;
	struct heap_node node;
	int ret;

	do {
		ret = bheap_find_first(&shipped->heap, NULL, NULL, NULL);
	} while (!ret);
	if (ret < 0)
		die("no first node");
	node = (struct heap_node) {
		.deadline = shipped->heap.first.deadline,
		.slot = shipped->heap.first.slot,
		.stamp = shipped->heap.first.stamp,
	};
	if (bheap_pop(&shipped->heap))
		die("pop failed");
	return node;
}

const struct heap_kind heap_subtree = {
	.name = "subtree",
	.create = subtree_create,
	.destroy = destroy,
	.push = push,
	.pop = pop,
};

const struct heap_kind heap_sorted = {
	.name = "sorted",
	.create = sorted_create,
	.destroy = destroy,
	.push = push,
	.pop = pop,
};

const struct heap_kind heap_radix = {
	.name = "radix",
	.create = radix_create,
	.destroy = destroy,
	.push = push,
	.pop = pop,
};
