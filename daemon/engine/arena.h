/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arena: all pages of all embedded queues.
 *
 * There is one for each thread, and it hands out single pages. A queue of ten
 * timers costs a few pages, and one of ten million only those that it fills.
 * Pages are dense in a few large mappings, which the kernel may back by huge
 * pages and may swap.
 *
 * Freed pages are kept for the next queue. Above a limit their memory is
 * returned to the kernel in bounded steps.
 */
#ifndef DAEMON_ARENA_H
#define DAEMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/util/counter.h"

/**
 * struct budget - limit of all arenas together
 * @pages: pages handed out
 * @pages_max: most at once (const)
 * @pages_reserved: of these, for what makes no queue larger (const)
 */
struct budget {
	share_t pages;
	uint64_t pages_max;
	uint64_t pages_reserved;
};

/* Initializes a budget. @bytes_max: most memory. */
void budget_init(struct budget *budget, uint64_t bytes_max);

/**
 * struct arena - an arena
 * @budget: shared with other arenas
 * @spares_reserve: the owner's: what asks for pages now may make a queue larger
 * @used: pages handed out
 * @region: the newest mapping
 * @fresh: pages at its end, never handed out
 * @regions: all mappings; @nr_regions of them
 * @kept: free pages with memory; @nr_kept of them
 * @bare: free pages without memory; @nr_bare of them
 */
struct arena {
	struct budget *budget;
	bool spares_reserve;
	uint64_t used;
	uint64_t fresh;
	char *region;
	void **regions;
	uint32_t nr_regions;
	void **kept;
	uint64_t nr_kept;
	void **bare;
	uint64_t nr_bare;
};

void arena_init(struct arena *arena, struct budget *budget);
void arena_deinit(struct arena *arena);

/* Returns a page of CORE_PAGE_SIZE bytes with any content, or NULL. */
void *arena_get(struct arena *arena);

/* Frees a page. */
void arena_put(struct arena *arena, void *page);

/* Returns up to @count pages' memory to the kernel if too many are kept.
 * Returns true if there is more to return.
 */
bool arena_trim(struct arena *arena, uint32_t count);

#endif /* DAEMON_ARENA_H */
