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
	slots->free = 0;
	slots->used = 0;
	slots->pages->nr = 0;
}

u32 slots_reserve(struct slots *slots, struct slot **slotp)
{
	u32 nr = slots->free;
	struct slot *page;

	if (nr) {
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

/* Prefetches the next free slot; its number is known only now. */
static void prefetch_next_free(const struct slots *slots)
{
	const struct slot *slot = slots_peek(slots, slots->free);

	if (slot)
		prefetchw(slot);
}

void slots_commit(struct slots *slots, u32 nr, struct slot *slot)
{
	if (nr == slots->free) {
		slots->free = slot->period_ms;
		prefetch_next_free(slots);
	} else {
		slots->nr = nr;
		slots->pages->nr = (nr + SLOTS_PER_PAGE - 1) / SLOTS_PER_PAGE;
	}
	slots->used++;
}

void slots_put(struct slots *slots, u32 nr, struct slot *slot)
{
	slot->id = 0;
	slot->tag &= ~SLOT_FLAGS;
	slot->period_ms = slots->free;
	slots->free = nr;
	slots->used--;
}
