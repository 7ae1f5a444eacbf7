// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of pinned pages: see table.h.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "pins.h"
#include "table.h"

/* Leaks pages and tables on purpose: `make check-debug` must detect it. */
#define FORGETFUL	IS_ENABLED(CONFIG_EXPIRY_CANARY)

/**
 * expiry_table_new - allocate an empty table
 * @pageable: its pages will be of a file
 * @gfp: whether to wait
 *
 * The caller sets the other constants. Returns it, or NULL.
 */
struct expiry_table *expiry_table_new(bool pageable, gfp_t gfp)
{
	struct expiry_table *table = kzalloc(sizeof(*table), gfp);

	if (!table)
		return NULL;
	table->pageable = pageable;
	table->page = kcalloc(CORE_DIR_SIZE, sizeof(*table->page), gfp);
	if (pageable)
		table->aged = kcalloc(CORE_DIR_SIZE, sizeof(*table->aged), gfp);
	if (!table->page || (pageable && !table->aged)) {
		kfree(table->aged);
		kfree(table->page);
		kfree(table);
		return NULL;
	}
	return table;
}

/**
 * expiry_table_free - free a table
 * @table: without pages, and not in the directory; or NULL
 *
 * Waits for a walk of the shrinker that has found it.
 */
void expiry_table_free(struct expiry_table *table)
{
	struct expiry_pins *pins;

	if (!table)
		return;
	while (table->pins) {
		pins = table->pins;
		table->pins = pins->next;
		expiry_pins_unlist(pins);
		expiry_pins_free(pins);
	}
	if (!FORGETFUL)
		kfree(table->page);
	kfree(table->aged);
	kfree(table);
}

static struct expiry_pins *pins_of(const struct expiry_table *table, int nid)
{
	struct expiry_pins *pins = table->pins;

	while (pins && pins->nid != nid)
		pins = pins->next;
	return pins;
}

/* Counts a page on node @nid. Returns 0 or -ENOMEM. */
static int count_pin(struct expiry_table *table, int nid,
		     struct expiry_pins **spare, gfp_t gfp)
{
	struct expiry_pins *pins = pins_of(table, nid);

	if (!pins) {
		if (spare && *spare && (*spare)->nid == nid) {
			pins = *spare;
			*spare = NULL;
		} else {
			pins = expiry_pins_new(nid, gfp);
		}
		if (!pins)
			return -ENOMEM;
		pins->table = table;
		pins->next = table->pins;
		table->pins = pins;
	}
	if (!pins->nr++)
		expiry_pins_list(pins);
	return 0;
}

/**
 * expiry_table_find - find a pinned page
 * @table: of the page
 * @slot: of the page there
 *
 * The core finds it from now on. Returns its address, or NULL.
 */
void *expiry_table_find(struct expiry_table *table, u32 slot)
{
	if (!table->page[slot] && table->pageable)
		swap(table->page[slot], table->aged[slot]);
	return table->page[slot];
}

/**
 * expiry_table_enter - take over a page
 * @table: not full there
 * @slot: where the page belongs
 * @page: with a reference, which becomes the table's
 * @spare: an item to use where one is needed; or NULL
 * @gfp: whether to wait for an item
 *
 * Returns 0 or -ENOMEM; the reference is then the caller's.
 */
int expiry_table_enter(struct expiry_table *table, u32 slot, struct page *page,
		       struct expiry_pins **spare, gfp_t gfp)
{
	int err;

	if (table->pageable) {
		err = count_pin(table, page_to_nid(page), spare, gfp);
		if (err)
			return err;
	}
	table->page[slot] = page_address(page);
	table->pinned++;
	return 0;
}

/*
 * Drops the table's reference to the page of an entry. Mark the page dirty: a pinned
 * page may have been written at any time, and a clean one would be dropped instead of
 * swapped out.
 */
static void put_entry(struct expiry_table *table, void **entry)
{
	struct folio *folio = page_folio(virt_to_page(*entry));

	*entry = NULL;
	table->pinned--;
	if (table->pageable)
		folio_mark_dirty(folio);
	if (!FORGETFUL)
		folio_put(folio);
}

/*
 * Tells the kernel's reclaim that a page was used since the last visit, once, however
 * often it was.
 */
static void report_use(const struct expiry_table *table, const void *address)
{
	if (address && table->pageable)
		folio_mark_accessed(page_folio(virt_to_page(address)));
}

/* Unpins the page of an entry, if there is one. Returns how many. */
static u32 unpin(struct expiry_table *table, void **entry)
{
	struct expiry_pins *pins;

	if (!*entry)
		return 0;
	if (table->pageable) {
		pins = pins_of(table, page_to_nid(virt_to_page(*entry)));
		if (!--pins->nr)
			expiry_pins_unlist(pins);
	}
	put_entry(table, entry);
	return 1;
}

/**
 * expiry_table_unpin - unpin the pages from @from on
 * @table: may be in the directory
 * @from: the first
 *
 * Frees plain pages. Returns how many.
 */
u32 expiry_table_unpin(struct expiry_table *table, u32 from)
{
	u32 i, put = 0;

	for (i = from; i < CORE_DIR_SIZE && table->pinned; i++) {
		report_use(table, table->page[i]);
		put += unpin(table, &table->page[i]);
		if (table->pageable)
			put += unpin(table, &table->aged[i]);
	}
	return put;
}

/**
 * expiry_table_age - unpin the aged pages, and age the others
 * @table: with pageable memory
 *
 * Returns how many were unpinned.
 */
u32 expiry_table_age(struct expiry_table *table)
{
	u32 i, put = 0;

	for (i = 0; i < CORE_DIR_SIZE && table->pinned; i++) {
		put += unpin(table, &table->aged[i]);
		report_use(table, table->page[i]);
		swap(table->page[i], table->aged[i]);
	}
	return put;
}

static bool is_on_node(const void *address, int nid)
{
	return address && page_to_nid(virt_to_page(address)) == nid;
}

/**
 * expiry_table_age_node - the same for the pages of one node
 * @table: with pageable memory
 * @pins: of that node; the caller unlists it if none are left
 *
 * Takes no list's lock: the shrinker has it. Returns how many were unpinned.
 */
u32 expiry_table_age_node(struct expiry_table *table, struct expiry_pins *pins)
{
	u32 i, put = 0;

	for (i = 0; i < CORE_DIR_SIZE && pins->nr; i++) {
		if (is_on_node(table->aged[i], pins->nid)) {
			pins->nr--;
			put_entry(table, &table->aged[i]);
			put++;
		}
		if (is_on_node(table->page[i], pins->nid)) {
			report_use(table, table->page[i]);
			swap(table->page[i], table->aged[i]);
		}
	}
	return put;
}
