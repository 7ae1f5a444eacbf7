// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The slot table: see slots.h.
 */
#include "slots.h"

static_assert(sizeof(struct slot) == 32, "two slots a cache line");

u32 slots_pages_max(u64 limit)
{
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
	memset(slots->free, 0, sizeof(slots->free));
	slots->pages->nr = 0;
}

/* Returns the list of the free slot number @nr, from 0 at the stack's bottom. */
static inline u32 *slots_list(struct slots *slots, u32 nr)
{
	return &slots->free[nr % SLOTS_LISTS];
}

u32 slots_reserve(struct slots *slots, struct slot **slotp)
{
	u32 free = slots->nr - slots->used, nr;
	struct slot *page;

	if (free) {
		nr = *slots_list(slots, free - 1);
		*slotp = slots_get(slots, nr);
		return *slotp ? nr : 0;
	}
	nr = slots->nr;
	page = core_page(slots->pages, nr / SLOTS_PER_PAGE);
	if (unlikely(!page))
		return 0;
	*slotp = page + nr % SLOTS_PER_PAGE;
	(*slotp)->tag = 0;
	return nr + 1;
}

void slots_commit(struct slots *slots, u32 nr, struct slot *slot)
{
	u32 free = slots->nr - slots->used;

	if (free) {
		*slots_list(slots, free - 1) = slot->period_ms;
		/* It has its turn SLOTS_LISTS commits from now. */
		slot = slots_peek(slots, slot->period_ms);
		if (slot)
			prefetchw(slot);
	} else {
		slots->nr = nr;
		slots->pages->nr = (nr + SLOTS_PER_PAGE - 1) / SLOTS_PER_PAGE;
	}
	slots->used++;
}

void slots_put(struct slots *slots, u32 nr, struct slot *slot)
{
	u32 *list = slots_list(slots, slots->nr - slots->used);

	slot->id = 0;
	slot->tag &= ~SLOT_FLAGS;
	slot->period_ms = *list;
	*list = nr;
	slots->used--;
}
