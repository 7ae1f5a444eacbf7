// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Timers in the index of a plain queue: see moved.h. */
#include "moved.h"

s64 timer_find_moved(struct timers *timers, u64 id, struct slot **slotp,
		     int err)
{
	s64 nr;

	if (likely(!timers->index.nr))
		return err;
	nr = index_find(&timers->index, &timers->slots, id,
			index_hash(&timers->index, id), slotp);
	return nr ?: err;
}

u32 timer_hash_id(const struct timers *timers, const struct slot *slot)
{
	return index_hash(&timers->index, slot->id);
}
