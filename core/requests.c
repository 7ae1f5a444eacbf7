// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Requests: ARM, REFRESH, CANCEL, ACK, QUERY and CLEAR. */
#include "requests.h"

static_assert(sizeof(struct expiry_record) == 32, "one record, one half line");

static u64 absolute_ns(const struct expiry_record *record, u64 now_ns)
{
	return record->flags & EXPIRY_F_RELATIVE ?
	       add_saturating(now_ns, record->deadline_ns) :
	       record->deadline_ns;
}

/* Gives an armed timer another deadline. */
static int move_deadline(struct timers *timers, u32 nr, struct slot *slot,
			 u64 deadline)
{
	u32 tag;
	int err;

	if (deadline < slot->deadline || slot_is_behind(slot)) {
		if (slot_is_behind(slot) && timers->heap.first.slot == nr)
			timers->top_is_live = false;
		err = timer_push(timers, nr, deadline, &tag);
		if (err)
			return err;
		slot->tag = tag | (slot->tag & SLOT_FLAGS);
	} else if (deadline > slot->deadline && timers->heap.first.slot == nr) {
		timers->top_is_live = false;
	}
	slot->deadline = deadline;
	return 0;
}

/* Returns whether an ARM says that the timer's last delivery waits for its ACK. */
static bool is_unacked(const struct expiry_record *record)
{
	return record->flags & EXPIRY_F_REDELIVERED;
}

static void set_unacked(struct timers *timers, struct slot *slot)
{
	slot->tag |= SLOT_UNACKED;
	timers->unacked++;
}

/* Handles ARM of a known id: an upsert. */
static int arm_again(struct timers *timers, struct expiry_record *record,
		     u32 hash, u32 nr, struct slot *slot, u64 deadline,
		     u64 now_ns)
{
	u32 tag;
	int err;

	if (slot->tag & SLOT_ARMED) {
		if (record->flags & EXPIRY_F_NEW)
			return -EEXIST;
		if (record->flags & EXPIRY_F_LATER && deadline < slot->deadline)
			deadline = slot->deadline;
		err = move_deadline(timers, nr, slot, deadline);
		if (err)
			return err;
	} else {
		err = timer_push(timers, nr, deadline, &tag);
		if (err)
			return err;
		slot->tag = tag | SLOT_ARMED | (slot->tag & SLOT_UNACKED);
		slot->deadline = deadline;
		timers->armed++;
	}
	/* A new ARM replaces the delivered one. */
	if (slot->tag & SLOT_UNACKED)
		timers->unacked--;
	slot->tag &= ~(SLOT_UNACKED | SLOT_REDELIVER | SLOT_PAST);
	slot->tag |= past_flag(deadline, now_ns);
	slot->cookie = record->cookie;
	slot_set_period(slot, record->period_ms, hash);
	if (unlikely(is_unacked(record)))
		set_unacked(timers, slot);

	timers->stat.arms++;
	/* As in all replies: a delivery waits for its ACK. */
	record->flags &= EXPIRY_F_REDELIVERED;
	record->deadline_ns = deadline;
	return 0;
}

/* Makes the id of a plain queue's timer in slot @nr. Where the generations have
 * wrapped around, a timer that has moved from that slot may have it still.
 */
static inline int new_id(struct timers *timers, u32 nr, u64 *idp)
{
	u32 generation = timers->generation;
	struct slot *slot;
	s64 known = 0;

	do {
		*idp = timer_id(++generation, nr);
		if (unlikely(timers->index.nr))
			known = timer_find_moved(timers, *idp, &slot, 0);
	} while (unlikely(known > 0));
	return known;
}

static int arm(struct timers *timers, struct expiry_record *record,
	       const struct lookup *lookup, u64 now_ns)
{
	u64 deadline = absolute_ns(record, now_ns), id = record->id;
	struct slot *slot;
	u32 tag, nr;
	s64 known;
	int err;

	if (unlikely(is_unacked(record)) &&
	    (!is_acking(timers) || !record->period_ms))
		return -EINVAL;

	if (timers_is_keyed(timers)) {
		if (!id)
			return -EINVAL;
		known = timer_find(timers, id, lookup, &slot);
		if (known < 0)
			return known;
		if (known)
			return arm_again(timers, record, lookup->hash, known,
					 slot, deadline, now_ns);
	} else if (id || record->flags & EXPIRY_F_NEW) {
		return -EINVAL;
	}

	if (timers->slots.used >= timers->limit) {
		timers->stat.refused_limit++;
		return -ENOSPC;
	}
	nr = slots_reserve(&timers->slots, &slot);
	if (unlikely(!nr))
		return timers->slots.pages->error;
	if (timers_is_keyed(timers))
		err = index_prepare_absent(&timers->index, lookup->hash);
	else
		err = new_id(timers, nr, &id);
	if (unlikely(err))
		return err;
	err = timer_get_node(timers, nr, slot, deadline, &tag);
	if (unlikely(err))
		return err;

	slots_commit(&timers->slots, nr, slot);
	if (timers_is_keyed(timers))
		index_add(&timers->index, lookup->hash, nr);
	else
		timers->generation = id >> 32;
	slot->deadline = deadline;
	slot->cookie = record->cookie;
	slot->id = id;
	slot->tag = tag | SLOT_ARMED | past_flag(deadline, now_ns);
	slot_set_period(slot, record->period_ms, lookup->hash);
	timers->armed++;
	if (unlikely(is_unacked(record)))
		set_unacked(timers, slot);

	timers->stat.arms++;
	record->flags &= EXPIRY_F_REDELIVERED;
	record->id = id;
	record->deadline_ns = deadline;
	return 0;
}

/* Writes the timer's state into a reply. Its flag says whether a delivery waits for
 * its ACK.
 */
static void describe(const struct timers *timers, struct expiry_record *record,
		     const struct slot *slot)
{
	record->flags = is_acking(timers) &&
			slot->tag & (SLOT_UNACKED | SLOT_REDELIVER) ?
			EXPIRY_F_REDELIVERED : 0;
	record->deadline_ns = slot->deadline;
	record->cookie = slot->cookie;
	record->period_ms = slot_period_ms(slot);
}

static int refresh(struct timers *timers, struct expiry_record *record,
		   const struct lookup *lookup, u64 now_ns)
{
	u64 deadline = absolute_ns(record, now_ns);
	struct slot *slot;
	s64 nr = timer_find_in(timers, record->id, lookup, SLOT_ARMED, &slot);
	int err;

	if (nr < 0)
		return nr;
	if (record->flags & EXPIRY_F_LATER && deadline < slot->deadline)
		deadline = slot->deadline;
	if (slot_is_behind(slot)) {
		/* The delivery to be repeated stays due. */
		slot->deadline = deadline;
	} else {
		err = move_deadline(timers, nr, slot, deadline);
		if (err)
			return err;
		/* The new expiration is no redelivery. */
		slot->tag &= ~SLOT_REDELIVER;
	}
	slot->tag = (slot->tag & ~SLOT_PAST) | past_flag(deadline, now_ns);

	timers->stat.refreshes++;
	describe(timers, record, slot);
	return 0;
}

static int cancel(struct timers *timers, struct expiry_record *record,
		  const struct lookup *lookup, u64 now_ns)
{
	struct slot *slot, had;
	s64 nr = timer_find_in(timers, record->id, lookup, SLOT_ARMED, &slot);
	int err;

	if (nr < 0)
		return nr;
	had = *slot;
	if (slot->tag & SLOT_UNACKED) {
		/* A periodic timer whose last delivery awaits its ACK: only
		 * that delivery is left of it.
		 */
		slot->deadline = slot_again_ns(slot, now_ns);
		slot_set_period(slot, 0, lookup->hash);
		slot->tag &= ~(SLOT_ARMED | SLOT_REDELIVER);
		timers->armed--;
		if (timers->heap.first.slot == nr)
			timers->top_is_live = false;
	} else {
		err = timer_end(timers, nr, slot);
		if (err)
			return err;
	}
	/* A delivery that was to be repeated ends, too. */
	had.tag &= ~SLOT_REDELIVER;
	describe(timers, record, &had);
	timers->stat.cancels++;
	return 0;
}

/* Handles a late ACK: the timer is armed to be delivered again. */
static int acknowledge_rewound(struct timers *timers, u32 nr, struct slot *slot)
{
	u32 tag;
	int err;

	if (!(slot->tag & SLOT_PERIODIC))
		return timer_end(timers, nr, slot);
	if (timers->heap.first.slot == nr)
		timers->top_is_live = false;
	err = timer_push(timers, nr, slot->deadline, &tag);
	if (err)
		return err;
	slot->tag = tag | SLOT_ARMED |
		    (slot->tag & (SLOT_PAST | SLOT_PERIODIC));
	return 0;
}

static int ack(struct timers *timers, struct expiry_record *record,
	       const struct lookup *lookup)
{
	struct slot *slot, had;
	s64 nr;
	int err;

	if (!is_acking(timers))
		return -EINVAL;
	nr = timer_find_in(timers, record->id, lookup,
			   SLOT_UNACKED | SLOT_REDELIVER, &slot);
	if (nr < 0)
		return nr;
	had = *slot;
	if (slot->tag & SLOT_UNACKED)
		err = timer_acknowledge(timers, nr, slot);
	else
		err = acknowledge_rewound(timers, nr, slot);
	if (err)
		return err;
	had.tag &= SLOT_PERIODIC;
	describe(timers, record, &had);
	timers->stat.acks++;
	return 0;
}

static int query(struct timers *timers, struct expiry_record *record,
		 const struct lookup *lookup)
{
	struct slot *slot;
	s64 nr = timer_find_in(timers, record->id, lookup, SLOT_ARMED, &slot);

	if (nr < 0)
		return nr;
	describe(timers, record, slot);
	return 0;
}

static int clear(struct timers *timers, struct expiry_record *record)
{
	record->cookie = timers_nr(timers);
	timers->stat.cancels += timers->armed;
	timers_reset(timers);
	return 0;
}

/* Returns whether a request has an op, flags and status that it may have: 0, or the
 * error.
 */
static inline int check_request(const struct expiry_record *record)
{
	static const u8 flags_known[] = {
		[EXPIRY_OP_ARM] = EXPIRY_F_RELATIVE | EXPIRY_F_NEW |
				  EXPIRY_F_LATER | EXPIRY_F_REDELIVERED,
		[EXPIRY_OP_REFRESH] = EXPIRY_F_RELATIVE | EXPIRY_F_LATER,
		[EXPIRY_OP_CANCEL] = 0,
		[EXPIRY_OP_ACK] = 0,
		[EXPIRY_OP_QUERY] = 0,
		[EXPIRY_OP_CLEAR] = 0,
	};
	u32 op = record->op;

	if (unlikely(op < EXPIRY_OP_ARM || op > EXPIRY_OP_CLEAR))
		return -EOPNOTSUPP;
	op = core_nospec(op, EXPIRY_OP_CLEAR + 1U);
	return record->status || record->flags & ~flags_known[op] ? -EINVAL : 0;
}

int request_apply(struct timers *timers, struct expiry_record *record,
		  const struct lookup *lookup, u64 now_ns)
{
	int err = check_request(record);

	if (unlikely(err))
		return err;
	switch (record->op) {
	case EXPIRY_OP_ARM:
		return arm(timers, record, lookup, now_ns);
	case EXPIRY_OP_REFRESH:
		return refresh(timers, record, lookup, now_ns);
	case EXPIRY_OP_CANCEL:
		return cancel(timers, record, lookup, now_ns);
	case EXPIRY_OP_ACK:
		return ack(timers, record, lookup);
	case EXPIRY_OP_QUERY:
		return query(timers, record, lookup);
	default:
		return clear(timers, record);
	}
}
