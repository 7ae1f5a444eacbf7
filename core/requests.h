/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Requests, for submit.c: one of any kind (requests.c), or several that are alike
 * (alike.c). Private to core/.
 */
#ifndef CORE_REQUESTS_H
#define CORE_REQUESTS_H

#include "lifecycle.h"

/* Returns the mark of a timer whose deadline had passed when it was set. */
static inline u32 past_flag(u64 deadline, u64 now_ns)
{
	return deadline < now_ns ? SLOT_PAST : 0;
}

/* Returns the id that a plain queue gives to a timer in slot @nr. */
static inline u64 timer_id(u32 generation, u32 nr)
{
	return (u64)generation << 32 | nr;
}

/* Gets a node for a timer in a slot that is not in use yet: the one that the slot has
 * kept, or a new one. *@tagp has its stamp.
 */
static inline int timer_get_node(struct timers *timers, u32 nr,
				 const struct slot *slot, u64 deadline,
				 u32 *tagp)
{
	if (slot_has_node(slot, deadline)) {
		*tagp = slot->tag;
		return 0;
	}
	return timer_push(timers, nr, deadline, tagp);
}

/* Carries out one request, and writes the reply but for its status. Returns the
 * status; after -EAGAIN nothing has changed.
 */
int request_apply(struct timers *timers, struct expiry_record *record,
		  const struct lookup *lookup, u64 now_ns);

/* Carries out requests that are alike, as many of the first @count as request_apply()
 * would without a rare case, and counts them. Returns how many, which may be 0.
 */
u32 requests_alike(struct timers *timers, struct expiry_record *records,
		   const struct lookup *lookups, u32 count, u64 now_ns);

#endif /* CORE_REQUESTS_H */
