// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "lru.h"

#define NO_PAGE		UINT32_MAX
#define CLEAN		UINT32_MAX	/* not dirty with any number of pages */
#define MOMENTS		8		/* moments for each page */

static void *array(size_t nr, size_t size)
{
	void *memory = calloc(nr, size);

	if (!memory)
		die("no memory");
	return memory;
}

void lru_init(struct lru *lru, uint32_t nr)
{
	memset(lru, 0, sizeof(*lru));
	lru->nr = nr;
	lru->top = NO_PAGE;
	lru->clock = 1;
	lru->clock_max = nr * MOMENTS;
	lru->last = array(nr, sizeof(*lru->last));
	lru->dirty = array(nr, sizeof(*lru->dirty));
	memset(lru->dirty, 0xff, nr * sizeof(*lru->dirty));
	lru->page_at = array(lru->clock_max + 1, sizeof(*lru->page_at));
	lru->tree = array(lru->clock_max + 1, sizeof(*lru->tree));
	lru->depths = array(nr + 2, sizeof(*lru->depths));
	lru->written = array(nr + 2, sizeof(*lru->written));
}

void lru_deinit(struct lru *lru)
{
	free(lru->last);
	free(lru->dirty);
	free(lru->page_at);
	free(lru->tree);
	free(lru->depths);
	free(lru->written);
}

static void tree_add(struct lru *lru, uint32_t moment, uint32_t what)
{
	for (; moment <= lru->clock_max; moment += moment & -moment)
		lru->tree[moment] += what;
}

/* Returns how many pages were last touched at @moment or before. */
static uint32_t tree_sum(const struct lru *lru, uint32_t moment)
{
	uint32_t sum = 0;

	for (; moment; moment &= moment - 1)
		sum += lru->tree[moment];
	return sum;
}

/* Numbers the last touches from 1 without gaps. */
static void renumber(struct lru *lru)
{
	uint32_t from, to = 0, page;

	for (from = 1; from < lru->clock; from++) {
		page = lru->page_at[from];
		if (lru->last[page] != from)
			continue;
		lru->page_at[++to] = page;
		lru->last[page] = to;
	}
	lru->clock = to + 1;
	memset(lru->tree, 0, (lru->clock_max + 1) * sizeof(*lru->tree));
	for (from = 1; from <= to; from++)
		tree_add(lru, from, 1);
}

/* Handles a page that is not in memory with fewer than @depth resident pages.
 * Where it was dirty it has been written back, and returns clean.
 */
static void evicted(struct lru *lru, uint32_t page, uint32_t depth)
{
	if (lru->dirty[page] >= depth)
		return;
	lru->written[lru->dirty[page]]++;
	lru->written[depth]--;
	lru->dirty[page] = depth;
}

static uint32_t depth_of(const struct lru *lru, uint32_t page)
{
	return lru->touched - tree_sum(lru, lru->last[page]) + 1;
}

void lru_touch_other(struct lru *lru, uint32_t page)
{
	uint32_t depth;

	if (lru->clock > lru->clock_max)
		renumber(lru);
	if (lru->last[page]) {
		depth = depth_of(lru, page);
		lru->depths[depth]++;
		evicted(lru, page, depth);
		tree_add(lru, lru->last[page], -1);
	} else {
		lru->touched++;
	}
	lru->last[page] = lru->clock;
	lru->page_at[lru->clock] = page;
	tree_add(lru, lru->clock, 1);
	lru->clock++;
	lru->top = page;
}

void lru_counts(struct lru *lru, struct lru_count *counts)
{
	uint64_t in = 0, out = 0;
	uint32_t page, resident;

	for (page = 0; page < lru->nr; page++) {
		if (lru->last[page])
			evicted(lru, page, depth_of(lru, page));
	}
	for (resident = lru->nr; resident; resident--) {
		counts[resident - 1].in = in;
		in += lru->depths[resident];
	}
	for (resident = 1; resident <= lru->nr; resident++) {
		out += lru->written[resident];
		counts[resident - 1].out = out;
	}
}
