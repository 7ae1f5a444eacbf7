// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/bench.h"
#include "experiment.h"
#include "heaps.h"

const struct bheap_layout *const experiment_layouts[] = {
	&paper_binary,
	&paper_kamp,
	&bheap_subtree,
	&bheap_sorted,
	&bheap_radix,
	NULL,
};

void arena_init(struct arena *arena, u32 records)
{
	struct core_pages *pages = &arena->pages;
	u32 nr = bheap_pages_max(&bheap_radix, records), i;
	void **page;

	memset(arena, 0, sizeof(*arena));
	arena->memory = mmap(NULL, (size_t)nr * CORE_PAGE_SIZE,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pages->dir = calloc(nr / CORE_DIR_SIZE + 1, sizeof(*pages->dir));
	/* The tables of the directory, in one allocation. */
	page = calloc(nr + CORE_DIR_SIZE, sizeof(*page));
	if (arena->memory == MAP_FAILED || !pages->dir || !page)
		die("no memory");
	for (i = 0; i < nr; i++) {
		page[i] = arena->memory + (size_t)i * CORE_PAGE_SIZE;
		pages->dir[i >> CORE_DIR_SHIFT] =
			page + (i & ~(CORE_DIR_SIZE - 1));
	}
	pages->nr_max = nr;
}

void arena_deinit(struct arena *arena)
{
	munmap(arena->memory, (size_t)arena->pages.nr_max * CORE_PAGE_SIZE);
	free(arena->pages.dir[0]);
	free(arena->pages.dir);
}

u32 *experiment_keys(u32 records)
{
	u32 *keys = malloc(2 * (size_t)records * sizeof(*keys)), i;

	if (!keys)
		die("no memory");
	srandom(1);
	for (i = 0; i < 2 * records; i++)
		keys[i] = random();
	return keys;
}

static void put(const struct experiment *experiment, struct bheap *heap, u32 i)
{
	struct bheap_node node = {
		.deadline = experiment->keys[i],
		.slot = i,
	};

	if (bheap_push(heap, &node))
		die("%s: push failed", heap->layout->name);
	if (experiment->after)
		experiment->after(experiment->context);
}

static void find_first(struct bheap *heap)
{
	int ret;

	do {
		ret = bheap_find_first(heap, NULL, NULL, NULL);
	} while (!ret);
	if (ret < 0)
		die("%s: no first node", heap->layout->name);
}

static void take(const struct experiment *experiment, struct bheap *heap)
{
	find_first(heap);
	if (bheap_pop(heap))
		die("%s: pop failed", heap->layout->name);
	if (experiment->after)
		experiment->after(experiment->context);
}

void experiment_run(const struct experiment *experiment)
{
	u32 records = experiment->records, i, last = 0;
	struct bheap heap;

	bheap_init(&heap, experiment->layout, &experiment->arena->pages);
	for (i = 0; i < records; i++)
		put(experiment, &heap, i);
	for (; i < 2 * records; i++) {
		take(experiment, &heap);
		put(experiment, &heap, i);
	}
	while (heap.nr) {
		find_first(&heap);
		if (heap.first.deadline < last)
			die("%s: out of order", heap.layout->name);
		last = heap.first.deadline;
		take(experiment, &heap);
		records--;
	}
	if (records)
		die("%s: lost %u records", experiment->layout->name, records);
}
