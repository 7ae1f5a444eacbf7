/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The life of one timer, as requests.c and deliver.c bring it about: found,
 * pushed, acknowledged, ended. Private to core/; life.c tells how it goes.
 */
#ifndef CORE_LIFE_H
#define CORE_LIFE_H

#include "timers.h"

/* Nodes looked at by the sweep for each record or delivery. */
#define SWEEP_STEPS		8U
#define SWEEP_EVERY		32U

#define NSEC_PER_MSEC_64	1000000ULL

/* What the sweep and the deliveries know of a node. */
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
	return slot->period_ms * NSEC_PER_MSEC_64;
}

/* When a periodic timer that is armed for its next time was last due; a refresh
 * may have put that next time anywhere.
 */
static inline u64 slot_last_ns(const struct slot *slot)
{
	u64 period_ns = slot_period_ns(slot);

	if (slot->deadline == EXPIRY_NEVER)
		return EXPIRY_NEVER;
	return slot->deadline > period_ns ? slot->deadline - period_ns : 0;
}

static inline bool is_keyed(const struct timers *timers)
{
	return timers->mode & EXPIRY_MODE_KEYED;
}

static inline bool is_acking(const struct timers *timers)
{
	return timers->mode & EXPIRY_MODE_ACK;
}

/* What the last delivery of such a timer is due for when it comes again: what it
 * was due for then or, where a refresh put the next time far away, now.
 */
static inline u64 slot_again_ns(const struct slot *slot, u64 now_ns)
{
	u64 last_ns = slot_last_ns(slot);

	return last_ns < now_ns ? last_ns : now_ns;
}

/* Whether the node is a delivery's that comes again, and @deadline is what the
 * timer is armed for after it.
 */
static inline bool slot_is_behind(const struct slot *slot)
{
	return slot->tag & SLOT_REDELIVER && slot->period_ms;
}

/* What the functions below want to know of an id, so that none works it out
 * again: its hash on a keyed queue, of no meaning on a plain one.
 */
static inline u32 life_hash(const struct timers *timers, u64 id)
{
	return is_keyed(timers) ? index_hash(&timers->index, id) : 0;
}

/* The slot of @id: its number, 0 if there is no such timer, or a page error. */
static inline s64 life_find(struct timers *timers, u64 id, u32 hash,
			    struct slot **slotp)
{
	u32 nr = (u32)id;

	if (is_keyed(timers))
		return index_find(&timers->index, &timers->slots, id, hash,
				  slotp);

	*slotp = slots_get(&timers->slots, nr);
	if (!*slotp)
		return nr && nr <= timers->slots.nr ?
		       timers->slots.pages->error : 0;
	return (*slotp)->id == id ? nr : 0;
}

/* The same for a timer in one of the states of @mask, else -ENOENT. */
static inline s64 life_find_in(struct timers *timers, u64 id, u32 hash,
			       u32 mask, struct slot **slotp)
{
	s64 nr;

	if (!id)
		return -EINVAL;
	nr = life_find(timers, id, hash, slotp);
	if (nr <= 0)
		return nr ?: -ENOENT;
	return (*slotp)->tag & mask ? nr : -ENOENT;
}

/* Send for the slot of a timer that will be looked at soon. */
static inline void life_send_for(const struct timers *timers, u32 nr)
{
	const struct slot *slot = slots_peek(&timers->slots, nr);

	if (slot)
		prefetchw(slot);
}

/* A bheap_ahead_t for the heap's nodes; @context is the struct timers. */
void life_ahead(void *context, const struct bheap_node *node,
		enum bheap_when when);

enum node_state life_node(const struct bheap_node *node,
			  const struct slot *slot);

/* Push a node for @deadline; *@tagp is the stamp to put into the slot's tag. */
int life_push(struct timers *timers, u32 nr, u64 deadline, u32 *tagp);

/* Get what it takes to give the slot back: 0 or a page error. */
int life_prepare_end(struct timers *timers, u32 nr, u32 hash);

/* Give the slot back; the caller has put @armed and @unacked right. */
void life_free(struct timers *timers, u32 nr, struct slot *slot, u32 hash);

/* Nothing more is to come of the timer: 0 or a page error. */
int life_end(struct timers *timers, u32 nr, struct slot *slot, u32 hash);

/* A delivery is over: acknowledged, or read on a plain queue. */
int life_acknowledge(struct timers *timers, u32 nr, struct slot *slot,
		     u32 hash);

/* Make what was delivered due again, for @due and with @state; after that the
 * timer is armed for @next, if it is periodic.
 */
int life_undeliver(struct timers *timers, u32 nr, struct slot *slot, u64 due,
		   u64 next, u32 state);

/* Work off what is stale, in proportion to @work just done. */
void life_sweep(struct timers *timers, u32 work);

/* Forget everything; ids given before stay stale, for the generation goes on. */
void timers_reset(struct timers *timers);

#endif /* CORE_LIFE_H */
