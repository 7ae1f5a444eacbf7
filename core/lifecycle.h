/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The steps in the life of one timer, for requests.c, alike.c, deliver.c and
 * redeliver.c: find, push, acknowledge, end. Private to core/; lifecycle.c describes them.
 */
#ifndef CORE_LIFECYCLE_H
#define CORE_LIFECYCLE_H

#include "moved.h"
#include "timers.h"

/* Nodes that the sweep checks for each record or delivery. */
#define SWEEP_STEPS		8U

#define NSEC_PER_MSEC_64	1000000ULL

/* State of a node, for the sweep and the deliveries. */
enum node_state {
	NODE_STALE,
	NODE_MOVED,	/* its timer was refreshed to a later deadline */
	NODE_LIVE,
};

static inline u64 add_saturating(u64 a, u64 b)
{
	return a + b < a ? EXPIRY_NEVER : a + b;
}

static inline u64 slot_period_ns(const struct slot *slot)
{
	return slot_period_ms(slot) * NSEC_PER_MSEC_64;
}

/* Returns when a periodic timer, now armed for its next time, was last due. A
 * refresh may have moved that next time anywhere.
 */
static inline u64 slot_last_ns(const struct slot *slot)
{
	u64 period_ns = slot_period_ns(slot);

	if (slot->deadline == EXPIRY_NEVER)
		return EXPIRY_NEVER;
	return slot->deadline > period_ns ? slot->deadline - period_ns : 0;
}

static inline bool is_acking(const struct timers *timers)
{
	return timers->mode & EXPIRY_MODE_ACK;
}

/* Returns the deadline for repeating such a timer's last delivery. That is its
 * old deadline or, if a refresh moved the next time far away, now.
 */
static inline u64 slot_again_ns(const struct slot *slot, u64 now_ns)
{
	u64 last_ns = slot_last_ns(slot);

	return last_ns < now_ns ? last_ns : now_ns;
}

/* Returns whether the node is a repeated delivery's: the timer is armed for
 * @deadline after it.
 */
static inline bool slot_is_behind(const struct slot *slot)
{
	return slot->tag & SLOT_REDELIVER && slot->tag & SLOT_PERIODIC;
}

/* Returns whether a slot, not in use yet, keeps a node that can stand for a
 * timer due at @deadline.
 */
static inline bool slot_has_node(const struct slot *slot, u64 deadline)
{
	return slot->tag && deadline >= slot->deadline;
}

/* Notes that @node, which was stale, leaves the heap: a free slot that keeps it
 * no longer does.
 */
static inline void slot_forget_node(struct slot *slot,
				    const struct bheap_node *node)
{
	if (slot->tag == node->stamp << SLOT_STAMP_SHIFT)
		slot->tag = 0;
}

/* Returns an id's hash on a keyed queue, 0 on a plain one. */
static inline u32 timer_hash(const struct timers *timers, u64 id)
{
	return timers_is_keyed(timers) ? index_hash(&timers->index, id) : 0;
}

/**
 * struct lookup - what is known of an id before its timer is looked up
 * @line: of the index, prefetched, where the search begins; or NULL
 * @at: then slot number @slot, prefetched, for this call of the core; or NULL
 * @hash: as timer_hash()
 * @slot: in which the timer is likely to be; 0 = unknown
 */
struct lookup {
	union {
		const struct index_line *line;
		struct slot *at;
	};
	u32 hash;
	u32 slot;
};

/* Returns what the id alone tells. */
static inline struct lookup timer_lookup(const struct timers *timers, u64 id)
{
	u32 slot = timers_is_keyed(timers) ? 0 : (u32)id;

	return (struct lookup) {
		.at = slots_peek(&timers->slots, slot),
		.hash = timer_hash(timers, id),
		.slot = slot,
	};
}

/* As timer_find(), where the timer is not in the slot that is likely. */
s64 timer_search(struct timers *timers, u64 id, u32 hash, struct slot **slotp);

/* Returns the slot number of @id, 0 if there is no such timer, or a page error.
 * @id is not 0.
 */
static inline s64 timer_find(struct timers *timers, u64 id,
			     const struct lookup *lookup, struct slot **slotp)
{
	/* In whatever slot it is, only this timer has the id. A slot beyond the
	 * table was dropped by an earlier record, and has an old one.
	 */
	*slotp = lookup->at;
	if (likely(*slotp && (*slotp)->id == id &&
		   lookup->slot <= timers->slots.nr))
		return lookup->slot;
	return timer_search(timers, id, lookup->hash, slotp);
}

/* Returns the same for a timer in one of the states of @mask, else -ENOENT. */
static inline s64 timer_find_in(struct timers *timers, u64 id,
				const struct lookup *lookup, u32 mask,
				struct slot **slotp)
{
	s64 nr;

	if (!id)
		return -EINVAL;
	nr = timer_find(timers, id, lookup, slotp);
	if (nr <= 0)
		return nr ?: -ENOENT;
	return (*slotp)->tag & mask ? nr : -ENOENT;
}

/* Live nodes in sequence after which the heap no longer reviews them early. */
#define TIMERS_FOUND_LIVE	(4 * BHEAP_NODES_PER_PAGE)

/* Notes that @nr nodes whose turn came were live, and the next may be, too. */
static inline void timer_found_live(struct timers *timers, u32 nr)
{
	if (timers->found_live < TIMERS_FOUND_LIVE)
		timers->found_live += nr;
}

/* Prefetches the slot of a timer that will be read soon, and returns it; NULL = it is
 * not in memory.
 */
static inline struct slot *timer_prefetch(const struct timers *timers, u32 nr)
{
	struct slot *slot = slots_peek(&timers->slots, nr);

	if (slot)
		prefetchw(slot);
	return slot;
}

/* Prefetches for the heap's nodes: a bheap_ahead_t; @context is the struct
 * timers.
 */
void timer_ahead(void *context, const struct bheap_node *node,
		 enum bheap_when when);

/* Looks at a node whose turn comes: a bheap_review_t. */
bool timer_review(void *context, struct bheap_node *node);

static inline enum node_state timer_node_state(const struct bheap_node *node,
					       const struct slot *slot)
{
	if (!(slot->tag & SLOT_ARMED) ||
	    slot->tag >> SLOT_STAMP_SHIFT != node->stamp)
		return NODE_STALE;
	if (unlikely(slot->tag & SLOT_REDELIVER))
		return NODE_LIVE;
	if (node->deadline > slot->deadline)
		return NODE_STALE;
	return node->deadline == slot->deadline ? NODE_LIVE : NODE_MOVED;
}

/* Pushes a node for @deadline; *@tagp is the stamp for the slot's tag. */
static inline int timer_push(struct timers *timers, u32 nr, u64 deadline,
			     u32 *tagp)
{
	u32 stamp = (timers->stamp + 1) & (~0U >> SLOT_STAMP_SHIFT);
	struct bheap_node node = {
		.deadline = deadline,
		.slot = nr,
		.stamp = stamp,
	};
	int err = bheap_push(&timers->heap, &node);

	if (unlikely(err))
		return err;
	timers->stamp = stamp;
	*tagp = stamp << SLOT_STAMP_SHIFT;
	/* The new node came first: a live node is now on top. */
	if (unlikely(timers->heap.first.slot == nr) &&
	    timers->heap.first.stamp == stamp)
		timers->top_is_live = true;
	return 0;
}

/* Gets the pages for freeing the slot: 0 or a page error. */
int timer_prepare_end(struct timers *timers, u32 nr, const struct slot *slot);

/* Frees the slot; the caller has updated @armed and @unacked. Unless its tag is
 * 0 but for the flags, the slot keeps the node with that stamp.
 */
static inline void timer_free(struct timers *timers, u32 nr, struct slot *slot)
{
	if (timer_is_indexed(timers, nr, slot))
		index_remove(&timers->index, timer_hash_of(timers, slot), nr);
	slots_put(&timers->slots, nr, slot);
	/* With the last timer, drop all stale nodes and all pages. */
	if (!timers->slots.used)
		timers_reset(timers);
}

/* Ends a timer: 0 or a page error. */
int timer_end(struct timers *timers, u32 nr, struct slot *slot);

/* Ends a delivery: acknowledged, or read on a plain queue. */
int timer_acknowledge(struct timers *timers, u32 nr, struct slot *slot);

/* Makes a delivered timer due again, for @due and with @state. A periodic timer
 * is armed for @next after that.
 */
int timer_undeliver(struct timers *timers, u32 nr, struct slot *slot, u64 due,
		    u64 next, u32 state);

/* Sweeps stale nodes in proportion to @work just done. */
void timers_sweep(struct timers *timers, u32 work);

/* Compaction begins when fewer than a fourth of the slots are in use. */
#define COMPACT_SPARSE		4U

void timers_compact_some(struct timers *timers, u32 work);

/* Compacts the slots in proportion to @work just done, and counts it for walks. */
static inline void timers_compact(struct timers *timers, u32 work)
{
	const struct slots *slots = &timers->slots;

	if (unlikely(slots->used < slots->nr / COMPACT_SPARSE ||
		     slots_is_compacting(slots) || timers->walks))
		timers_compact_some(timers, work);
}

/* Begins or continues a walk over all slots (SCAN, REWIND). *@posp is the slot to
 * look at next, from 0. Returns false if timers have moved since the call that
 * returned @cursor.
 */
bool timers_walk(const struct timers *timers, u64 cursor, u32 *posp);

/* Ends a call of a walk that began at *@cursorp and is now at @pos. Sets *@cursorp
 * to where it continues. @is_end: nowhere, and *@cursorp is 0.
 */
void timers_walked(struct timers *timers, u64 *cursorp, u32 pos, bool is_end);

#endif /* CORE_LIFECYCLE_H */
