// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Requests that are alike and follow each other, as most do. What is the same for all
 * of them is found out once, and a rare case ends the run: request_apply() has all
 * cases.
 *
 * Rare are flags but EXPIRY_F_RELATIVE, periodic timers and those whose delivery is not
 * acknowledged or is to be repeated, errors, and pages that are not in memory.
 */
#include "requests.h"

/* Returns op, flags and status as one number. */
static inline u32 head_of(const struct expiry_record *record)
{
	u32 head;

	memcpy(&head, record, sizeof(head));
	return head;
}

/* Returns the same for a request with status 0: a constant. */
static inline u32 head(u8 op, u8 flags)
{
	const struct expiry_record record = { .op = op, .flags = flags };

	return head_of(&record);
}

/* Returns whether a timer is armed, and that is all. */
static inline bool is_just_armed(const struct slot *slot)
{
	return (slot->tag & (SLOT_STATE | SLOT_PERIODIC)) == SLOT_ARMED;
}

/* Returns the slot of a timer that is just armed, or NULL. */
static inline struct slot *find(const struct timers *timers,
				const struct expiry_record *record,
				const struct lookup *lookup)
{
	struct slot *slot = lookup->at;

	/* A slot beyond the table was dropped. A free one has no id, as a record may. */
	if (unlikely(!slot || slot->id != record->id || !is_just_armed(slot) ||
		     lookup->slot > timers->slots.nr))
		return NULL;
	return slot;
}

/* Refreshes timers to later. @from_ns: what their deadlines count from */
static u32 refresh_alike(struct timers *timers, struct expiry_record *records,
			 const struct lookup *lookups, u32 count, u64 from_ns,
			 u64 now_ns)
{
	u32 first = head_of(records), i;

	for (i = 0; i < count; i++) {
		struct expiry_record *record = records + i;
		struct slot *slot = find(timers, record, lookups + i);
		u64 deadline = add_saturating(from_ns, record->deadline_ns);

		if (unlikely(!slot || head_of(record) != first ||
			     deadline < slot->deadline))
			break;
		if (unlikely(timers->heap.first.slot == lookups[i].slot) &&
		    deadline > slot->deadline)
			timers->top_is_live = false;
		slot->deadline = deadline;
		slot->tag = (slot->tag & ~SLOT_PAST) |
			    past_flag(deadline, now_ns);
		record->flags = 0;
		record->period_ms = 0;
		record->deadline_ns = deadline;
		record->cookie = slot->cookie;
	}
	timers->stat.refreshes += i;
	return i;
}

/* Cancels timers of a queue that has more than @count of them. */
static u32 cancel_alike(struct timers *timers, struct expiry_record *records,
			const struct lookup *lookups, u32 count)
{
	bool is_keyed = timers_is_keyed(timers);
	u32 first = head_of(records), i;

	for (i = 0; i < count; i++) {
		struct expiry_record *record = records + i;
		const struct lookup *lookup = lookups + i;
		struct slot *slot = find(timers, record, lookup);

		if (unlikely(!slot || head_of(record) != first))
			break;
		if (is_keyed) {
			if (unlikely(index_prepare_remove(&timers->index,
							  lookup->hash,
							  lookup->slot)))
				break;
			index_remove(&timers->index, lookup->hash,
				     lookup->slot);
		}
		if (unlikely(timers->heap.first.slot == lookup->slot))
			timers->top_is_live = false;
		record->period_ms = 0;
		record->deadline_ns = slot->deadline;
		record->cookie = slot->cookie;
		/* The slot keeps its node. */
		slots_put(&timers->slots, lookup->slot, slot);
	}
	timers->armed -= i;
	timers->stat.cancels += i;
	return i;
}

/* Arms new timers. @from_ns: as in refresh_alike() */
static __always_inline u32 arm_alike(struct timers *timers,
				     struct expiry_record *records,
				     const struct lookup *lookups, u32 count,
				     u64 from_ns, u64 now_ns, bool is_keyed)
{
	struct slots *slots = &timers->slots;
	u32 first = head_of(records), i;

	if (count > timers->limit - slots->used)
		count = timers->limit - slots->used;
	for (i = 0; i < count; i++) {
		struct expiry_record *record = records + i;
		u64 deadline = add_saturating(from_ns, record->deadline_ns);
		u32 hash = is_keyed ? lookups[i].hash : 0, nr, tag;
		u64 id = record->id;
		struct slot *slot;

		if (unlikely(head_of(record) != first || record->period_ms ||
			     !id == is_keyed))
			break;
		if (is_keyed && (lookups[i].slot ||
				 !index_prepare_new(&timers->index, hash)))
			break;
		nr = slots_reserve(slots, &slot);
		if (unlikely(!nr))
			break;
		if (unlikely(timer_get_node(timers, nr, slot, deadline, &tag)))
			break;
		slots_commit(slots, nr, slot);
		if (is_keyed)
			index_add(&timers->index, hash, nr);
		else
			id = timer_id(++timers->generation, nr);
		slot->deadline = deadline;
		slot->cookie = record->cookie;
		slot->id = id;
		slot->hash = hash;
		slot->tag = tag | SLOT_ARMED | past_flag(deadline, now_ns);
		record->flags = 0;
		record->id = id;
		record->deadline_ns = deadline;
	}
	timers->armed += i;
	timers->stat.arms += i;
	return i;
}

/* The same on a plain queue. */
static u32 arm_plain(struct timers *timers, struct expiry_record *records,
		     u32 count, u64 from_ns, u64 now_ns)
{
	/* Timers that are not in the slot of their id may have the next id. */
	if (unlikely(timers->index.nr))
		return 0;
	return arm_alike(timers, records, NULL, count, from_ns, now_ns, false);
}

static u32 arm(struct timers *timers, struct expiry_record *records,
	       const struct lookup *lookups, u32 count, u64 from_ns, u64 now_ns)
{
	if (timers_is_keyed(timers))
		return arm_alike(timers, records, lookups, count, from_ns,
				 now_ns, true);
	return arm_plain(timers, records, count, from_ns, now_ns);
}

u32 requests_alike(struct timers *timers, struct expiry_record *records,
		   const struct lookup *lookups, u32 count, u64 now_ns)
{
	u32 first = head_of(records);

	if (first == head(EXPIRY_OP_REFRESH, 0))
		return refresh_alike(timers, records, lookups, count, 0,
				     now_ns);
	if (first == head(EXPIRY_OP_REFRESH, EXPIRY_F_RELATIVE))
		return refresh_alike(timers, records, lookups, count, now_ns,
				     now_ns);
	/* The last timer's end drops all pages. */
	if (first == head(EXPIRY_OP_CANCEL, 0))
		return likely(timers->slots.used > count) ?
		       cancel_alike(timers, records, lookups, count) : 0;
	if (first == head(EXPIRY_OP_ARM, 0))
		return arm(timers, records, lookups, count, 0, now_ns);
	if (first == head(EXPIRY_OP_ARM, EXPIRY_F_RELATIVE))
		return arm(timers, records, lookups, count, now_ns, now_ns);
	return 0;
}
