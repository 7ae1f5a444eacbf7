/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * A growing run of pages that its owner may take out of memory.
 *
 * The heap, the slots and the two tables of the index each live in one. The
 * core names pages by their number; the owner (the module's shmem file, the
 * daemon's arena, a test) keeps a two-level directory of addresses and fills
 * in what is missing when asked. A page found in the directory stays where it
 * is until the owner's next chance to move it, which is never during a call
 * into the core.
 *
 * Bringing a page in may fail, so every operation of the core first gets all
 * pages it needs, then changes: an operation that fails has changed nothing.
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
 * CORE_PAGE_SIZE. A page that was never there is made; its content is then
 * undefined. NULL and @pages->error set: -ENOMEM, -EIO, or -EAGAIN when it
 * would have to wait and the caller said that it must not.
 */
typedef void *core_page_in_t(struct core_pages *pages, u32 index);

/**
 * struct core_pages - a run of pages
 * @dir: pointers to tables of CORE_DIR_SIZE page addresses; either level may
 *	be NULL where nothing is in memory (owner writes, core reads)
 * @nr: pages 0 to nr - 1 are in use; what lies above may be taken away by the
 *	owner between calls, without saving its content (core writes)
 * @nr_max: most pages @dir has room for (const)
 * @error: why the last page_in failed
 * @page_in: the owner's
 */
struct core_pages {
	void ***dir;
	u32 nr;
	u32 nr_max;
	int error;
	core_page_in_t *page_in;
};

/* The address of a page that is in memory, else NULL: never waits. */
static inline void *core_page_peek(const struct core_pages *pages, u32 index)
{
	void **table = pages->dir[index >> CORE_DIR_SHIFT];

	return likely(table) ? table[index & (CORE_DIR_SIZE - 1)] : NULL;
}

/* Send for where the directory has the address: that of a large run is itself
 * too large for the nearer caches.
 */
static inline void core_page_send(const struct core_pages *pages, u32 index)
{
	void **table = pages->dir[index >> CORE_DIR_SHIFT];

	if (table)
		prefetch(table + (index & (CORE_DIR_SIZE - 1)));
}

/* The address of a page, or NULL with pages->error set. */
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
