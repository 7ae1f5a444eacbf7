/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of a page array's directory: CORE_DIR_SIZE addresses of pinned pages.
 *
 * A page has a second chance. A visit of its table takes it from where the core finds
 * it: it is *aged*, and stays pinned. The core's next access brings it back, at the
 * cost of one call of page_in(). A page that is still aged at the next visit was not
 * used, and is unpinned. So accesses need not be counted. A visit tells the kernel's
 * reclaim which pages were used since the last.
 *
 * All functions here are called with the queue's lock held.
 */
#ifndef EXPIRY_TABLE_H
#define EXPIRY_TABLE_H

#include <linux/gfp.h>
#include <linux/types.h>

#include "pages.h"

struct expiry_page_array;
struct expiry_pins;
struct page;

/**
 * struct expiry_table - one table
 * @array: its owner (const)
 * @nr: its number in the directory (const)
 * @pageable: its pages are of a file; else they are plain ones (const)
 * @pinned: how many pages it has, aged ones among them
 * @page: their addresses, for the core: what the directory refers to
 * @aged: those of aged ones; NULL if they are plain ones
 * @pins: the same by node, for the shrinker; none for plain pages
 */
struct expiry_table {
	struct expiry_page_array *array;
	u32 nr;
	bool pageable;
	u32 pinned;
	void **page;
	void **aged;
	struct expiry_pins *pins;
};

struct expiry_table *expiry_table_new(bool pageable, gfp_t gfp);
void expiry_table_free(struct expiry_table *table);
void *expiry_table_find(struct expiry_table *table, u32 slot);
int expiry_table_enter(struct expiry_table *table, u32 slot, struct page *page,
		       struct expiry_pins **spare, gfp_t gfp);
u32 expiry_table_unpin(struct expiry_table *table, u32 from);
u32 expiry_table_age(struct expiry_table *table);
u32 expiry_table_age_node(struct expiry_table *table, struct expiry_pins *pins);

#endif /* EXPIRY_TABLE_H */
