// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Requests: ARM, REFRESH, CANCEL, ACK, QUERY and CLEAR. */
#include "lifecycle.h"

static_assert(sizeof(struct expiry_record) == 32, "one record, one half line");

/* Records whose memory is prefetched together, a part ahead. */
#define PART			32U

static u64 absolute_ns(const struct expiry_record *record, u64 now_ns)
{
	return record->flags & EXPIRY_F_RELATIVE ?
	       add_saturating(now_ns, record->deadline_ns) :
	       record->deadline_ns;
}

static u32 past_flag(u64 deadline, u64 now_ns)
{
	return deadline < now_ns ? SLOT_PAST : 0;
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
		generation++;
		*idp = (u64)generation << 32 | nr;
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
	if (slot_has_node(slot, deadline)) {
		tag = slot->tag;
	} else {
		err = timer_push(timers, nr, deadline, &tag);
		if (err)
			return err;
	}

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

static int apply_record(struct timers *timers, struct expiry_record *record,
			const struct lookup *lookup, u64 now_ns)
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

	if (op < EXPIRY_OP_ARM || op > EXPIRY_OP_CLEAR)
		return -EOPNOTSUPP;
	op = core_nospec(op, EXPIRY_OP_CLEAR + 1U);
	if (record->status || record->flags & ~flags_known[op])
		return -EINVAL;

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

/**
 * struct ahead - the part of a batch that is being processed, and the next one
 * @records: the batch
 * @count: records in it
 * @lookups: of record number n in element n modulo 2 * PART
 */
struct ahead {
	const struct expiry_record *records;
	u32 count;
	struct lookup lookups[2 * PART];
};

/* Returns how many records are in the part that begins with record @begin. */
static inline u32 part_size(const struct ahead *ahead, u32 begin)
{
	if (begin >= ahead->count)
		return 0;
	return ahead->count - begin < PART ? ahead->count - begin : PART;
}

static inline struct lookup *lookup_of(struct ahead *ahead, u32 i)
{
	return &ahead->lookups[i % (2 * PART)];
}

/*
 * Prefetches what a part's records touch first: the slots of a plain queue. The loops
 * here are short, so that the processor has many of their rounds under way.
 */
static void prefetch_part(const struct timers *timers, struct ahead *ahead,
			  u32 begin)
{
	struct lookup *lookups = lookup_of(ahead, begin);
	u32 i, nr = part_size(ahead, begin);

	for (i = 0; i < nr; i++) {
		lookups[i] = (struct lookup){
			.slot = (u32)ahead->records[begin + i].id,
		};
		timer_prefetch(timers, lookups[i].slot);
	}
}

/* Prefetches the same of a keyed queue: the lines of the ids. */
static void prefetch_part_lines(const struct timers *timers,
				struct ahead *ahead, u32 begin)
{
	struct lookup *lookups = lookup_of(ahead, begin);
	u32 i, nr = part_size(ahead, begin);

	for (i = 0; i < nr; i++)
		lookups[i].hash = index_hash(&timers->index,
					     ahead->records[begin + i].id);
	for (i = 0; i < nr; i++)
		lookups[i].line = index_prefetch(&timers->index,
						 lookups[i].hash);
}

/* Prefetches the slots that these lines name. */
static void prefetch_part_slots(const struct timers *timers,
				struct ahead *ahead, u32 begin)
{
	struct lookup *lookups = lookup_of(ahead, begin);
	u32 i, nr = part_size(ahead, begin);

	for (i = 0; i < nr; i++) {
		lookups[i].slot = index_guess(lookups[i].line,
					      lookups[i].hash);
		timer_prefetch(timers, lookups[i].slot);
	}
}

/* Prefetches the part that follows, before record @i: what is to be read first while
 * a part begins, and on a keyed queue the slots half a part later.
 */
static inline void prefetch_next(const struct timers *timers,
				 struct ahead *ahead, u32 i)
{
	if (i % PART == 0) {
		if (timers_is_keyed(timers))
			prefetch_part_lines(timers, ahead, i + PART);
		else
			prefetch_part(timers, ahead, i + PART);
	} else if (i % PART == PART / 2 && timers_is_keyed(timers)) {
		prefetch_part_slots(timers, ahead, i + PART / 2);
	}
}

u32 timers_submit(struct timers *timers, struct expiry_record *records,
		  u32 count, u64 now_ns)
{
	struct ahead ahead;
	int status;
	u32 i;

	ahead.records = records;
	ahead.count = count;
	timers->heap.now = now_ns;
	if (timers_is_keyed(timers)) {
		prefetch_part_lines(timers, &ahead, 0);
		prefetch_part_slots(timers, &ahead, 0);
	} else {
		prefetch_part(timers, &ahead, 0);
	}

	for (i = 0; i < count; i++) {
		prefetch_next(timers, &ahead, i);
		status = apply_record(timers, &records[i], lookup_of(&ahead, i),
				      now_ns);
		if (unlikely(status == -EAGAIN))
			break;
		records[i].status = status;
		if (status)
			timers->stat.refused++;
		if (i % TIMERS_SWEEP_EVERY == TIMERS_SWEEP_EVERY - 1) {
			timers_sweep(timers, TIMERS_SWEEP_EVERY);
			timers_compact(timers, TIMERS_SWEEP_EVERY);
		}
	}
	timers_sweep(timers, i % TIMERS_SWEEP_EVERY);
	timers_compact(timers, i % TIMERS_SWEEP_EVERY);
	return i;
}
