/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a queue: the runs of pages that core/ works on, kept in a shmem
 * file of the queue's own, which the kernel may page out.
 *
 * A page is *pinned* while its address stands in the directory of its run: it
 * is held by a reference and so cannot be paged out. The core pins what it
 * touches; pages are let go of when the queue is idle (fire.c), when it holds
 * too many (queue.c) and when memory is short (shrink.c). With the module
 * parameter pageable=0 pages are plain kernel memory and always pinned.
 *
 * The tables of a directory stay when their pages are let go of: 8 bytes a page,
 * so that what is in memory can be used, and cancelled, where there is no more
 * to be had.
 *
 * Everything here is called with the queue's lock held.
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
 * struct expiry_run - one run of pages
 * @pages: as the core sees it
 * @memory: whose it is (const)
 * @offset: of its first page in the file (const)
 * @made: pages from here on were never there or have been given back
 * @pins: pages in each table of the directory
 */
struct expiry_run {
	struct core_pages pages;
	struct expiry_memory *memory;
	pgoff_t offset;
	u32 made;
	u16 *pins;
};

/**
 * struct expiry_memory - the memory of a queue
 * @run: the runs
 * @file: where the pages live; NULL: plain pages (const)
 * @memcg: who pays; NULL: whoever touches a page first (const, referenced)
 * @nowait: page_in must not wait for I/O nor try hard for memory
 * @held: nothing may be unpinned or given back now, nor may calls fail for
 *	what cannot be unpinned: they return -EAGAIN
 * @relieved: what can be unpinned for the sake of the current call has been
 * @pinned: pages in the directories
 * @wanted: the run of the page that @nowait refused last; NULL = none
 * @wanted_index: which page of it
 * @hand_run: where unpinning goes on
 * @hand_table: likewise, the table in the run's directory
 */
struct expiry_memory {
	struct expiry_run run[TIMERS_PAGES_NR];
	struct file *file;
	struct mem_cgroup *memcg;
	bool nowait;
	bool held;
	bool relieved;
	u32 pinned;
	struct expiry_run *wanted;
	u32 wanted_index;
	u32 hand_run;
	u32 hand_table;
};

int expiry_memory_init(struct expiry_memory *memory,
		       const struct timers_config *config,
		       struct mem_cgroup *memcg, bool pageable);
void expiry_memory_destroy(struct expiry_memory *memory);

int expiry_memory_fetch(struct expiry_memory *memory);
bool expiry_memory_relieve(struct expiry_memory *memory);
u32 expiry_memory_unpin(struct expiry_memory *memory);
bool expiry_memory_trim(struct expiry_memory *memory);
bool expiry_memory_idle(const struct expiry_memory *memory);
u64 expiry_memory_resident(const struct expiry_memory *memory);

#endif /* EXPIRY_MEMORY_H */
