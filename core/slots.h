/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The slot table: 32 bytes for each timer, found by number.
 */
#ifndef CORE_SLOTS_H
#define CORE_SLOTS_H

#include "core.h"
#include "pages.h"

/* State of a slot, in the low bits of its tag; no bit set = free. */
#define SLOT_ARMED		0x1U	/* has one live node in the heap */
#define SLOT_UNACKED		0x2U	/* delivered, not yet acknowledged */
#define SLOT_REDELIVER		0x4U	/* its node is a repeated delivery's */
#define SLOT_STATE		0x7U

/* Not states: the deadline had passed when it was set; the timer has a period. */
#define SLOT_PAST		0x8U
#define SLOT_PERIODIC		0x10U
#define SLOT_STAMP_SHIFT	5
#define SLOT_FLAGS		((1U << SLOT_STAMP_SHIFT) - 1)

/**
 * struct slot - one timer
 * @deadline: nanoseconds on the queue's clock
 * @cookie: the client's
 * @id: complete, so that an old one never matches
 * @period_ms: of a periodic timer
 * @hash: of another timer's id on a keyed queue, so that its end needs no other
 *	computation of it
 * @next: in a free slot, the number of the next one of its list
 * @tag: stamp of its live node << SLOT_STAMP_SHIFT | other bits | state
 *
 * While a periodic timer's delivery is to be repeated, @deadline is the next
 * time after it.
 *
 * If a free slot's @tag is not 0, its stamp is that of a node still in the heap, and
 * @deadline is no earlier than the node's.
 */
struct slot {
	u64 deadline;
	u64 cookie;
	u64 id;
	union {
		u32 period_ms;
		u32 hash;
		u32 next;
	};
	u32 tag;
};

/* Returns a timer's period, 0 = once. */
static inline u32 slot_period_ms(const struct slot *slot)
{
	return slot->tag & SLOT_PERIODIC ? slot->period_ms : 0;
}

/* Sets a timer's period. @hash: of its id, on a keyed queue */
static inline void slot_set_period(struct slot *slot, u32 period_ms, u32 hash)
{
	slot->period_ms = period_ms ?: hash;
	slot->tag &= ~SLOT_PERIODIC;
	if (period_ms)
		slot->tag |= SLOT_PERIODIC;
}

#define SLOTS_PER_PAGE		(CORE_PAGE_SIZE / (u32)sizeof(struct slot))

/* Lists of free slots: a power of two. */
#define SLOTS_LISTS		16U

/**
 * struct slots - the table
 * @pages: its pages; slot number n is element n - 1
 * @nr: slots used since the last reset
 * @used: slots that are not free
 * @listed: free slots in the lists
 * @known: of higher numbers no free slot is in a list; ~0 unless the table is
 *	being compacted (compact.c)
 * @free: first free slot of each list
 *
 * The slot freed last is used first. The free slots are a stack, whose n-th from
 * the bottom is in list n modulo SLOTS_LISTS. So the numbers of that many slots are
 * known, and they can be prefetched at the same time. One list would tell a number
 * only when the slot before it has come.
 */
struct slots {
	struct core_pages *pages;
	u32 nr;
	u32 used;
	u32 listed;
	u32 known;
	u32 free[SLOTS_LISTS];
};

/* Returns the pages for @limit timers. A table that is being compacted may append
 * a slot where a free one is not listed yet.
 */
u32 slots_pages_max(u64 limit);
void slots_init(struct slots *slots, struct core_pages *pages);

/* Frees every slot; O(1). */
void slots_reset(struct slots *slots);

/* Returns slot @nr from 1, or NULL: out of range (error 0) or pages->error. */
static inline struct slot *slots_get(struct slots *slots, u32 nr)
{
	struct slot *page;

	if (!nr || nr > slots->nr) {
		slots->pages->error = 0;
		return NULL;
	}
	nr = core_nospec(nr - 1, slots->nr);
	page = core_page(slots->pages, nr / SLOTS_PER_PAGE);
	return likely(page) ? page + nr % SLOTS_PER_PAGE : NULL;
}

/* Returns the slot without waiting, NULL if its page is not in memory. */
static inline struct slot *slots_peek(const struct slots *slots, u32 nr)
{
	struct slot *page;

	if (!nr || nr > slots->nr)
		return NULL;
	nr = core_nospec(nr - 1, slots->nr);
	page = core_page_peek(slots->pages, nr / SLOTS_PER_PAGE);
	return page ? page + nr % SLOTS_PER_PAGE : NULL;
}

/* As slots_peek(), for a number that the table itself has. */
static inline struct slot *slots_peek_own(const struct slots *slots, u32 nr)
{
	struct slot *page = core_page_peek(slots->pages,
					   (nr - 1) / SLOTS_PER_PAGE);

	return likely(page) ? page + (nr - 1) % SLOTS_PER_PAGE : NULL;
}

/* Prefetches what slots_peek() reads. */
static inline void slots_prefetch_dir(const struct slots *slots, u32 nr)
{
	if (!nr || nr > slots->nr)
		return;
	nr = core_nospec(nr - 1, slots->nr);
	core_page_prefetch_dir(slots->pages, nr / SLOTS_PER_PAGE);
}

static inline bool slots_is_compacting(const struct slots *slots)
{
	return slots->known != ~0U;
}

/* Returns the list of the free slot number @nr, from 0 at the stack's bottom. */
static inline u32 *slots_list(struct slots *slots, u32 nr)
{
	return &slots->free[nr % SLOTS_LISTS];
}

/* As slots_reserve(), where no free slot is listed. */
u32 slots_reserve_more(struct slots *slots, struct slot **slotp);

/* Returns a free slot's number, or 0 with pages->error set: the slot freed last,
 * or a new one without a node. slots_commit() then cannot fail.
 */
static inline u32 slots_reserve(struct slots *slots, struct slot **slotp)
{
	u32 nr;

	if (unlikely(!slots->listed))
		return slots_reserve_more(slots, slotp);
	nr = *slots_list(slots, slots->listed - 1);
	*slotp = slots_peek_own(slots, nr);
	if (unlikely(!*slotp))
		*slotp = slots_get(slots, nr);
	return likely(*slotp) ? nr : 0;
}

static inline void slots_set_nr(struct slots *slots, u32 nr)
{
	slots->nr = nr;
	slots->pages->nr = (nr + SLOTS_PER_PAGE - 1) / SLOTS_PER_PAGE;
}

static inline void slots_commit(struct slots *slots, u32 nr, struct slot *slot)
{
	slots->used++;
	if (unlikely(!slots->listed)) {
		slots_set_nr(slots, nr);
		return;
	}
	nr = slot->next;
	*slots_list(slots, --slots->listed) = nr;
	/* It has its turn SLOTS_LISTS commits from now. */
	slot = nr ? slots_peek_own(slots, nr) : NULL;
	if (likely(slot))
		prefetchw(slot);
}

/* Puts a free slot on the stack. */
static inline void slots_add_free(struct slots *slots, u32 nr, struct slot *slot)
{
	u32 *list = slots_list(slots, slots->listed++);

	slot->next = *list;
	*list = nr;
}

/* Frees a slot; the stamp in its tag stays. */
static inline void slots_put(struct slots *slots, u32 nr, struct slot *slot)
{
	slot->id = 0;
	slot->tag &= ~SLOT_FLAGS;
	slots->used--;
	if (likely(nr <= slots->known))
		slots_add_free(slots, nr, slot);
}

/* Takes all free slots out of the lists: the table is being compacted. */
void slots_unlist(struct slots *slots);

/* Looks at the first slot that is not known, and lists it if it is free. There is
 * one. Returns 0 or a page error.
 */
int slots_list_next(struct slots *slots);

/* Notes that all slots are known: the table is no longer being compacted. */
void slots_end(struct slots *slots);

/* Drops the last slot, which is in no list. */
void slots_drop_last(struct slots *slots);

/* Walks table and lists (unbounded): 0, -EIO or a page error. */
int slots_validate(struct slots *slots);

#endif /* CORE_SLOTS_H */
