/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a queue: the page arrays that core/ works on, in a shmem file
 * of the queue's own, which the kernel may page out.
 *
 * A page is *pinned* while its address is in a table (table.h): a reference
 * holds it, so it cannot be paged out. The core pins the pages that it accesses.
 * Pages are unpinned when the queue is idle or a table of it is (fire.c), when it
 * has too many pinned (queue.c) and when memory is short (shrink.c). With the
 * module parameter pageable=0 pages are plain kernel memory and always pinned.
 *
 * A page that is not there at once is *fetched* without the queue's lock:
 * struct expiry_fetch. Nothing else waits for it meanwhile.
 *
 * The tables of a directory stay when their pages are unpinned; they take 8
 * bytes a page. So the pages in memory can be used, and their timers cancelled,
 * when no more memory is available.
 *
 * The functions here are called with the queue's lock held, but for
 * expiry_memory_fetch() and expiry_memory_drop().
 */
#ifndef EXPIRY_MEMORY_H
#define EXPIRY_MEMORY_H

#include <linux/types.h>

#include "pages.h"
#include "table.h"
#include "timers.h"

struct expiry_memory;
struct file;
struct mem_cgroup;

/**
 * struct expiry_page_array - one of a queue's page arrays
 * @pages: as the core sees it
 * @memory: its owner (const)
 * @offset: of its first page in the file (const)
 * @made: pages from here on do not exist
 * @table: the tables of the directory
 */
struct expiry_page_array {
	struct core_pages pages;
	struct expiry_memory *memory;
	pgoff_t offset;
	u32 made;
	struct expiry_table **table;
};

/**
 * struct expiry_fetch - a page that is brought in without the queue's lock
 * @array: its array; NULL: there is none
 * @index: its number
 * @err: why it is not available, or 0
 * @page: the page, with a reference
 * @table: a spare one for it
 * @pins: likewise
 */
struct expiry_fetch {
	struct expiry_page_array *array;
	u32 index;
	int err;
	struct page *page;
	struct expiry_table *table;
	struct expiry_pins *pins;
};

/**
 * struct expiry_memory - the memory of a queue
 * @array: the page arrays
 * @file: contains the pages; NULL: plain pages (const)
 * @memcg: charged for the pages (const, referenced)
 * @nowait: page_in must not wait for I/O nor for memory
 * @reclaimed: all possible unpinning for this call is done
 * @pinned: pages in the tables
 * @wanted: the array of the page that @nowait refused last; NULL = none
 * @wanted_index: which page of it
 * @failed: the array of a page that could not be fetched; NULL = none
 * @failed_index: which page of it
 * @failed_err: why
 * @hand_array: where unpinning continues
 * @hand_table: likewise, the table in the array's directory
 *
 * With a NULL @memcg the first toucher of a page is charged.
 */
struct expiry_memory {
	struct expiry_page_array array[TIMERS_PAGES_NR];
	struct file *file;
	struct mem_cgroup *memcg;
	bool nowait;
	bool reclaimed;
	u32 pinned;
	struct expiry_page_array *wanted;
	u32 wanted_index;
	struct expiry_page_array *failed;
	u32 failed_index;
	int failed_err;
	u32 hand_array;
	u32 hand_table;
};

int expiry_memory_init(struct expiry_memory *memory,
		       const struct timers_config *config,
		       struct mem_cgroup *memcg, bool pageable);
void expiry_memory_destroy(struct expiry_memory *memory);

int expiry_memory_mount(void);
void expiry_memory_unmount(void);

void expiry_memory_fetch(struct expiry_memory *memory,
			 struct expiry_fetch *fetch, bool hard);
void expiry_memory_install(struct expiry_memory *memory,
			   struct expiry_fetch *fetch);
void expiry_memory_drop(struct expiry_fetch *fetch);

bool expiry_memory_reclaim(struct expiry_memory *memory);
u32 expiry_memory_unpin(struct expiry_memory *memory);
bool expiry_memory_age(struct expiry_memory *memory, u32 *unpinned);
u32 expiry_memory_age_pins(struct expiry_memory *memory,
			   struct expiry_pins *pins);
bool expiry_memory_trim(struct expiry_memory *memory);
bool expiry_memory_idle(const struct expiry_memory *memory);
u64 expiry_memory_resident(const struct expiry_memory *memory);

/**
 * expiry_memory_want - take over the page that the core could not wait for
 * @memory: of the queue
 * @fetch: empty; names the page, if there is one
 */
static inline void expiry_memory_want(struct expiry_memory *memory,
				      struct expiry_fetch *fetch)
{
	fetch->array = memory->wanted;
	fetch->index = memory->wanted_index;
	memory->wanted = NULL;
}

#endif /* EXPIRY_MEMORY_H */
