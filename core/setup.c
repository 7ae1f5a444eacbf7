// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Set timers up, and drop all of them. */
#include "timers.h"

/* Returns the bound on nodes: the live ones, as many again, and the rest of a
 * sweep.
 */
static u64 nodes_max(u64 limit)
{
	return 2 * limit + 4 * (BHEAP_NODES_PER_PAGE + TIMERS_SWEEP_EVERY);
}

u32 timers_pages_max(const struct timers_config *config, enum timers_pages which)
{
	switch (which) {
	case TIMERS_PAGES_HEAP:
		return bheap_pages_max(config->layout,
				       nodes_max(config->limit));
	case TIMERS_PAGES_SLOTS:
		return slots_pages_max(config->limit);
	case TIMERS_PAGES_INDEX:
		return index_pages_max(config->limit);
	default:
		return 0;
	}
}

int timers_setup(struct timers *timers, const struct timers_config *config,
		 struct core_pages *pages[TIMERS_PAGES_NR])
{
	if (config->mode & ~(u32)EXPIRY_MODE_ALL)
		return -EINVAL;
	if (!config->limit || config->limit > TIMERS_MAX)
		return -EINVAL;

	memset(timers, 0, sizeof(*timers));
	timers->mode = config->mode;
	timers->limit = config->limit;
	bheap_init(&timers->heap, config->layout, pages[TIMERS_PAGES_HEAP]);
	slots_init(&timers->slots, pages[TIMERS_PAGES_SLOTS]);
	index_init(&timers->index, pages[TIMERS_PAGES_INDEX], config->seed);
	/* A cursor from an earlier life of the queue, whose timers were in other slots, is
	 * refused then. Clients see the number: as a hash it keeps the seed secret.
	 */
	timers->moves = index_hash(&timers->index, 0);
	timers->top_is_live = true;
	return 0;
}

int timers_reserve(struct timers *timers, u64 nr)
{
	return timers_is_keyed(timers) ? index_reserve(&timers->index, nr) : 0;
}

void timers_reset(struct timers *timers)
{
	u64 now = timers->heap.now;

	bheap_init(&timers->heap, timers->heap.layout, timers->heap.pages);
	timers->heap.now = now;
	slots_reset(&timers->slots);
	index_reset(&timers->index);
	timers->armed = 0;
	timers->unacked = 0;
	timers->top_is_live = true;
}
