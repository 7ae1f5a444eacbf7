// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The page-ins and page-outs of the experiment. With --resident one line of
 * text, else one JSON object a layout with all of them, by number of resident
 * pages from 1. The size of an element is fixed: the program exists twice.
 */
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "experiment.h"
#include "lru.h"
#include "watch.h"

static void touch(void *context, uint32_t page, bool write)
{
	lru_touch(context, page, write);
}

/* Runs one layout; the result is to be freed. *@pages: how many were ever
 * touched.
 */
static struct lru_count *trace(const struct bheap_layout *layout, u32 records,
			       u32 *pages)
{
	struct experiment experiment = {
		.layout = layout,
		.records = records,
		.keys = experiment_keys(records),
	};
	struct lru_count *counts;
	struct arena arena;
	struct lru lru;

	arena_init(&arena, records);
	lru_init(&lru, arena.pages.nr_max);
	experiment.arena = &arena;

	watch(arena.memory, arena.pages.nr_max, CORE_PAGE_SHIFT, touch, &lru);
	experiment_run(&experiment);
	watch(NULL, 0, 0, NULL, NULL);

	counts = calloc(lru.nr, sizeof(*counts));
	if (!counts)
		die("no memory");
	lru_counts(&lru, counts);
	*pages = lru.touched;
	lru_deinit(&lru);
	arena_deinit(&arena);
	free(experiment.keys);
	return counts;
}

static void print_one(const struct bheap_layout *layout, u32 records,
		      u32 resident)
{
	struct lru_count *counts, none = { 0 }, *count;
	u32 pages;

	counts = trace(layout, records, &pages);
	count = resident > pages ? &none : &counts[resident - 1];
	printf("layout=%s element=%zu resident=%u transfers_per_op=%.4f "
	       "in=%llu out=%llu\n",
	       layout->name, sizeof(struct bheap_node), resident,
	       (double)(count->in + count->out) / EXPERIMENT_OPS / records,
	       (unsigned long long)count->in, (unsigned long long)count->out);
	free(counts);
}

static void print_all(const struct bheap_layout *layout, u32 records)
{
	struct lru_count *counts;
	u32 pages, i;

	counts = trace(layout, records, &pages);
	printf("{\"layout\":\"%s\",\"element\":%zu,\"records\":%u,"
	       "\"operations\":%u,\"pages\":%u,\"in\":[",
	       layout->name, sizeof(struct bheap_node), records,
	       records * EXPERIMENT_OPS, pages);
	for (i = 0; i < pages; i++)
		printf("%s%llu", i ? "," : "",
		       (unsigned long long)counts[i].in);
	printf("],\"out\":[");
	for (i = 0; i < pages; i++)
		printf("%s%llu", i ? "," : "",
		       (unsigned long long)counts[i].out);
	printf("]}\n");
	free(counts);
}

int main(int argc, char **argv)
{
	static u32 records = EXPERIMENT_RECORDS, resident;
	static const char *only;
	static const struct option_row options[] = {
		{ "records", "N", .number = &records, .least = 1 },
		{ "layout", "NAME", .text = &only },
		{ "resident", "PAGES", .number = &resident, .least = 1 },
		{ 0 }
	};
	const struct bheap_layout *const *layout;
	bool found = false;

	options_parse(argc, argv, options, "");
	for (layout = experiment_layouts; *layout; layout++) {
		if (only && strcmp(only, (*layout)->name))
			continue;
		found = true;
		if (resident)
			print_one(*layout, records, resident);
		else
			print_all(*layout, records);
		fflush(stdout);
	}
	if (!found)
		die("no such layout: %s", only);
	return 0;
}
