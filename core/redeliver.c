// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Deliveries end, or their timers return to the heap. */
#include "deliver.h"

/* Slots checked by one call of timers_rewind(). */
#define REWIND_STEPS		512U

int timers_release(struct timers *timers, const struct expiry_record *records,
		   u32 count)
{
	struct lookup lookup;
	struct slot *slot;
	s64 nr;
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		if (!is_acking(timers)) {
			lookup = timer_lookup(timers, records[i].id);
			nr = timer_find_in(timers, records[i].id, &lookup,
					   SLOT_UNACKED, &slot);
			if (nr < 0 && nr != -ENOENT)
				return nr;
			err = nr > 0 ? timer_acknowledge(timers, nr, slot) : 0;
			if (err)
				return err;
		}
		count_delivery(timers, &records[i], timers->held_ns,
			       i < TIMERS_HELD_MAX &&
			       timers->held_past >> i & 1);
	}
	return 0;
}

/* Finds what an armed, periodic timer was armed for before its first record of
 * @records was taken. After a redelivery a second record may be its own, too.
 * Returns false if a refresh has moved the timer since.
 */
static bool next_before(const struct timers *timers, const struct slot *slot,
			const struct expiry_record *records, u32 count,
			u64 *nextp)
{
	u32 i = records->flags & EXPIRY_F_REDELIVERED ? 1 : 0, passed;

	while (i < count && records[i].id != records->id)
		i++;
	if (i == count) {
		*nextp = slot->deadline;
		return true;
	}
	*nextp = records[i].deadline_ns;
	return next_time(*nextp, slot_period_ns(slot), timers->held_ns,
			 &passed) == slot->deadline;
}

static int restore_timer(struct timers *timers, u32 nr, struct slot *slot,
			 const struct expiry_record *records, u32 count)
{
	u32 state = records->flags & EXPIRY_F_REDELIVERED ? SLOT_REDELIVER : 0;
	u64 next = records->deadline_ns;

	if (slot->tag & SLOT_ARMED &&
	    !next_before(timers, slot, records, count, &next)) {
		if (!state) {
			/* The refresh moved what was due. */
			slot->tag &= ~SLOT_UNACKED;
			timers->unacked--;
			return 0;
		}
		next = slot->deadline;
	}
	return timer_undeliver(timers, nr, slot, records->deadline_ns, next,
			       state);
}

int timers_restore(struct timers *timers, const struct expiry_record *records,
		   u32 count)
{
	struct lookup lookup;
	struct slot *slot;
	s64 nr;
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		lookup = timer_lookup(timers, records[i].id);
		nr = timer_find_in(timers, records[i].id, &lookup,
				   SLOT_UNACKED, &slot);
		if (nr == -ENOENT)
			continue;	/* cleared or armed anew since then */
		if (nr < 0)
			return nr;
		err = restore_timer(timers, nr, slot, records + i, count - i);
		if (err)
			return err;
	}
	return 0;
}

int timers_rewind(struct timers *timers, u64 *cursor, u64 now_ns)
{
	u32 steps = REWIND_STEPS, pos;
	struct slot *slot;
	bool is_end;
	int err = 0;
	u64 due;

	/* Timers that moved may lie before the cursor now. */
	if (!timers_walk(timers, *cursor, &pos))
		pos = 0;
	while (!(is_end = !timers->unacked || pos >= timers->slots.nr) &&
	       steps--) {
		slot = slots_get(&timers->slots, pos + 1);
		if (!slot) {
			err = timers->slots.pages->error;
			break;
		}
		if (slot->tag & SLOT_UNACKED) {
			/* A periodic timer is already armed for its next time.
			 */
			due = slot->tag & SLOT_ARMED ?
			      slot_again_ns(slot, now_ns) : slot->deadline;
			err = timer_undeliver(timers, pos + 1, slot, due,
					      slot->deadline, SLOT_REDELIVER);
			if (err)
				break;
		}
		pos++;
	}
	timers_walked(timers, cursor, pos, is_end);
	return err ?: !is_end;
}
