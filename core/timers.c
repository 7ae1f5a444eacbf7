// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Timers: the life of one in terms of heap, slots and index.
 *
 * An armed timer has exactly one live node in the heap: the one whose stamp is
 * the slot's. Its deadline is never later than the slot's. So
 *
 *   refresh to later, cancel	change the slot alone; the node goes stale and
 *				is put right or dropped when it surfaces
 *   refresh to earlier		pushes a node with a new stamp; the old one is
 *				stale
 *
 * and the heap never has to find a node. Stamps come from one counter a queue;
 * one that comes round again after 2^29 pushes could only make a stale node
 * look live, which is harmless: nothing is delivered before the slot's own
 * deadline, and not twice, since the slot is disarmed by the first.
 *
 * What is stale is swept out in proportion to the work done, so that the nodes
 * stay within twice the limit and soon return within twice what is armed.
 *
 * An operation that needs a page which cannot be had fails before it changes
 * anything; the functions below therefore get every page first.
 */
#include "timers.h"

static_assert(sizeof(struct expiry_record) == 32, "one record, one half line");

#define NSEC_PER_MSEC_64	1000000ULL

/* Records whose memory is sent for while one is handled. */
#define AHEAD			8U

/* Nodes looked at by the sweep for each record or delivery. */
#define SWEEP_STEPS		8U
#define SWEEP_EVERY		32U

/* Nodes that may come to the top and prove stale, for each delivery asked. */
#define DELIVER_STEPS		8U
#define DELIVER_STEPS_MIN	64U

/* Slots looked at by one call. */
#define REWIND_STEPS		512U
#define SCAN_STEPS		4096U

static inline u64 add_saturating(u64 a, u64 b)
{
	return a + b < a ? EXPIRY_NEVER : a + b;
}

static inline u64 slot_period_ns(const struct slot *slot)
{
	return slot->period_ms * NSEC_PER_MSEC_64;
}

/* When a periodic timer that is armed for its next time was last due; a refresh
 * may have put that next time anywhere.
 */
static u64 slot_last_ns(const struct slot *slot)
{
	u64 period_ns = slot_period_ns(slot);

	if (slot->deadline == EXPIRY_NEVER)
		return EXPIRY_NEVER;
	return slot->deadline > period_ns ? slot->deadline - period_ns : 0;
}

static inline bool is_keyed(const struct timers *timers)
{
	return timers->mode & EXPIRY_MODE_KEYED;
}

static inline bool is_acking(const struct timers *timers)
{
	return timers->mode & EXPIRY_MODE_ACK;
}

/* Nodes are kept below this: what is live, as much again, and what a sweep may
 * leave behind.
 */
static u64 nodes_max(u64 limit)
{
	return 2 * limit + 4 * (BHEAP_NODES_PER_PAGE + SWEEP_EVERY);
}

u32 timers_pages_max(const struct timers_config *config, enum timers_pages which)
{
	switch (which) {
	case TIMERS_PAGES_HEAP:
		return nodes_max(config->limit) / BHEAP_NODES_PER_PAGE + 1;
	case TIMERS_PAGES_SLOTS:
		return slots_pages_max(config->limit);
	case TIMERS_PAGES_INDEX_0:
	case TIMERS_PAGES_INDEX_1:
		return config->mode & EXPIRY_MODE_KEYED ?
		       index_pages_max(config->limit) : 0;
	default:
		return 0;
	}
}

int timers_init(struct timers *timers, const struct timers_config *config,
		struct core_pages *pages[TIMERS_PAGES_NR])
{
	if (config->mode & ~(u32)EXPIRY_MODE_ALL)
		return -EINVAL;
	if (!config->limit || config->limit > TIMERS_MAX)
		return -EINVAL;

	memset(timers, 0, sizeof(*timers));
	timers->mode = config->mode;
	timers->limit = config->limit;
	bheap_init(&timers->heap, config->layout, pages[TIMERS_PAGES_HEAP]);
	slots_init(&timers->slots, pages[TIMERS_PAGES_SLOTS]);
	index_init(&timers->index, pages[TIMERS_PAGES_INDEX_0],
		   pages[TIMERS_PAGES_INDEX_1], config->seed);
	timers->settled = true;
	return 0;
}

/* Forget everything; ids given before stay stale, since the generation goes on. */
static void reset(struct timers *timers)
{
	bheap_init(&timers->heap, timers->heap.layout, timers->heap.pages);
	slots_reset(&timers->slots);
	if (is_keyed(timers))
		index_reset(&timers->index);
	timers->armed = 0;
	timers->unacked = 0;
	timers->settled = true;
}

/* Push a node for @deadline; the stamp to put into the slot's tag. */
static int push_node(struct timers *timers, u32 nr, u64 deadline, u32 *tagp)
{
	u32 stamp = (timers->stamp + 1) & (~0U >> SLOT_STAMP_SHIFT);
	struct bheap_node node = {
		.deadline = deadline,
		.slot = nr,
		.stamp = stamp,
	};
	int err = bheap_push(&timers->heap, &node);

	if (unlikely(err))
		return err;
	timers->stamp = stamp;
	*tagp = stamp << SLOT_STAMP_SHIFT;
	/* It came first: a live node is on top, whatever was there before. */
	if (timers->heap.first.slot == nr && timers->heap.first.stamp == stamp)
		timers->settled = true;
	return 0;
}

/* Get what it takes to free the slot: 0 or a page error. */
static int prepare_free(struct timers *timers, u32 nr, const struct slot *slot)
{
	if (!is_keyed(timers))
		return 0;
	return index_prepare_remove(&timers->index,
				    index_hash(&timers->index, slot->id), nr);
}

/* Give the slot back; the caller has put @armed and @unacked right. */
static void free_slot(struct timers *timers, u32 nr, struct slot *slot)
{
	if (is_keyed(timers))
		index_remove(&timers->index,
			     index_hash(&timers->index, slot->id), nr);
	slots_put(&timers->slots, nr, slot);
	/* The last timer takes all stale nodes and all pages with it. */
	if (!timers->slots.used)
		reset(timers);
}

/* Nothing more is to come of the timer: 0 or a page error. */
static int forget(struct timers *timers, u32 nr, struct slot *slot)
{
	int err = prepare_free(timers, nr, slot);

	if (err)
		return err;
	if (slot->tag & SLOT_ARMED) {
		timers->armed--;
		/* What may be the node on top is stale now. */
		if (timers->heap.first.slot == nr)
			timers->settled = false;
	}
	if (slot->tag & SLOT_UNACKED)
		timers->unacked--;
	free_slot(timers, nr, slot);
	return 0;
}

/* The slot of @id: its number, 0 if there is no such timer, or a page error. */
static s64 find(struct timers *timers, u64 id, struct slot **slotp)
{
	u32 nr = (u32)id;

	if (is_keyed(timers))
		return index_find(&timers->index, &timers->slots, id,
				  index_hash(&timers->index, id), slotp);

	*slotp = slots_get(&timers->slots, nr);
	if (!*slotp)
		return nr && nr <= timers->slots.nr ?
		       timers->slots.pages->error : 0;
	return (*slotp)->id == id ? nr : 0;
}

/* The same for a timer in one of the states of @mask, else -ENOENT. */
static s64 find_in(struct timers *timers, u64 id, u32 mask, struct slot **slotp)
{
	s64 nr;

	if (!id)
		return -EINVAL;
	nr = find(timers, id, slotp);
	if (nr <= 0)
		return nr ?: -ENOENT;
	return (*slotp)->tag & mask ? nr : -ENOENT;
}

static u64 absolute(const struct expiry_record *record, u64 now_ns)
{
	return record->flags & EXPIRY_F_RELATIVE ?
	       add_saturating(now_ns, record->deadline_ns) :
	       record->deadline_ns;
}

/* Give an armed timer another deadline. */
static int move(struct timers *timers, u32 nr, struct slot *slot, u64 deadline)
{
	u32 tag;
	int err;

	if (deadline < slot->deadline) {
		err = push_node(timers, nr, deadline, &tag);
		if (err)
			return err;
		slot->tag = tag | (slot->tag & SLOT_STATE);
	} else if (deadline > slot->deadline && timers->heap.first.slot == nr) {
		timers->settled = false;
	}
	slot->deadline = deadline;
	return 0;
}

/* ARM of an id that is known: an upsert. */
static int arm_again(struct timers *timers, struct expiry_record *record,
		     u32 nr, struct slot *slot, u64 deadline)
{
	u32 tag;
	int err;

	if (slot->tag & SLOT_ARMED) {
		if (record->flags & EXPIRY_F_NEW)
			return -EEXIST;
		if (record->flags & EXPIRY_F_LATER && deadline < slot->deadline)
			deadline = slot->deadline;
		err = move(timers, nr, slot, deadline);
		if (err)
			return err;
	} else {
		err = push_node(timers, nr, deadline, &tag);
		if (err)
			return err;
		slot->tag = tag | SLOT_ARMED | (slot->tag & SLOT_UNACKED);
		slot->deadline = deadline;
		timers->armed++;
	}
	/* The client has said anew what it wants of this id. */
	if (slot->tag & SLOT_UNACKED)
		timers->unacked--;
	slot->tag &= ~(SLOT_UNACKED | SLOT_REDELIVER);
	slot->cookie = record->cookie;
	slot->period_ms = record->period_ms;

	timers->stat.arms++;
	record->flags = 0;
	record->deadline_ns = deadline;
	return 0;
}

static int arm(struct timers *timers, struct expiry_record *record, u64 now_ns)
{
	u64 deadline = absolute(record, now_ns), id = record->id;
	struct slot *slot;
	u32 hash = 0, tag, nr;
	s64 known;
	int err;

	if (is_keyed(timers)) {
		if (!id)
			return -EINVAL;
		hash = index_hash(&timers->index, id);
		known = index_find(&timers->index, &timers->slots, id, hash,
				   &slot);
		if (known < 0)
			return known;
		if (known)
			return arm_again(timers, record, known, slot, deadline);
	} else if (id || record->flags & EXPIRY_F_NEW) {
		return -EINVAL;
	}

	if (timers->slots.used >= timers->limit) {
		timers->stat.refused_limit++;
		return -ENOSPC;
	}
	nr = slots_offer(&timers->slots, &slot);
	if (unlikely(!nr))
		return timers->slots.pages->error;
	if (is_keyed(timers)) {
		err = index_prepare(&timers->index, hash);
		if (err)
			return err;
	}
	err = push_node(timers, nr, deadline, &tag);
	if (err)
		return err;

	slots_take(&timers->slots, nr, slot);
	if (is_keyed(timers))
		index_add(&timers->index, hash, nr);
	else
		id = (u64)(++timers->generation) << 32 | nr;
	slot->deadline = deadline;
	slot->cookie = record->cookie;
	slot->id = id;
	slot->period_ms = record->period_ms;
	slot->tag = tag | SLOT_ARMED;
	timers->armed++;

	timers->stat.arms++;
	record->flags = 0;
	record->id = id;
	record->deadline_ns = deadline;
	return 0;
}

static void describe(struct expiry_record *record, const struct slot *slot)
{
	record->deadline_ns = slot->deadline;
	record->cookie = slot->cookie;
	record->period_ms = slot->period_ms;
}

static int refresh(struct timers *timers, struct expiry_record *record,
		   u64 now_ns)
{
	u64 deadline = absolute(record, now_ns);
	struct slot *slot;
	s64 nr = find_in(timers, record->id, SLOT_ARMED, &slot);
	int err;

	if (nr < 0)
		return nr;
	if (record->flags & EXPIRY_F_LATER && deadline < slot->deadline)
		deadline = slot->deadline;
	err = move(timers, nr, slot, deadline);
	if (err)
		return err;

	/* What it expires for next is not what was delivered before. */
	slot->tag &= ~SLOT_REDELIVER;

	timers->stat.refreshes++;
	record->flags = 0;
	describe(record, slot);
	return 0;
}

static int cancel(struct timers *timers, struct expiry_record *record)
{
	struct slot *slot, had;
	s64 nr = find_in(timers, record->id, SLOT_ARMED, &slot);
	int err;

	if (nr < 0)
		return nr;
	had = *slot;
	if (slot->tag & SLOT_UNACKED) {
		/* A periodic one whose last delivery awaits its ACK: that
		 * delivery is what is left of it.
		 */
		slot->deadline = slot_last_ns(slot);
		slot->period_ms = 0;
		slot->tag &= ~(SLOT_ARMED | SLOT_REDELIVER);
		timers->armed--;
		if (timers->heap.first.slot == nr)
			timers->settled = false;
	} else {
		err = forget(timers, nr, slot);
		if (err)
			return err;
	}
	describe(record, &had);
	timers->stat.cancels++;
	return 0;
}

/* A delivery is over: acknowledged, or read on a plain queue. */
static int acknowledge(struct timers *timers, u32 nr, struct slot *slot)
{
	if (!(slot->tag & SLOT_ARMED))
		return forget(timers, nr, slot);
	slot->tag &= ~SLOT_UNACKED;
	timers->unacked--;
	return 0;
}

/* A late ACK: the timer is armed to be delivered again. */
static int acknowledge_rewound(struct timers *timers, u32 nr, struct slot *slot)
{
	if (!slot->period_ms)
		return forget(timers, nr, slot);
	if (timers->heap.first.slot == nr)
		timers->settled = false;
	slot->tag &= ~SLOT_REDELIVER;
	slot->deadline = add_saturating(slot->deadline, slot_period_ns(slot));
	return 0;
}

static int ack(struct timers *timers, struct expiry_record *record)
{
	struct slot *slot;
	s64 nr;
	int err;

	if (!is_acking(timers))
		return -EINVAL;
	nr = find_in(timers, record->id, SLOT_UNACKED | SLOT_REDELIVER, &slot);
	if (nr < 0)
		return nr;
	if (slot->tag & SLOT_UNACKED)
		err = acknowledge(timers, nr, slot);
	else
		err = acknowledge_rewound(timers, nr, slot);
	if (err)
		return err;
	timers->stat.acks++;
	return 0;
}

static int query(struct timers *timers, struct expiry_record *record)
{
	struct slot *slot;
	s64 nr = find_in(timers, record->id, SLOT_ARMED, &slot);

	if (nr < 0)
		return nr;
	describe(record, slot);
	return 0;
}

static int clear(struct timers *timers, struct expiry_record *record)
{
	record->cookie = timers_nr(timers);
	timers->stat.cancels += timers->armed;
	reset(timers);
	return 0;
}

static int apply(struct timers *timers, struct expiry_record *record, u64 now_ns)
{
	static const u8 flags_known[] = {
		[EXPIRY_OP_ARM] = EXPIRY_F_RELATIVE | EXPIRY_F_NEW |
				  EXPIRY_F_LATER,
		[EXPIRY_OP_REFRESH] = EXPIRY_F_RELATIVE | EXPIRY_F_LATER,
		[EXPIRY_OP_CANCEL] = 0,
		[EXPIRY_OP_ACK] = 0,
		[EXPIRY_OP_QUERY] = 0,
		[EXPIRY_OP_CLEAR] = 0,
	};

	if (record->op < EXPIRY_OP_ARM || record->op > EXPIRY_OP_CLEAR)
		return -EOPNOTSUPP;
	if (record->status || record->flags & ~flags_known[record->op])
		return -EINVAL;

	switch (record->op) {
	case EXPIRY_OP_ARM:
		return arm(timers, record, now_ns);
	case EXPIRY_OP_REFRESH:
		return refresh(timers, record, now_ns);
	case EXPIRY_OP_CANCEL:
		return cancel(timers, record);
	case EXPIRY_OP_ACK:
		return ack(timers, record);
	case EXPIRY_OP_QUERY:
		return query(timers, record);
	default:
		return clear(timers, record);
	}
}

/* What the sweep and the deliveries know of a node. */
enum node_state {
	NODE_STALE,
	NODE_MOVED,	/* its timer was refreshed to a later deadline */
	NODE_LIVE,
};

static enum node_state node_state(const struct bheap_node *node,
				  const struct slot *slot)
{
	if (!(slot->tag & SLOT_ARMED) ||
	    slot->tag >> SLOT_STAMP_SHIFT != node->stamp ||
	    node->deadline > slot->deadline)
		return NODE_STALE;
	return node->deadline == slot->deadline ? NODE_LIVE : NODE_MOVED;
}

static bool node_is_stale(void *context, const struct bheap_node *node)
{
	struct timers *timers = context;
	const struct slot *slot = slots_get(&timers->slots, node->slot);

	return slot && node_state(node, slot) == NODE_STALE;
}

static void send_for_slot(const struct timers *timers, u32 nr)
{
	const struct slot *slot = slots_peek(&timers->slots, nr);

	if (slot)
		prefetchw(slot);
}

static void node_ahead(void *context, const struct bheap_node *node)
{
	send_for_slot(context, node->slot);
}

/* Work off what is stale, in proportion to @work just done: a sweep begins
 * when a third of the nodes are, and goes on to its end.
 */
static void sweep(struct timers *timers, u32 work)
{
	struct bheap *heap = &timers->heap;

	if (!heap->sweep && heap->nr - timers->armed <=
	    timers->armed / 2 + BHEAP_NODES_PER_PAGE)
		return;
	heap->layout->sweep(heap, work * SWEEP_STEPS, node_is_stale, node_ahead,
			    timers);
}

/* Send for what @record will touch first: the bucket of its id, or its slot. */
static void send_for(const struct timers *timers,
		     const struct expiry_record *record, u32 *hash)
{
	if (is_keyed(timers)) {
		*hash = index_hash(&timers->index, record->id);
		index_prefetch(&timers->index, *hash);
	} else if (record->op != EXPIRY_OP_ARM) {
		send_for_slot(timers, (u32)record->id);
	}
}

u32 timers_submit(struct timers *timers, struct expiry_record *records,
		  u32 count, u64 now_ns)
{
	u32 hash[AHEAD], i;
	int status;

	for (i = 0; i < AHEAD && i < count; i++)
		send_for(timers, &records[i], &hash[i]);

	for (i = 0; i < count; i++) {
		/* Half way to a record's turn its bucket is here. */
		if (is_keyed(timers) && i + AHEAD / 2 < count)
			send_for_slot(timers,
				      index_guess(&timers->index,
						  hash[(i + AHEAD / 2) % AHEAD]));

		status = apply(timers, &records[i], now_ns);
		if (unlikely(status == -EAGAIN))
			break;
		records[i].status = status;
		if (status)
			timers->stat.refused++;

		if (i + AHEAD < count)
			send_for(timers, &records[i + AHEAD], &hash[i % AHEAD]);
		if (i % SWEEP_EVERY == SWEEP_EVERY - 1)
			sweep(timers, SWEEP_EVERY);
	}
	sweep(timers, i % SWEEP_EVERY);
	return i;
}

static void count_delivery(struct timers *timers,
			   const struct expiry_record *record, u64 now_ns)
{
	u64 late_ns = now_ns - record->deadline_ns;
	u32 bucket = fls64(late_ns);

	timers->stat.delivered++;
	if (record->flags & EXPIRY_F_REDELIVERED) {
		timers->stat.redelivered++;
		return;
	}
	if (bucket >= EXPIRY_LATENESS_BUCKETS)
		bucket = EXPIRY_LATENESS_BUCKETS - 1;
	timers->stat.lateness[bucket]++;
	if (late_ns > timers->stat.lateness_max_ns)
		timers->stat.lateness_max_ns = late_ns;
}

/* Take the live node on top, which is due. */
static int deliver_first(struct timers *timers, struct expiry_record *record,
			 struct slot *slot, bool keep)
{
	struct bheap_node node = timers->heap.first;
	u32 nr = node.slot;
	struct expiry_record expired = {
		.op = EXPIRY_OP_EXPIRED,
		.flags = slot->tag & SLOT_REDELIVER ? EXPIRY_F_REDELIVERED : 0,
		.period_ms = slot->period_ms,
		.id = slot->id,
		.deadline_ns = slot->deadline,
		.cookie = slot->cookie,
	};
	int err;

	if (slot->period_ms) {
		node.deadline = add_saturating(slot->deadline,
					       slot_period_ns(slot));
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
		/* For timers_release() too, so that it need not wait. */
		err = prepare_free(timers, nr, slot);
		if (!err)
			err = bheap_pop(&timers->heap);
		if (err)
			return err;
		timers->armed--;
		if (keep) {
			slot->tag = SLOT_UNACKED;
			timers->unacked++;
		} else {
			free_slot(timers, nr, slot);
		}
	}
	*record = expired;
	return 0;
}

/* Put the top right: 1 = its node is live (*@slotp is its slot) or the heap is
 * empty, 0 = look again, or a page error.
 */
static int settle_step(struct timers *timers, struct slot **slotp)
{
	struct bheap *heap = &timers->heap;
	struct bheap_node node;
	int err;

	if (!heap->nr)
		return 1;
	*slotp = slots_get(&timers->slots, heap->first.slot);
	if (core_broken(*slotp || timers->slots.pages->error))
		return -EIO;
	if (unlikely(!*slotp))
		return timers->slots.pages->error;

	switch (node_state(&heap->first, *slotp)) {
	case NODE_LIVE:
		return 1;
	case NODE_MOVED:
		node = heap->first;
		node.deadline = (*slotp)->deadline;
		err = bheap_replace(heap, &node);
		break;
	default:
		err = bheap_pop(heap);
		break;
	}
	if (err)
		return err;
	heap->layout->top(heap, node_ahead, timers);
	return 0;
}

int timers_settle(struct timers *timers, u32 steps)
{
	struct slot *slot;
	int done;

	if (timers->settled)
		return 1;
	while (steps--) {
		done = settle_step(timers, &slot);
		if (done < 0)
			return done;
		if (done) {
			timers->settled = true;
			return 1;
		}
	}
	return 0;
}

int timers_deliver(struct timers *timers, struct expiry_record *records,
		   u32 count, u64 now_ns, bool hold)
{
	u32 nr = 0, steps = DELIVER_STEPS_MIN + DELIVER_STEPS * count;
	bool keep = hold || is_acking(timers);
	struct slot *slot;
	int err = 0;

	while (nr < count && timers_due(timers, now_ns) && steps--) {
		err = settle_step(timers, &slot);
		if (err < 0)
			break;
		if (!err)
			continue;
		err = deliver_first(timers, &records[nr], slot, keep);
		if (err)
			break;
		if (!hold)
			count_delivery(timers, &records[nr], now_ns);
		timers->settled = false;
		nr++;
		timers->heap.layout->top(&timers->heap, node_ahead, timers);
	}
	if (!timers->heap.nr)
		timers->settled = true;
	timers->held_ns = now_ns;
	sweep(timers, nr);
	return nr || err > 0 ? (int)nr : err;
}

int timers_release(struct timers *timers, const struct expiry_record *records,
		   u32 count)
{
	struct slot *slot;
	s64 nr;
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		if (!is_acking(timers)) {
			nr = find_in(timers, records[i].id, SLOT_UNACKED,
				     &slot);
			if (nr < 0 && nr != -ENOENT)
				return nr;
			err = nr > 0 ? acknowledge(timers, nr, slot) : 0;
			if (err)
				return err;
		}
		count_delivery(timers, &records[i], timers->held_ns);
	}
	return 0;
}

/* Arm again what was delivered, for @deadline and with @state. */
static int undeliver(struct timers *timers, u32 nr, struct slot *slot,
		     u64 deadline, u32 state)
{
	u32 tag;
	int err;

	/* A periodic one's node for its next time goes stale. */
	if (timers->heap.nr && timers->heap.first.slot == nr)
		timers->settled = false;
	err = push_node(timers, nr, deadline, &tag);
	if (err)
		return err;
	if (!(slot->tag & SLOT_ARMED))
		timers->armed++;
	timers->unacked--;
	slot->deadline = deadline;
	slot->tag = tag | SLOT_ARMED | state;
	return 0;
}

int timers_restore(struct timers *timers, const struct expiry_record *records,
		   u32 count)
{
	struct slot *slot;
	s64 nr;
	u32 i;
	int err;

	for (i = 0; i < count; i++) {
		nr = find_in(timers, records[i].id, SLOT_UNACKED, &slot);
		if (nr == -ENOENT)
			continue;	/* cleared or armed anew meanwhile */
		if (nr < 0)
			return nr;
		err = undeliver(timers, nr, slot, records[i].deadline_ns,
				records[i].flags & EXPIRY_F_REDELIVERED ?
				SLOT_REDELIVER : 0);
		if (err)
			return err;
	}
	return 0;
}

int timers_rewind(struct timers *timers, u64 *cursor)
{
	u32 steps = REWIND_STEPS;
	struct slot *slot;
	u64 deadline;
	int err;

	while (timers->unacked && *cursor < timers->slots.nr) {
		if (!steps--)
			return 1;
		slot = slots_get(&timers->slots, *cursor + 1);
		if (!slot)
			return timers->slots.pages->error;
		if (slot->tag & SLOT_UNACKED) {
			/* A periodic one is armed for its next time already. */
			deadline = slot->tag & SLOT_ARMED ?
				   slot_last_ns(slot) : slot->deadline;
			err = undeliver(timers, *cursor + 1, slot, deadline,
					SLOT_REDELIVER);
			if (err)
				return err;
		}
		(*cursor)++;
	}
	*cursor = 0;
	return 0;
}

int timers_scan(struct timers *timers, struct expiry_record *records,
		u32 count, u64 *cursor)
{
	u32 steps = SCAN_STEPS, nr = 0;
	const struct slot *slot;
	u8 flags;

	while (*cursor < timers->slots.nr) {
		if (nr == count || !steps--)
			return nr;
		slot = slots_get(&timers->slots, *cursor + 1);
		if (!slot)
			return nr ? (int)nr : timers->slots.pages->error;
		(*cursor)++;
		if (!(slot->tag & (SLOT_ARMED | SLOT_UNACKED)))
			continue;
		flags = slot->tag & SLOT_ARMED ? 0 : EXPIRY_F_REDELIVERED;
		records[nr++] = (struct expiry_record) {
			.op = EXPIRY_OP_QUERY,
			.flags = flags,
			.period_ms = slot->period_ms,
			.id = slot->id,
			.deadline_ns = slot->deadline,
			.cookie = slot->cookie,
		};
	}
	*cursor = 0;
	return nr;
}

void timers_stat(const struct timers *timers, struct expiry_stat *stat)
{
	stat->next_ns = timers_next_ns(timers);
	stat->armed = timers->armed;
	stat->unacked = timers->unacked;
	stat->limit = timers->limit;
	stat->mode = timers->mode;
	stat->nodes = timers->heap.nr;
	stat->pages_heap = timers->heap.pages->nr;
	stat->pages_slots = timers->slots.pages->nr;
	stat->pages_index = 0;
	if (is_keyed(timers))
		stat->pages_index = timers->index.table[0].pages->nr +
				    timers->index.table[1].pages->nr;
	stat->arms = timers->stat.arms;
	stat->refreshes = timers->stat.refreshes;
	stat->cancels = timers->stat.cancels;
	stat->acks = timers->stat.acks;
	stat->delivered = timers->stat.delivered;
	stat->redelivered = timers->stat.redelivered;
	stat->refused = timers->stat.refused;
	stat->refused_limit = timers->stat.refused_limit;
	stat->lateness_max_ns = timers->stat.lateness_max_ns;
	memcpy(stat->lateness, timers->stat.lateness, sizeof(stat->lateness));
}

int timers_validate(struct timers *timers)
{
	u64 armed = 0, unacked = 0, used = 0;
	struct slot *slot;
	u32 nr;
	int err;

	for (nr = 1; nr <= timers->slots.nr; nr++) {
		slot = slots_get(&timers->slots, nr);
		if (!slot)
			return timers->slots.pages->error;
		armed += !!(slot->tag & SLOT_ARMED);
		unacked += !!(slot->tag & SLOT_UNACKED);
		used += !!(slot->tag & SLOT_STATE);
		if (!(slot->tag & SLOT_STATE) != !slot->id)
			return -EIO;
	}
	if (armed != timers->armed || unacked != timers->unacked ||
	    used != timers->slots.used || armed > timers->heap.nr)
		return -EIO;
	if (is_keyed(timers)) {
		if (timers->index.table[0].nr + timers->index.table[1].nr !=
		    used)
			return -EIO;
		err = index_validate(&timers->index, &timers->slots);
		if (err)
			return err;
	}
	return timers->heap.layout->validate(&timers->heap);
}
