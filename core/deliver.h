/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Helpers that deliver.c and redeliver.c share. Private to core/.
 */
#ifndef CORE_DELIVER_H
#define CORE_DELIVER_H

#include "lifecycle.h"

/* Compiled out only by `make bench-histograms`, which measures its cost. */
static inline void count_lateness(struct timers *timers, u64 late_ns)
{
#ifndef NO_HISTOGRAMS
	u32 bucket = fls64(late_ns);

	if (bucket >= EXPIRY_LATENESS_BUCKETS)
		bucket = EXPIRY_LATENESS_BUCKETS - 1;
	timers->stat.lateness[bucket]++;
	if (late_ns > timers->stat.lateness_max_ns)
		timers->stat.lateness_max_ns = late_ns;
#endif
}

/* Notes how late a delivery was. */
static inline void note_late(struct timers *timers, u64 late_ns)
{
	if (late_ns > timers->late_ns)
		timers->late_ns = late_ns;
}

/* Counts one delivery. @past: its deadline had passed when it was set. */
static inline void count_delivery(struct timers *timers,
				  const struct expiry_record *record,
				  u64 now_ns, bool past)
{
	u64 late_ns = now_ns - record->deadline_ns;

	timers->stat.delivered++;
	if (record->flags & EXPIRY_F_REDELIVERED) {
		timers->stat.redelivered++;
	} else if (past) {
		timers->stat.past++;
	} else if (record->deadline_ns < timers->taken_ns) {
		timers->stat.held++;
	} else {
		note_late(timers, late_ns);
		count_lateness(timers, late_ns);
	}
}

/* Returns the first time after @now_ns of a timer that was due at @deadline_ns.
 * Sets *@count to the number of its times until @now_ns.
 */
static inline u64 next_time(u64 deadline_ns, u64 period_ns, u64 now_ns,
			    u32 *count)
{
	u64 late_ns = now_ns - deadline_ns, more = 0;

	if (unlikely(late_ns >= period_ns)) {
		more = div64_u64(late_ns, period_ns);
		deadline_ns += more * period_ns;
	}
	*count = more < ~0U ? more + 1 : ~0U;
	return add_saturating(deadline_ns, period_ns);
}

#endif /* CORE_DELIVER_H */
