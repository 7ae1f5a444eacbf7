// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Deliveries: due timers leave the heap in order. */
#include "deliver.h"

/* Possibly stale nodes to check at the top, for each requested delivery. */
#define DELIVER_STEPS		8U
#define DELIVER_STEPS_MIN	64U

/* Steps that bheap_find_first() counts for: it may touch a page of nodes and their
 * slots.
 */
#define FIND_STEPS	(BHEAP_NODES_PER_PAGE / 4 * 3)

/* Nodes that are delivered together, and those after them that are prefetched: as many
 * as the first of the next batch hide.
 */
#define BATCH			64U
#define BATCH_AHEAD		16U

/**
 * struct delivery - one call of timers_deliver()
 * @timers: that are delivered
 * @now_ns: the time
 * @hold: no delivery is counted yet
 * @keep: a delivered timer's slot stays, unacknowledged
 */
struct delivery {
	struct timers *timers;
	u64 now_ns;
	bool hold;
	bool keep;
};

/**
 * struct batch - the heap's first nodes, and what they refer to
 * @behind: the nodes after the first, side by side
 * @nr: nodes, the first one included
 * @slots: of each node; NULL = not in memory
 */
struct batch {
	const struct bheap_node *behind;
	u32 nr;
	struct slot *slots[BATCH];
};

/* Returns whether a delivery looks its id up in the index. On an acknowledging
 * queue only its ACK does.
 */
static inline bool needs_index(const struct timers *timers)
{
	return timers->index.nr && !is_acking(timers);
}

/* Brings in the pages by which the timer is found and ended, by timers_release()
 * too: it cannot wait. Returns 0 or a page error.
 */
static int prepare_index(struct timers *timers, u32 nr, const struct slot *slot)
{
	return needs_index(timers) ? timer_prepare_end(timers, nr, slot) : 0;
}

/* Prefetches the lines of the index of a batch. A slot without a hash names any line:
 * a free one, or a periodic timer's. On a plain queue all slots are without, and only
 * timers that have moved are in the index.
 */
static void batch_prefetch_index(struct timers *timers,
				 const struct batch *batch)
{
	u32 i;

	for (i = 0; i < batch->nr; i++)
		if (likely(batch->slots[i]))
			index_prefetch(&timers->index, batch->slots[i]->hash);
}

/* Finds up to @count due nodes, and prefetches what they refer to: all slots, those
 * of the next batch, then all lines of the index. So none waits for the one before.
 */
static void batch_find(struct timers *timers, struct batch *batch, u32 count,
		       u64 now_ns)
{
	u32 i, max = BATCH + BATCH_AHEAD, known;

	if (max > count)
		max = count;
	/* A batch ends at a moved timer: where these are many, it is small. */
	if (max > timers->found_live + 1)
		max = timers->found_live + 1;
	/* A node that is never due is the last of all: it is not delivered. */
	if (now_ns == EXPIRY_NEVER)
		now_ns--;
	known = 1 + bheap_next(&timers->heap, now_ns, max - 1, &batch->behind);
	batch->nr = known < BATCH ? known : BATCH;
	batch->slots[0] = timer_prefetch(timers, timers->heap.first.slot);
	for (i = 1; i < batch->nr; i++)
		batch->slots[i] = timer_prefetch(timers,
						 batch->behind[i - 1].slot);
	for (; i < known; i++)
		timer_prefetch(timers, batch->behind[i - 1].slot);
	if (needs_index(timers) && timers_is_keyed(timers))
		batch_prefetch_index(timers, batch);
}

/* Counts a delivery, the @nr-th of the call. @past: its deadline had passed when it
 * was set.
 */
static inline void count_or_hold(const struct delivery *delivery,
				 const struct expiry_record *record, u32 nr,
				 bool past)
{
	struct timers *timers = delivery->timers;

	if (!delivery->hold)
		count_delivery(timers, record, delivery->now_ns, past);
	else if (past)
		timers->held_past |= 1ULL << nr;
}

/* Returns the flags of a timer's expiration. */
static inline u8 expired_flags(const struct slot *slot)
{
	return slot->tag & SLOT_REDELIVER ? EXPIRY_F_REDELIVERED : 0;
}

/* Writes the expiration of a timer that was due at @due, @count times. */
static inline void write_expiration(struct expiry_record *record,
				    const struct slot *slot, u8 flags, u64 due,
				    u32 count)
{
	/* At once: a copy of a record would wait for its fields. */
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_EXPIRED,
		.flags = flags,
		.count = count,
		.id = slot->id,
		.deadline_ns = due,
		.cookie = slot->cookie,
	};
}

/* Disarms a timer without a period that was delivered. Cannot fail after prepare_index(). */
static inline void disarm(const struct delivery *delivery, u32 nr,
			  struct slot *slot)
{
	struct timers *timers = delivery->timers;

	timers->armed--;
	if (delivery->keep) {
		slot->tag = SLOT_UNACKED | (slot->tag & SLOT_PAST);
		timers->unacked++;
	} else {
		slot->tag = 0;
		timer_free(timers, nr, slot);
	}
}

/* Delivers nodes of a batch from the @i-th on, as long as their timers are armed, and
 * that is all. What is the same for all of them is found out once. Returns how many.
 */
static u32 deliver_alike(const struct delivery *delivery,
			 const struct batch *batch, u32 i,
			 struct expiry_record *records)
{
	struct timers *timers = delivery->timers;
	u32 begin = i, end = batch->nr;
	bool is_indexed = needs_index(timers);
	const struct bheap_node *first;

	/* Nothing is behind the first node then. */
	if (i == end)
		return 0;
	/* On a plain queue the index has few timers. The last timer's end drops all
	 * nodes.
	 */
	if ((is_indexed && !timers_is_keyed(timers)) ||
	    (!delivery->keep && timers->slots.used <= end - i))
		return 0;
	first = &batch->behind[i - 1];
	for (; i < end; i++) {
		const struct bheap_node *node = &batch->behind[i - 1];
		struct slot *slot = batch->slots[i];

		if (unlikely(!slot || node->deadline < timers->taken_ns ||
			     slot->tag != (node->stamp << SLOT_STAMP_SHIFT |
					   SLOT_ARMED) ||
			     slot->deadline != node->deadline))
			break;
		if (is_indexed &&
		    unlikely(index_prepare_remove(&timers->index, slot->hash,
						  node->slot)))
			break;
		write_expiration(records++, slot, 0, node->deadline, 0);
		if (!delivery->hold)
			count_lateness(timers,
				       delivery->now_ns - node->deadline);
		if (delivery->keep) {
			slot->tag = SLOT_UNACKED;
			continue;
		}
		if (is_indexed)
			index_remove(&timers->index, slot->hash, node->slot);
		slot->tag = 0;
		slots_put(&timers->slots, node->slot, slot);
	}
	i -= begin;
	timers->armed -= i;
	if (delivery->keep)
		timers->unacked += i;
	if (i && !delivery->hold) {
		timers->stat.delivered += i;
		note_late(timers, delivery->now_ns - first->deadline);
	}
	return i;
}

/* Delivers the heap's first nodes, whose first is live. A batch ends before a
 * periodic or moved timer, which needs a node elsewhere. @nr deliveries came before.
 * Returns how many it delivered, or if there are none, 0 or a page error.
 *
 * A node is taken after its timer's delivery. One that cannot be taken because a
 * page is missing is stale by then.
 */
static int deliver_batch(const struct delivery *delivery,
			 struct expiry_record *records, u32 nr, u32 count)
{
	struct timers *timers = delivery->timers;
	struct bheap *heap = &timers->heap;
	u32 i, begin = nr, live = nr;
	struct batch batch __uninitialized;
	int err = 0;

	batch_find(timers, &batch, count, delivery->now_ns);
	/* With its last timer a queue drops all nodes. */
	for (i = 0; i < batch.nr && heap->nr; i++) {
		const struct bheap_node *node = i ? &batch.behind[i - 1] :
						    &heap->first;
		struct slot *slot = batch.slots[i];
		enum node_state state;
		u32 alike;

		if (unlikely(!slot)) {
			slot = slots_get(&timers->slots, node->slot);
			err = slot ? 0 : timers->slots.pages->error;
			if (err)
				break;
			if (!slot) {
				/* It was dropped: the node is stale. */
				timers->found_live = 0;
				live = nr;
				continue;
			}
		}
		state = timer_node_state(node, slot);
		if (unlikely(state == NODE_STALE)) {
			timers->found_live = 0;
			live = nr;
			slot_forget_node(slot, node);
			continue;
		}
		if (unlikely(state == NODE_MOVED || slot->tag & SLOT_PERIODIC))
			break;
		err = prepare_index(timers, node->slot, slot);
		if (unlikely(err))
			break;
		write_expiration(&records[nr], slot, expired_flags(slot),
				 node->deadline, 0);
		count_or_hold(delivery, &records[nr], nr, slot->tag & SLOT_PAST);
		disarm(delivery, node->slot, slot);
		nr++;
		alike = deliver_alike(delivery, &batch, i + 1, &records[nr]);
		i += alike;
		nr += alike;
	}
	timer_found_live(timers, nr - live);
	if (i && heap->nr)
		bheap_take(heap, i);
	if (batch.nr == 1)
		heap->layout->top(heap, timer_ahead, timers);
	return nr > begin ? (int)(nr - begin) : err;
}

/* Delivers the first node, of a periodic timer, and arms it for its next time.
 * Returns 1 or a page error.
 */
static int deliver_periodic(const struct delivery *delivery,
			    struct expiry_record *record, u32 nr,
			    struct slot *slot)
{
	struct timers *timers = delivery->timers;
	struct bheap_node node = timers->heap.first;
	bool past = slot->tag & SLOT_PAST;
	u64 due = node.deadline;
	u32 count = 1;
	int err = 0;

	if (slot_is_behind(slot))
		node.deadline = slot->deadline;
	else
		node.deadline = next_time(slot->deadline, slot_period_ns(slot),
					  delivery->now_ns, &count);
	if (delivery->keep && needs_index(timers))
		err = timer_prepare_end(timers, node.slot, slot);
	if (!err)
		err = bheap_replace(&timers->heap, &node);
	if (err)
		return err;
	write_expiration(record, slot, expired_flags(slot), due, count);
	count_or_hold(delivery, record, nr, past);

	slot->deadline = node.deadline;
	slot->tag &= ~SLOT_REDELIVER;
	if (delivery->keep && !(slot->tag & SLOT_UNACKED)) {
		slot->tag |= SLOT_UNACKED;
		timers->unacked++;
	}
	/* A periodic timer catches up with the present. */
	if (unlikely(past) && slot->deadline >= delivery->now_ns)
		slot->tag &= ~SLOT_PAST;
	timers->heap.layout->top(&timers->heap, timer_ahead, timers);
	return 1;
}

/* Returns whether it is worth looking at timers before they are first: if some of
 * late were cancelled or moved.
 */
static inline bool needs_review(const struct timers *timers)
{
	return timers->found_live < TIMERS_FOUND_LIVE;
}

/* Makes the top node a live one. Returns 1 if it is live (*@slotp is its slot)
 * or the heap is empty, 0 to try again, or a page error. Takes steps off *@steps
 * beyond the one that the caller took.
 */
static int drop_stale_step(struct timers *timers, struct slot **slotp,
			   u32 *steps)
{
	struct bheap *heap = &timers->heap;
	struct bheap_node node;
	int err;

	if (unlikely(heap->is_bound)) {
		*steps -= *steps < FIND_STEPS ? *steps : FIND_STEPS;
		err = bheap_find_first(heap, needs_review(timers) ?
					     timer_review : NULL,
				       timer_ahead, timers);
		return err < 0 ? err : 0;
	}
	if (!heap->nr)
		return 1;
	*slotp = slots_get(&timers->slots, heap->first.slot);
	if (unlikely(!*slotp && timers->slots.pages->error))
		return timers->slots.pages->error;

	/* A slot that was dropped leaves its node stale. */
	switch (*slotp ? timer_node_state(&heap->first, *slotp) : NODE_STALE) {
	case NODE_LIVE:
		return 1;
	case NODE_MOVED:
		timers->found_live = 0;
		node = heap->first;
		node.deadline = (*slotp)->deadline;
		err = bheap_replace(heap, &node);
		break;
	default:
		timers->found_live = 0;
		node = heap->first;
		err = bheap_pop(heap);
		if (!err && *slotp)
			slot_forget_node(*slotp, &node);
		break;
	}
	if (err)
		return err;
	heap->layout->top(heap, timer_ahead, timers);
	return 0;
}

int timers_drop_stale(struct timers *timers, u32 steps)
{
	struct slot *slot;
	int done;

	if (timers->top_is_live)
		return 1;
	while (steps--) {
		done = drop_stale_step(timers, &slot, &steps);
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
	struct delivery delivery = {
		.timers = timers,
		.now_ns = now_ns,
		.hold = hold,
		.keep = hold || is_acking(timers),
	};
	struct slot *slot;
	u32 nr = 0, steps;
	int err = 0;

	if (hold && count > TIMERS_HELD_MAX)
		count = TIMERS_HELD_MAX;
	steps = DELIVER_STEPS_MIN + DELIVER_STEPS * count;
	timers->heap.now = now_ns;
	timers->late_ns = 0;
	timers->held_past = 0;
	while (nr < count && timers_due(timers, now_ns) && steps--) {
		err = drop_stale_step(timers, &slot, &steps);
		if (err < 0)
			break;
		if (!err)
			continue;
		timers->top_is_live = false;
		if (unlikely(slot->tag & SLOT_PERIODIC))
			err = deliver_periodic(&delivery, &records[nr], nr,
					       slot);
		else
			err = deliver_batch(&delivery, records, nr, count - nr);
		if (err < 0)
			break;
		nr += err;
	}
	if (!timers->heap.nr)
		timers->top_is_live = true;
	timers->held_ns = now_ns;
	timers_sweep(timers, nr);
	return nr || err > 0 ? (int)nr : err;
}
