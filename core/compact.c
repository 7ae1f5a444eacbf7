// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Compaction: after mass cancellation the timers that are left move to the first
 * slots, and the pages of the others are given back.
 *
 * It begins when fewer than a quarter of the slots are in use. All free slots leave
 * the lists. From the first slot on they are listed again, and from the last one
 * on they are dropped: a used one moves to a free one that is listed. It ends where
 * both meet. Each record that is submitted pays for a bounded part.
 *
 * A timer that moves gets a new node, or the one that its new slot has kept; its
 * old node is stale. A keyed queue's index then has the new number. A plain queue's
 * id is the number of the slot that its timer was armed in. So the timers that have
 * moved, and no others, are in that queue's index. A timer moves only down, so it
 * never returns to the slot of its id.
 *
 * Two kinds of timers do not move. While a periodic timer's delivery is to be
 * repeated, only its node has that delivery's deadline. If such a timer is the
 * last, compaction gives up until half of the timers are gone. And nothing moves
 * while a SCAN or a REWIND walks over the slots. One that is not continued is given
 * up after many records, or when the owner of an idle queue says so.
 */
#include "lifecycle.h"

/* Slots that are too few to begin with. */
#define SLOTS_MIN	(4U * SLOTS_PER_PAGE)

/* Slots looked at for each record. A move counts as some of them. */
#define STEPS		32U
#define MOVE_STEPS	8U

/* Free slots that are listed before one is used up by a move: for ARMs. */
#define RESERVE		(SLOTS_PER_PAGE / 2)

/* Gets the pages for moving a timer from slot @from to @to: 0 or a page error. */
static int prepare_index(struct timers *timers, u32 from,
			 const struct slot *slot)
{
	u32 hash = timer_hash_of(timers, slot);

	if (timer_is_indexed(timers, from, slot))
		return index_prepare_remove(&timers->index, hash, from);
	return index_prepare(&timers->index, hash);
}

static void change_index(struct timers *timers, u32 from, u32 to,
			 const struct slot *slot)
{
	u32 hash = timer_hash_of(timers, slot);

	if (timer_is_indexed(timers, from, slot))
		index_renumber(&timers->index, hash, from, to);
	else
		index_add(&timers->index, hash, to);
}

/* Gives the timer of @slot a node in slot @nr, if it has one. */
static int push_node(struct timers *timers, const struct slot *slot, u32 nr,
		     const struct slot *free, u32 *tagp)
{
	*tagp = 0;
	if (!(slot->tag & SLOT_ARMED))
		return 0;
	/* The node of a delivery to be repeated has its exact deadline. */
	if (slot_has_node(free, slot->deadline) &&
	    !(slot->tag & SLOT_REDELIVER)) {
		*tagp = free->tag;
		return 0;
	}
	return timer_push(timers, nr, slot->deadline, tagp);
}

/* Moves the timer of the last slot, @slot, to a listed one, and drops the last.
 * Returns 0 or a page error.
 */
static int move_last(struct timers *timers, struct slot *slot)
{
	struct slots *slots = &timers->slots;
	u32 from = slots->nr, to, tag;
	struct slot *free;
	int err;

	to = slots_reserve(slots, &free);
	if (unlikely(!to))
		return slots->pages->error;
	err = prepare_index(timers, from, slot) ?:
	      push_node(timers, slot, to, free, &tag);
	if (unlikely(err))
		return err;

	slots_commit(slots, to, free);
	change_index(timers, from, to, slot);
	*free = *slot;
	free->tag = tag | (slot->tag & SLOT_FLAGS);
	if (timers->heap.first.slot == from)
		timers->top_is_live = false;
	slots->used--;
	slots_drop_last(slots);
	timers->moves++;
	return 0;
}

/* Takes a step. Returns how many slots it counts for, or a page error. */
static int step(struct timers *timers)
{
	struct slots *slots = &timers->slots;
	struct slot *last;
	int err;

	if (slots->listed < RESERVE || timers->stuck_nr)
		return slots_list_next(slots) ?: 1;
	last = slots_get(slots, slots->nr);
	if (unlikely(!last))
		return slots->pages->error;
	if (!last->id) {
		slots_drop_last(slots);
		return 1;
	}
	if (unlikely(slot_is_behind(last))) {
		timers->stuck_nr = slots->nr;
		timers->stuck_used = slots->used;
		return 1;
	}
	err = move_last(timers, last);
	return err ?: (int)MOVE_STEPS;
}

bool timers_is_sparse(const struct timers *timers)
{
	const struct slots *slots = &timers->slots;

	if (slots_is_compacting(slots))
		return true;
	return slots->nr >= SLOTS_MIN &&
	       slots->used < slots->nr / COMPACT_SPARSE &&
	       (slots->nr != timers->stuck_nr ||
		slots->used <= timers->stuck_used / 2);
}

static void begin(struct timers *timers)
{
	timers->stuck_nr = 0;
	/* A plain queue's, if no timer that has moved is left. */
	if (!timers->index.nr)
		index_reset(&timers->index);
	slots_unlist(&timers->slots);
}

/* Takes the steps that @work records pay for. Returns 1 if there is more to do, 0, or a page
 * error.
 */
static int compact(struct timers *timers, u32 work)
{
	struct slots *slots = &timers->slots;
	s64 steps = (s64)work * STEPS;
	u32 moves = timers->moves;
	int ret = 0;

	if (!timers_is_sparse(timers))
		return 0;
	if (!slots_is_compacting(slots))
		begin(timers);
	while (ret >= 0 && steps > 0 && slots->known < slots->nr) {
		ret = step(timers);
		steps -= ret;
	}
	/* Each move left a stale node, as a refresh to earlier does. */
	timers_sweep(timers, timers->moves - moves);
	if (ret < 0)
		return ret;
	if (slots->known >= slots->nr)
		slots_end(slots);
	return slots_is_compacting(slots);
}

void timers_compact_some(struct timers *timers, u32 work)
{
	if (unlikely(timers->walks)) {
		timers->walk_hold -= work < timers->walk_hold ?
				     work : timers->walk_hold;
		if (timers->walk_hold)
			return;
		timers->walks = 0;
	}
	/* A missing page only delays it. */
	(void)compact(timers, work);
}

int timers_tidy(struct timers *timers, u32 work, bool gives_up)
{
	if (gives_up)
		timers->walks = 0;
	return timers->walks ? 0 : compact(timers, work);
}

void timers_walk_stop(struct timers *timers, u64 *cursorp)
{
	if (*cursorp && timers->walks)
		timers->walks--;
	*cursorp = 0;
}

bool timers_walk(const struct timers *timers, u64 cursor, u32 *posp)
{
	*posp = cursor;
	/* One behind any slot there can be is invented, and ends the walk. */
	return !cursor || cursor >> 32 == timers->moves ||
	       *posp / SLOTS_PER_PAGE >= timers->slots.pages->nr_max;
}

void timers_walked(struct timers *timers, u64 *cursorp, u32 pos, bool is_end)
{
	bool began = !*cursorp;

	/* The walk has passed no slot: the first page is missing, or there was no
	 * room. It is not in progress yet, as the next call may begin it again.
	 */
	if (!pos && !is_end)
		return;
	if (!is_end) {
		if (began || !timers->walks)
			timers->walks++;
		timers->walk_hold = TIMERS_WALK_HOLD;
	} else if (!began && timers->walks) {
		timers->walks--;
	}
	*cursorp = is_end ? 0 : (u64)timers->moves << 32 | pos;
}
