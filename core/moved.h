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

/* Returns the hash of such a timer of a plain queue. Not inline: it is rare. */
u32 timer_hash_moved(const struct timers *timers, const struct slot *slot);

/* Returns the hash of a timer of the index. @hash: as timer_hash() */
static inline u32 timer_hash_of(const struct timers *timers,
				const struct slot *slot, u32 hash)
{
	return timers_is_keyed(timers) ? hash : timer_hash_moved(timers, slot);
}

#endif /* CORE_MOVED_H */
