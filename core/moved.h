/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Timers of a plain queue that compaction has moved from the slot of their id. The
 * queue's index has them, and no others. Private to core/.
 */
#ifndef CORE_MOVED_H
#define CORE_MOVED_H

#include "timers.h"

/* Finds a timer of a plain queue that is not in the slot of its id: compaction has
 * moved it. Returns the slot's number or a page error; @err, if there is none.
 */
s64 timer_find_moved(struct timers *timers, u64 id, struct slot **slotp,
		     int err);

/* Returns whether the index has the timer. On a plain queue it has those that were
 * moved.
 */
static inline bool timer_is_indexed(const struct timers *timers, u32 nr,
				    const struct slot *slot)
{
	if (likely(!timers->index.nr))
		return false;
	return timers_is_keyed(timers) || (u32)slot->id != nr;
}

/* Hashes the id of a timer whose slot has no room for the hash. Not inline: it is
 * rare.
 */
u32 timer_hash_id(const struct timers *timers, const struct slot *slot);

/* Returns the hash of a timer of the index. */
static inline u32 timer_hash_of(const struct timers *timers,
				const struct slot *slot)
{
	return likely(timers_is_keyed(timers) && !(slot->tag & SLOT_PERIODIC)) ?
	       slot->hash : timer_hash_id(timers, slot);
}

#endif /* CORE_MOVED_H */
