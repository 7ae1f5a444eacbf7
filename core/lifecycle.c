// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The life of a timer in heap, slots and index.
 *
 * An armed timer has exactly one live node in the heap: the one with the slot's
 * stamp. The node's deadline is never later than the slot's, with one
 * exception. When a delivery is to be repeated, the node has the delivery's
 * deadline, and the slot has a periodic timer's next one. So
 *
 *   refresh to later, cancel	change the slot alone; the node goes stale and
 *				is corrected or dropped when it reaches the top
 *   refresh to earlier		pushes a node with a new stamp; the old one is
 *				stale
 *   arm			takes the slot freed last. If that has kept its last
 *				node, and the new deadline is no earlier than the
 *				old one, the node stands for the new timer, as
 *				after a refresh to later. Else pushes a node.
 *
 * and the heap never has to find a node. Stamps come from one counter a queue,
 * which wraps around after 2^27 pushes. A reused stamp can only make a stale
 * node look live, and that is harmless. Nothing is delivered before the slot's
 * own deadline. Nor is it delivered twice: the first delivery disarms the slot.
 * A free slot's stamp is cleared when a node that has it leaves the heap, so
 * that no slot keeps a node that is gone. It may then be cleared too soon, which
 * costs a push.
 *
 * The sweep removes stale nodes in proportion to the work done. So the nodes
 * stay within twice the limit, and soon return to within twice the armed
 * timers.
 *
 * An operation that misses a page fails before it changes anything. So the
 * functions below get every page first.
 */
#include "lifecycle.h"

s64 timer_search(struct timers *timers, u64 id, u32 hash, struct slot **slotp)
{
	u32 nr = (u32)id;

	if (timers_is_keyed(timers))
		return index_find(&timers->index, &timers->slots, id, hash,
				  slotp);
	*slotp = slots_get(&timers->slots, nr);
	if (likely(*slotp && (*slotp)->id == id))
		return nr;
	return timer_find_moved(timers, id, slotp,
				*slotp ? 0 : timers->slots.pages->error);
}

int timer_prepare_end(struct timers *timers, u32 nr, const struct slot *slot)
{
	if (!timer_is_indexed(timers, nr, slot))
		return 0;
	return index_prepare_remove(&timers->index,
				    timer_hash_of(timers, slot), nr);
}

int timer_end(struct timers *timers, u32 nr, struct slot *slot)
{
	int err = timer_prepare_end(timers, nr, slot);

	if (err)
		return err;
	if (slot->tag & SLOT_ARMED) {
		timers->armed--;
		/* The top node may be stale now. */
		if (timers->heap.first.slot == nr)
			timers->top_is_live = false;
	}
	if (slot->tag & SLOT_UNACKED)
		timers->unacked--;
	/* Keep no node of a timer that is not armed. The node of a delivery to
	 * be repeated may be later than the slot's deadline: keep none either.
	 */
	if (!(slot->tag & SLOT_ARMED) || slot_is_behind(slot))
		slot->tag &= SLOT_FLAGS;
	timer_free(timers, nr, slot);
	return 0;
}

int timer_acknowledge(struct timers *timers, u32 nr, struct slot *slot)
{
	if (!(slot->tag & SLOT_ARMED))
		return timer_end(timers, nr, slot);
	slot->tag &= ~SLOT_UNACKED;
	timers->unacked--;
	return 0;
}

int timer_undeliver(struct timers *timers, u32 nr, struct slot *slot, u64 due,
		    u64 next, u32 state)
{
	u32 tag;
	int err;

	/* A periodic timer's node for its next time goes stale. */
	if (timers->heap.nr && timers->heap.first.slot == nr)
		timers->top_is_live = false;
	err = timer_push(timers, nr, due, &tag);
	if (err)
		return err;
	if (!(slot->tag & SLOT_ARMED))
		timers->armed++;
	timers->unacked--;
	slot->deadline = next;
	slot->tag = tag | SLOT_ARMED | state |
		    (slot->tag & (SLOT_PAST | SLOT_PERIODIC));
	return 0;
}

bool timer_review(void *context, struct bheap_node *node)
{
	struct timers *timers = context;
	struct slot *slot = slots_peek(&timers->slots, node->slot);

	if (unlikely(!slot)) {
		/* A slot that was dropped, or one that is not in memory. */
		return node->slot <= timers->slots.nr;
	}
	switch (timer_node_state(node, slot)) {
	case NODE_LIVE:
		timer_found_live(timers, 1);
		return true;
	case NODE_MOVED:
		timers->found_live = 0;
		node->deadline = slot->deadline;
		return true;
	default:
		timers->found_live = 0;
		slot_forget_node(slot, node);
		return false;
	}
}

/* Computes timer_node_state() == NODE_STALE without branches: a sweep meets
 * stale nodes in random order. The sweep then drops the node.
 */
static bool node_is_stale(void *context, const struct bheap_node *node)
{
	struct timers *timers = context;
	struct slot *slot = slots_get(&timers->slots, node->slot);

	if (!slot)
		return !timers->slots.pages->error;
	slot_forget_node(slot, node);
	return ((slot->tag & SLOT_ARMED) == 0) |
	       (slot->tag >> SLOT_STAMP_SHIFT != node->stamp) |
	       ((node->deadline > slot->deadline) &
		((slot->tag & SLOT_REDELIVER) == 0));
}

void timer_ahead(void *context, const struct bheap_node *node,
		 enum bheap_when when)
{
	struct timers *timers = context;

	if (when == BHEAP_FAR)
		slots_prefetch_dir(&timers->slots, node->slot);
	else if (when == BHEAP_SOON)
		timer_prefetch(timers, node->slot);
}

/* Sweeps stale nodes in proportion to @work just done. A sweep begins when
 * three in seven nodes are stale, and runs to its end.
 */
void timers_sweep(struct timers *timers, u32 work)
{
	struct bheap *heap = &timers->heap;
	u32 nr = heap->nr;

	if (!heap->sweep && heap->nr - timers->armed <=
	    timers->armed - timers->armed / 4 + BHEAP_NODES_PER_PAGE)
		return;
	heap->layout->sweep(heap, work * SWEEP_STEPS, node_is_stale,
			    timer_ahead, timers);
	timers->stat.swept += nr - heap->nr;
}
