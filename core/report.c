// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Reports on timers as a whole: list, count, validate. */
#include "lifecycle.h"

/* Slots checked by one call of timers_scan(). */
#define SCAN_STEPS		4096U

int timers_scan(struct timers *timers, struct expiry_record *records,
		u32 count, u64 *cursor)
{
	u32 steps = SCAN_STEPS, nr = 0, pos;
	const struct slot *slot;
	bool waits;
	int err = 0;

	if (!timers_walk(timers, *cursor, &pos))
		return -ECANCELED;
	while (pos < timers->slots.nr && nr < count && steps--) {
		slot = slots_get(&timers->slots, pos + 1);
		if (!slot) {
			err = timers->slots.pages->error;
			break;
		}
		pos++;
		if (!(slot->tag & (SLOT_ARMED | SLOT_UNACKED)))
			continue;
		waits = is_acking(timers) ?
			slot->tag & (SLOT_UNACKED | SLOT_REDELIVER) :
			!(slot->tag & SLOT_ARMED);
		records[nr++] = (struct expiry_record) {
			.op = EXPIRY_OP_QUERY,
			.flags = waits ? EXPIRY_F_REDELIVERED : 0,
			.period_ms = slot_period_ms(slot),
			.id = slot->id,
			.deadline_ns = slot->deadline,
			.cookie = slot->cookie,
		};
	}
	timers_walked(timers, cursor, pos, pos >= timers->slots.nr);
	return nr ? (int)nr : err;
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
	stat->pages_index = timers->index.pages->nr;
	stat->arms = timers->stat.arms;
	stat->refreshes = timers->stat.refreshes;
	stat->cancels = timers->stat.cancels;
	stat->acks = timers->stat.acks;
	stat->delivered = timers->stat.delivered;
	stat->redelivered = timers->stat.redelivered;
	stat->refused = timers->stat.refused;
	stat->refused_limit = timers->stat.refused_limit;
	stat->past = timers->stat.past;
	stat->held = timers->stat.held;
	stat->lateness_max_ns = timers->stat.lateness_max_ns;
	memcpy(stat->lateness, timers->stat.lateness, sizeof(stat->lateness));
}

/**
 * struct live - counts of nodes that are some slot's
 * @timers: whose heap is walked
 * @nr: nodes of armed timers
 * @kept: nodes that free slots keep
 * @is_late: a free slot's deadline is earlier than its node's
 */
struct live {
	struct timers *timers;
	u64 nr;
	u64 kept;
	bool is_late;
};

static void count_live(void *context, const struct bheap_node *node)
{
	struct live *live = context;
	const struct slot *slot = slots_get(&live->timers->slots, node->slot);

	if (!slot)
		return;
	live->nr += timer_node_state(node, slot) != NODE_STALE;
	if (!slot->tag || slot->tag != node->stamp << SLOT_STAMP_SHIFT)
		return;
	live->kept++;
	live->is_late |= node->deadline > slot->deadline;
}

int timers_validate(struct timers *timers)
{
	struct live live = { .timers = timers };
	u64 armed = 0, unacked = 0, used = 0, kept = 0, indexed = 0;
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
		indexed += slot->id && timer_is_indexed(timers, nr, slot);
		kept += slot->tag && !(slot->tag & SLOT_STATE);
		if (!(slot->tag & SLOT_STATE) != !slot->id)
			return -EIO;
		if (slot->id && timers_is_keyed(timers) &&
		    timer_hash_of(timers, slot) !=
		    index_hash(&timers->index, slot->id))
			return -EIO;
	}
	if (armed != timers->armed || unacked != timers->unacked ||
	    used != timers->slots.used || armed > timers->heap.nr)
		return -EIO;
	err = slots_validate(&timers->slots);
	if (err)
		return err;
	if (timers->index.nr != indexed ||
	    (timers_is_keyed(timers) && indexed != used))
		return -EIO;
	if (indexed)
		err = index_validate(&timers->index, &timers->slots);
	if (err)
		return err;
	err = timers->heap.layout->validate(&timers->heap, count_live, &live);
	if (err)
		return err;
	/* Every armed timer has one live node, and there are no other live
	 * nodes. Every node that a free slot keeps is there.
	 */
	return live.nr == armed && live.kept == kept && !live.is_late ? 0 :
	       -EIO;
}
