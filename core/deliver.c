// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Deliveries: due timers leave the heap in order, and may return to it. */
#include "lifecycle.h"

/* Possibly stale nodes to check at the top, for each requested delivery. */
#define DELIVER_STEPS		8U
#define DELIVER_STEPS_MIN	64U

/* Steps that bheap_find_first() counts for: it may touch a page of nodes and their
 * slots.
 */
#define FIND_STEPS		(BHEAP_NODES_PER_PAGE / 16 ?: 1U)

/* Slots checked by one call of timers_rewind(). */
#define REWIND_STEPS		512U

/* Compiled out only by `make bench-histograms`, which measures its cost. */
static void count_lateness(struct timers *timers, u64 late_ns)
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

/* Counts one delivery. @past: its deadline had passed when it was set. */
static void count_delivery(struct timers *timers,
			   const struct expiry_record *record, u64 now_ns,
			   bool past)
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
		if (late_ns > timers->late_ns)
			timers->late_ns = late_ns;
		count_lateness(timers, late_ns);
	}
}

#define HASHES		32U

/**
 * struct ahead - deliveries to come in one call
 * @timers: that are delivered
 * @hashes: of the ids that were prefetched, by slot number modulo HASHES
 */
struct ahead {
	struct timers *timers;
	struct {
		u32 slot;
		u32 hash;
	} hashes[HASHES];
};

/* Returns whether a delivery looks its id up in the index. On an acknowledging
 * queue only its ACK does.
 */
static inline bool needs_index(const struct timers *timers)
{
	return (timers->mode & (EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK)) ==
	       EXPIRY_MODE_KEYED;
}

static void ahead_init(struct ahead *ahead, struct timers *timers)
{
	ahead->timers = timers;
	if (needs_index(timers))
		memset(ahead->hashes, 0, sizeof(ahead->hashes));
}

/* Hashes the id of slot @nr, and prefetches its line of the index. */
static void ahead_hash(struct ahead *ahead, u32 nr)
{
	struct timers *timers = ahead->timers;
	const struct slot *slot = slots_peek(&timers->slots, nr);
	u32 hash;

	if (!slot)
		return;
	hash = index_hash(&timers->index, slot->id);
	index_prefetch(&timers->index, hash);
	ahead->hashes[nr % HASHES].slot = nr;
	ahead->hashes[nr % HASHES].hash = hash;
}

/* Prefetches for the heap's next nodes, and for their ids: a bheap_ahead_t. */
static void ahead_prefetch(void *context, const struct bheap_node *node,
			   enum bheap_when when)
{
	struct ahead *ahead = context;

	if (when == BHEAP_NEXT)
		ahead_hash(ahead, node->slot);
	else
		timer_ahead(ahead->timers, node, when);
}

/* Finds the heap's next top, and prefetches for those behind it. */
static inline void find_top(struct ahead *ahead)
{
	struct timers *timers = ahead->timers;
	struct bheap *heap = &timers->heap;

	if (needs_index(timers))
		heap->layout->top(heap, ahead_prefetch, ahead);
	else
		heap->layout->top(heap, timer_ahead, timers);
}

/* Returns the hash of a timer's id, undefined where needs_index() is false. A
 * slot keeps its id during the call.
 */
static inline u32 ahead_take_hash(const struct ahead *ahead, u32 nr,
				  const struct slot *slot)
{
	if (!needs_index(ahead->timers))
		return 0;
	if (likely(ahead->hashes[nr % HASHES].slot == nr))
		return ahead->hashes[nr % HASHES].hash;
	return index_hash(&ahead->timers->index, slot->id);
}

/* Brings in the pages by which the timer is found and ended, by timers_release()
 * too: it cannot wait. Returns 0 or a page error.
 */
static int prepare_index(struct timers *timers, u32 nr, u32 hash)
{
	return needs_index(timers) ? timer_prepare_end(timers, nr, hash) : 0;
}

/* Returns the first time after @now_ns of a timer that was due at @deadline_ns.
 * Sets *@count to the number of its times until @now_ns.
 */
static u64 next_time(u64 deadline_ns, u64 period_ns, u64 now_ns, u32 *count)
{
	u64 late_ns = now_ns - deadline_ns, more = 0;

	if (unlikely(late_ns >= period_ns)) {
		more = div64_u64(late_ns, period_ns);
		deadline_ns += more * period_ns;
	}
	*count = more < ~0U ? more + 1 : ~0U;
	return add_saturating(deadline_ns, period_ns);
}

/* Takes the live node at the top, which is due. */
static int deliver_first(struct ahead *ahead, struct expiry_record *record,
			 struct slot *slot, u64 now_ns, bool keep)
{
	struct timers *timers = ahead->timers;
	struct bheap_node node = timers->heap.first;
	u32 nr = node.slot, hash = ahead_take_hash(ahead, nr, slot);
	u64 id = slot->id, cookie = slot->cookie, due = node.deadline;
	u8 flags = slot->tag & SLOT_REDELIVER ? EXPIRY_F_REDELIVERED : 0;
	u32 count = 0;
	int err;

	if (slot->period_ms) {
		if (slot_is_behind(slot)) {
			node.deadline = slot->deadline;
			count = 1;
		} else {
			node.deadline = next_time(slot->deadline,
						  slot_period_ns(slot), now_ns,
						  &count);
		}
		err = keep ? prepare_index(timers, nr, hash) : 0;
		if (!err)
			err = bheap_replace(&timers->heap, &node);
		if (err)
			return err;
		slot->deadline = node.deadline;
		slot->tag &= ~SLOT_REDELIVER;
		if (keep && !(slot->tag & SLOT_UNACKED)) {
			slot->tag |= SLOT_UNACKED;
			timers->unacked++;
		}
	} else {
		err = prepare_index(timers, nr, hash);
		if (!err)
			err = bheap_pop(&timers->heap);
		if (err)
			return err;
		timers->armed--;
		if (keep) {
			slot->tag = SLOT_UNACKED | (slot->tag & SLOT_PAST);
			timers->unacked++;
		} else {
			slot->tag = 0;
			timer_free(timers, nr, slot, hash);
		}
	}
	/* In registers until here: a copy of a record would wait for its fields. */
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_EXPIRED,
		.flags = flags,
		.count = count,
		.id = id,
		.deadline_ns = due,
		.cookie = cookie,
	};
	return 0;
}

/* Makes the top node a live one. Returns 1 if it is live (*@slotp is its slot)
 * or the heap is empty, 0 to try again, or a page error. Takes steps off *@steps
 * beyond the one that the caller took.
 */
static int drop_stale_step(struct ahead *ahead, struct slot **slotp,
			   u32 *steps)
{
	struct timers *timers = ahead->timers;
	struct bheap *heap = &timers->heap;
	struct bheap_node node;
	int err;

	if (unlikely(heap->is_bound)) {
		*steps -= *steps < FIND_STEPS ? *steps : FIND_STEPS;
		err = bheap_find_first(heap, timer_review, timer_ahead, timers);
		return err < 0 ? err : 0;
	}
	if (!heap->nr)
		return 1;
	*slotp = slots_get(&timers->slots, heap->first.slot);
	if (core_broken(*slotp || timers->slots.pages->error))
		return -EIO;
	if (unlikely(!*slotp))
		return timers->slots.pages->error;

	switch (timer_node_state(&heap->first, *slotp)) {
	case NODE_LIVE:
		return 1;
	case NODE_MOVED:
		node = heap->first;
		node.deadline = (*slotp)->deadline;
		err = bheap_replace(heap, &node);
		break;
	default:
		node = heap->first;
		err = bheap_pop(heap);
		if (!err)
			slot_forget_node(*slotp, &node);
		break;
	}
	if (err)
		return err;
	find_top(ahead);
	return 0;
}

int timers_drop_stale(struct timers *timers, u32 steps)
{
	struct ahead ahead;
	struct slot *slot;
	int done;

	if (timers->top_is_live)
		return 1;
	ahead_init(&ahead, timers);
	while (steps--) {
		done = drop_stale_step(&ahead, &slot, &steps);
		if (done < 0)
			return done;
		if (done) {
			timers->top_is_live = true;
			return 1;
		}
	}
	return 0;
}

int timers_deliver(struct timers *timers, struct expiry_record *records,
		   u32 count, u64 now_ns, bool hold)
{
	bool keep = hold || is_acking(timers), past;
	struct ahead ahead;
	struct slot *slot;
	u32 nr = 0, steps;
	int err = 0;

	if (hold && count > TIMERS_HELD_MAX)
		count = TIMERS_HELD_MAX;
	steps = DELIVER_STEPS_MIN + DELIVER_STEPS * count;
	timers->heap.now = now_ns;
	timers->late_ns = 0;
	timers->held_past = 0;
	ahead_init(&ahead, timers);
	while (nr < count && timers_due(timers, now_ns) && steps--) {
		err = drop_stale_step(&ahead, &slot, &steps);
		if (err < 0)
			break;
		if (!err)
			continue;
		past = slot->tag & SLOT_PAST;
		err = deliver_first(&ahead, &records[nr], slot, now_ns, keep);
		if (err)
			break;
		/* A periodic timer catches up with the present. */
		if (unlikely(past) && records[nr].count &&
		    slot->deadline >= now_ns)
			slot->tag &= ~SLOT_PAST;
		if (!hold)
			count_delivery(timers, &records[nr], now_ns, past);
		else if (past)
			timers->held_past |= 1ULL << nr;
		timers->top_is_live = false;
		nr++;
		find_top(&ahead);
	}
	if (!timers->heap.nr)
		timers->top_is_live = true;
	timers->held_ns = now_ns;
	timers_sweep(timers, nr);
	return nr || err > 0 ? (int)nr : err;
}

int timers_release(struct timers *timers, const struct expiry_record *records,
		   u32 count)
{
	struct slot *slot;
	s64 nr;
	u32 i, hash;
	int err;

	for (i = 0; i < count; i++) {
		if (!is_acking(timers)) {
			hash = timer_hash(timers, records[i].id);
			nr = timer_find_in(timers, records[i].id, hash,
					   SLOT_UNACKED, &slot);
			if (nr < 0 && nr != -ENOENT)
				return nr;
			err = nr > 0 ? timer_acknowledge(timers, nr, slot,
							 hash) : 0;
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
	struct slot *slot;
	s64 nr;
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		nr = timer_find_in(timers, records[i].id,
				   timer_hash(timers, records[i].id),
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
	u32 steps = REWIND_STEPS;
	struct slot *slot;
	u64 due;
	int err;

	while (timers->unacked && *cursor < timers->slots.nr) {
		if (!steps--)
			return 1;
		slot = slots_get(&timers->slots, *cursor + 1);
		if (!slot)
			return timers->slots.pages->error;
		if (slot->tag & SLOT_UNACKED) {
			/* A periodic timer is already armed for its next time.
			 */
			due = slot->tag & SLOT_ARMED ?
			      slot_again_ns(slot, now_ns) : slot->deadline;
			err = timer_undeliver(timers, *cursor + 1, slot, due,
					      slot->deadline, SLOT_REDELIVER);
			if (err)
				return err;
		}
		(*cursor)++;
	}
	*cursor = 0;
	return 0;
}
