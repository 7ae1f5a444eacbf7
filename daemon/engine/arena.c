// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdlib.h>
#include <sys/mman.h>

#include "core/core.h"
#include "daemon/engine/arena.h"
#include "daemon/util/util.h"

#define REGION_SIZE	(64UL << 20)
#define REGION_PAGES	(REGION_SIZE / CORE_PAGE_SIZE)
#define REGION_ALIGN	(2UL << 20)	/* size of a huge page */

/* Pages kept: this many, or a share of those in use. The hysteresis avoids
 * freeing and allocating again when a queue's size varies.
 */
#define KEEP_MIN	1024
#define KEEP_SHARE	8

/* The reserve is a share of the budget. To take a due timer costs a queue some ten pages at
 * a time, so it has room for a few queues at least, and needs not be large.
 */
#define RESERVE_SHARE	32
#define RESERVE_MIN	64
#define RESERVE_MAX	16384
#define RESERVE_SHARE_MAX	4

void budget_init(struct budget *budget, uint64_t bytes_max)
{
	uint64_t pages = bytes_max / CORE_PAGE_SIZE;
	uint64_t reserve = min_u64(pages / RESERVE_SHARE, RESERVE_MAX);

	if (reserve < RESERVE_MIN)
		reserve = min_u64(RESERVE_MIN, pages / RESERVE_SHARE_MAX);
	*budget = (struct budget) {
		.pages_max = pages,
		.pages_reserved = reserve,
	};
}

static bool budget_take(struct budget *budget, bool spares_reserve)
{
	return share_take(&budget->pages, 1, spares_reserve ?
			  budget->pages_max - budget->pages_reserved :
			  budget->pages_max);
}

static void budget_put(struct budget *budget)
{
	share_put(&budget->pages, 1);
}

void arena_init(struct arena *arena, struct budget *budget)
{
	*arena = (struct arena) { .budget = budget };
}

void arena_deinit(struct arena *arena)
{
	uint32_t i;

	for (i = 0; i < arena->nr_regions; i++)
		munmap(arena->regions[i], REGION_SIZE);
	free(arena->regions);
	free(arena->kept);
	free(arena->bare);
	arena_init(arena, arena->budget);
}

/* Maps one more region, aligned for huge pages. */
static char *region_map(void)
{
	size_t size = REGION_SIZE + REGION_ALIGN;
	uintptr_t base, start;
	char *map;

	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	base = (uintptr_t)map;
	start = (base + REGION_ALIGN - 1) & ~(REGION_ALIGN - 1);
	if (start > base)
		munmap(map, start - base);
	if (start + REGION_SIZE < base + size)
		munmap((char *)start + REGION_SIZE,
		       base + size - start - REGION_SIZE);
	return (char *)start;
}

/* Makes room in an array of pointers for @nr of them. */
static bool array_grow(void ***array, uint64_t nr)
{
	void **larger = realloc(*array, nr * sizeof(**array));

	if (!larger)
		return false;
	*array = larger;
	return true;
}

/* Maps a region and enlarges the arrays. The arrays of free pages are sized for
 * all pages, so that freeing one cannot fail. They cost nothing until they are
 * used.
 */
static bool arena_grow(struct arena *arena)
{
	uint32_t nr = arena->nr_regions + 1;
	char *region;

	if (!array_grow(&arena->regions, nr) ||
	    !array_grow(&arena->kept, nr * REGION_PAGES) ||
	    !array_grow(&arena->bare, nr * REGION_PAGES))
		return false;
	region = region_map();
	if (!region)
		return false;
	/* Timers are accessed at random: huge pages avoid most page-table
	 * walks.
	 */
	madvise(region, REGION_SIZE, MADV_HUGEPAGE);
	arena->regions[arena->nr_regions] = region;
	arena->nr_regions = nr;
	arena->region = region;
	arena->fresh = REGION_PAGES;
	return true;
}

void *arena_get(struct arena *arena)
{
	if (!budget_take(arena->budget, arena->spares_reserve))
		return NULL;
	if (!arena->nr_kept && !arena->nr_bare && !arena->fresh &&
	    !arena_grow(arena)) {
		budget_put(arena->budget);
		return NULL;
	}

	arena->used++;
	if (arena->nr_kept)
		return arena->kept[--arena->nr_kept];
	if (arena->nr_bare)
		return arena->bare[--arena->nr_bare];
	return arena->region + (REGION_PAGES - arena->fresh--) * CORE_PAGE_SIZE;
}

void arena_put(struct arena *arena, void *page)
{
	arena->used--;
	budget_put(arena->budget);
	arena->kept[arena->nr_kept++] = page;
}

bool arena_trim(struct arena *arena, uint32_t count)
{
	uint64_t keep = arena->used / KEEP_SHARE;

	if (keep < KEEP_MIN)
		keep = KEEP_MIN;
	while (count && arena->nr_kept > keep) {
		char *page = arena->kept[--arena->nr_kept], *start = page;
		size_t size = CORE_PAGE_SIZE;

		/* A shrinking queue frees pages in the reverse of the order in
		 * which it took them: many are neighbours.
		 */
		arena->bare[arena->nr_bare++] = page;
		while (--count && arena->nr_kept > keep) {
			page = arena->kept[arena->nr_kept - 1];
			if (page == start - CORE_PAGE_SIZE)
				start = page;
			else if (page != start + size)
				break;
			size += CORE_PAGE_SIZE;
			arena->nr_kept--;
			arena->bare[arena->nr_bare++] = page;
		}
		madvise(start, size, MADV_DONTNEED);
	}
	return arena->nr_kept > keep;
}
