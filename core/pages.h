/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * A growing array of pages that its owner may take out of memory.
 *
 * The heap, the slots and the index each have one. The core
 * names pages by number. The owner is the module's shmem file, the daemon's
 * arena or a test. It keeps a two-level directory of addresses and adds missing
 * pages on request. A page in the directory does not move during a call into
 * the core; the owner may move it between calls.
 *
 * Bringing a page in may fail. So every operation of the core first gets all
 * pages it needs, then makes its changes. An operation that fails has changed
 * nothing.
 */
#ifndef CORE_PAGES_H
#define CORE_PAGES_H

#include "core.h"

#define CORE_DIR_SHIFT	9	/* one page of pointers */
#define CORE_DIR_SIZE	(1U << CORE_DIR_SHIFT)

struct core_pages;

/**
 * core_page_in_t - bring page @index of @pages into memory
 *
 * Enters its address into the directory and returns it, aligned to
 * CORE_PAGE_SIZE. Creates a page that does not exist, with undefined content.
 * On failure returns NULL and sets @pages->error: -ENOMEM, -EIO, or -EAGAIN if
 * it would have to wait and the caller forbade that.
 */
typedef void *core_page_in_t(struct core_pages *pages, u32 index);

/**
 * struct core_pages - an array of pages
 * @dir: tables of CORE_DIR_SIZE page addresses each
 * @nr: pages 0 to nr - 1 are in use
 * @nr_max: most pages @dir has room for (const)
 * @error: why the last page_in failed
 * @page_in: the owner's function
 *
 * The owner writes @dir and the core reads it. Either level may be NULL where
 * nothing is in memory. The core writes @nr. Between calls the owner may free
 * pages above it without saving their content.
 */
struct core_pages {
	void ***dir;
	u32 nr;
	u32 nr_max;
	int error;
	core_page_in_t *page_in;
};

/* Returns the address of a page that is in memory, else NULL; never waits. */
static inline void *core_page_peek(const struct core_pages *pages, u32 index)
{
	void **table = pages->dir[index >> CORE_DIR_SHIFT];

	return likely(table) ? table[index & (CORE_DIR_SIZE - 1)] : NULL;
}

/* Prefetches the directory's entry for a page: a large directory exceeds the
 * nearer caches.
 */
static inline void core_page_prefetch_dir(const struct core_pages *pages,
					  u32 index)
{
	void **table = pages->dir[index >> CORE_DIR_SHIFT];

	if (table)
		prefetch(table + (index & (CORE_DIR_SIZE - 1)));
}

/* Returns the address of a page, or NULL with pages->error set. */
static inline void *core_page(struct core_pages *pages, u32 index)
{
	void *page;

	if (unlikely(index >= pages->nr_max)) {
		pages->error = -ENOSPC;
		return NULL;
	}
	page = core_page_peek(pages, index);
	return likely(page) ? page : pages->page_in(pages, index);
}

#endif /* CORE_PAGES_H */
