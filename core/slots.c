// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The slot table: see slots.h.
 */
#include "slots.h"

static_assert(sizeof(struct slot) == 32, "two slots a cache line");

/* Slots that an ARM looks at before it appends one. */
#define LIST_STEPS	128U

u32 slots_pages_max(u64 limit)
{
	limit += limit / 4 + LIST_STEPS;
	return (limit + SLOTS_PER_PAGE - 1) / SLOTS_PER_PAGE;
}

void slots_init(struct slots *slots, struct core_pages *pages)
{
	slots->pages = pages;
	slots_reset(slots);
}

void slots_reset(struct slots *slots)
{
	slots->nr = 0;
	slots->used = 0;
	slots->listed = 0;
	slots->known = ~0U;
	memset(slots->free, 0, sizeof(slots->free));
	slots->pages->nr = 0;
}

/* Lists some free slots of a table that is being compacted, if there are any.
 * Returns 0 or a page error.
 */
static int list_some(struct slots *slots)
{
	u32 steps = LIST_STEPS;
	int err = 0;

	while (!err && !slots->listed && slots->known < slots->nr && steps--)
		err = slots_list_next(slots);
	return err;
}

u32 slots_reserve_more(struct slots *slots, struct slot **slotp)
{
	struct slot *page;
	int err = 0;
	u32 nr;

	if (unlikely(slots_is_compacting(slots)))
		err = list_some(slots);
	if (slots->listed)
		return slots_reserve(slots, slotp);
	nr = slots->nr;
	page = core_page(slots->pages, nr / SLOTS_PER_PAGE);
	if (unlikely(!page)) {
		/* The table has room for the limit. It may be full if missing
		 * pages have delayed its compaction: then the page that is
		 * missing now has free slots, or others may be behind it.
		 */
		if (slots->pages->error == -ENOSPC)
			slots->pages->error = err ?: -ENOMEM;
		return 0;
	}
	*slotp = page + nr % SLOTS_PER_PAGE;
	(*slotp)->tag = 0;
	return nr + 1;
}

/* ------------------------------------------------------------------------
 * Compaction
 */

void slots_unlist(struct slots *slots)
{
	slots->listed = 0;
	slots->known = 0;
	memset(slots->free, 0, sizeof(slots->free));
}

int slots_list_next(struct slots *slots)
{
	u32 nr = slots->known + 1;
	struct slot *slot = slots_get(slots, nr);

	if (unlikely(!slot))
		return slots->pages->error;
	slots->known = nr;
	if (!slot->id)
		slots_add_free(slots, nr, slot);
	return 0;
}

void slots_end(struct slots *slots)
{
	slots->known = ~0U;
}

void slots_drop_last(struct slots *slots)
{
	slots_set_nr(slots, slots->nr - 1);
}

/* Walks the lists as a stack, from its top. */
static int validate_lists(struct slots *slots)
{
	u32 next[SLOTS_LISTS], i, nr;
	struct slot *slot;

	memcpy(next, slots->free, sizeof(next));
	for (i = slots->listed; i--;) {
		nr = next[i % SLOTS_LISTS];
		slot = nr <= slots->known ? slots_get(slots, nr) : NULL;
		if (!slot)
			return nr <= slots->known && slots->pages->error ?
			       slots->pages->error : -EIO;
		if (slot->id)
			return -EIO;
		next[i % SLOTS_LISTS] = slot->next;
	}
	for (i = 0; i < SLOTS_LISTS; i++)
		if (next[i])
			return -EIO;
	return 0;
}

int slots_validate(struct slots *slots)
{
	u32 nr, used = 0, listed = 0;
	struct slot *slot;

	for (nr = 1; nr <= slots->nr; nr++) {
		slot = slots_get(slots, nr);
		if (!slot)
			return slots->pages->error;
		used += !!slot->id;
		listed += !slot->id && nr <= slots->known;
	}
	if (used != slots->used || listed != slots->listed)
		return -EIO;
	return validate_lists(slots);
}
