/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a queue: the page arrays that core/ works on, in a shmem file
 * of the queue's own, which the kernel may page out.
 *
 * A page is *pinned* while its address is in the directory of its array: a
 * reference holds it, so it cannot be paged out. The core pins the pages that
 * it accesses. Pages are unpinned when the queue is idle (fire.c), when it has
 * too many pinned (queue.c) and when memory is short (shrink.c). With the
 * module parameter pageable=0 pages are plain kernel memory and always pinned.
 *
 * The tables of a directory stay when their pages are unpinned; they take 8
 * bytes a page. So the pages in memory can be used, and their timers cancelled,
 * when no more memory is available.
 *
 * All functions here are called with the queue's lock held.
 */
#ifndef EXPIRY_MEMORY_H
#define EXPIRY_MEMORY_H

#include <linux/types.h>

#include "pages.h"
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
 * @pins: pages in each table of the directory
 */
struct expiry_page_array {
	struct core_pages pages;
	struct expiry_memory *memory;
	pgoff_t offset;
	u32 made;
	u16 *pins;
};

/**
 * struct expiry_memory - the memory of a queue
 * @array: the page arrays
 * @file: contains the pages; NULL: plain pages (const)
 * @memcg: charged for the pages (const, referenced)
 * @nowait: page_in must not wait for I/O nor try hard for memory
 * @reclaimed: all possible unpinning for this call is done
 * @pinned: pages in the directories
 * @wanted: the array of the page that @nowait refused last; NULL = none
 * @wanted_index: which page of it
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
	u32 hand_array;
	u32 hand_table;
};

int expiry_memory_init(struct expiry_memory *memory,
		       const struct timers_config *config,
		       struct mem_cgroup *memcg, bool pageable);
void expiry_memory_destroy(struct expiry_memory *memory);

int expiry_memory_mount(void);
void expiry_memory_unmount(void);

int expiry_memory_fetch(struct expiry_memory *memory);
bool expiry_memory_reclaim(struct expiry_memory *memory);
u32 expiry_memory_unpin(struct expiry_memory *memory);
bool expiry_memory_trim(struct expiry_memory *memory);
bool expiry_memory_idle(const struct expiry_memory *memory);
u64 expiry_memory_resident(const struct expiry_memory *memory);

#endif /* EXPIRY_MEMORY_H */
