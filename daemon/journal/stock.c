// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "daemon/journal/segment.h"
#include "daemon/journal/stock.h"
#include "daemon/util/util.h"

static int push(struct stock_list *list, uint64_t number, uint64_t size)
{
	uint32_t max = list->max ? 2 * list->max : 8;
	struct stock_segment *all;

	if (list->nr == list->max) {
		all = realloc(list->all, max * sizeof(*all));
		if (!all)
			return -ENOMEM;
		list->all = all;
		list->max = max;
	}
	list->all[list->nr++] = (struct stock_segment) { number, size };
	return 0;
}

int stock_push_old(struct stock *stock, uint64_t number, uint64_t size)
{
	return push(&stock->old, number, size);
}

int stock_push_spare(struct stock *stock, uint64_t number, uint64_t size)
{
	int r;

	/* A block must fit; the file of another setting stays. */
	if (size < stock->size_min || size % stock->disk->align)
		return 0;
	r = push(&stock->spare, number, size);
	if (!r)
		stock->spare_bytes += size;
	return r;
}

struct stock_segment stock_pop_spare(struct stock *stock)
{
	struct stock_segment last = stock->spare.all[--stock->spare.nr];

	stock->spare_bytes -= last.size;
	return last;
}

bool stock_release(struct stock *stock, uint64_t number, uint64_t keep)
{
	struct stock_segment *old = stock->old.all;
	uint32_t i, kept = 0, nr = stock->old.nr;

	for (i = 0; i < nr; i++)
		if (old[i].number >= number ||
		    stock_push_spare(stock, old[i].number, old[i].size) < 0)
			old[kept++] = old[i];
	stock->old.nr = kept;
	stock->spare_bytes_max = keep;
	return kept < nr;
}

/* -------------------------------------------------------------------- trimming */

static void trim_run(struct journal_job *job)
{
	struct stock *stock = container_of(job, struct stock, trim);

	/* If it fails, the next start tries again. */
	if (segment_unlink(stock->disk, stock->thread, stock->trimmed.number))
		stock->trimmed.size = 0;
}

static void trim_done(struct journal_job *job)
{
	struct stock *stock = container_of(job, struct stock, trim);

	stock->trimming = false;
	counter_add(stock->size, -stock->trimmed.size);
}

void stock_trim(struct stock *stock, struct journal_runner *runner)
{
	if (stock->trimming || !stock->spare.nr ||
	    stock->spare_bytes <= stock->spare_bytes_max)
		return;
	stock->trimmed = stock_pop_spare(stock);
	stock->trimming = true;
	runner->start(runner, &stock->trim);
}

/* ------------------------------------------------------------------- beginning */

void stock_init(struct stock *stock, struct disk *disk, uint16_t thread,
		uint64_t size_min, counter_t *size)
{
	*stock = (struct stock) {
		.disk = disk,
		.thread = thread,
		.size_min = size_min,
		.size = size,
		.spare_bytes_max = UINT64_MAX,
		.trim = { .run = trim_run, .done = trim_done },
	};
}

void stock_deinit(struct stock *stock)
{
	free(stock->old.all);
	free(stock->spare.all);
}
