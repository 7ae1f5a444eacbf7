// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Batches of requests: the memory that they touch first is prefetched, a part of the
 * batch ahead.
 */
#include "requests.h"

/* Records whose memory is prefetched together. A step of the sweep follows each part. */
#define PART			TIMERS_SWEEP_EVERY

/**
 * struct part - some of a batch's records
 * @records: the first
 * @nr: how many, up to PART
 * @lookups: of each
 */
struct part {
	struct expiry_record *records;
	u32 nr;
	struct lookup *lookups;
};

/*
 * Prefetches what a part's records touch first: the slots of a plain queue. The loops
 * here are short, so that the processor has many of their rounds under way.
 */
static void prefetch_part(const struct timers *timers, const struct part *part)
{
	const struct expiry_record *record = part->records;
	const struct expiry_record *end = record + part->nr;
	struct lookup *lookup = part->lookups;

	for (; record < end; record++, lookup++) {
		lookup->slot = (u32)record->id;
		lookup->at = timer_prefetch(timers, lookup->slot);
		lookup->hash = 0;
	}
}

/* Prefetches the same of a keyed queue: the lines of the ids. */
static void prefetch_lines(const struct timers *timers, const struct part *part)
{
	struct lookup *lookups = part->lookups;
	u32 i;

	for (i = 0; i < part->nr; i++)
		lookups[i].hash = index_hash(&timers->index,
					     part->records[i].id);
	for (i = 0; i < part->nr; i++)
		lookups[i].line = index_prefetch(&timers->index,
						 lookups[i].hash);
}

/* Prefetches the slots that these lines name. */
static void prefetch_slots(const struct timers *timers, const struct part *part)
{
	struct lookup *lookup;

	for (lookup = part->lookups; lookup < part->lookups + part->nr; lookup++) {
		lookup->slot = index_guess(lookup->line, lookup->hash);
		lookup->at = timer_prefetch(timers, lookup->slot);
	}
}

/* Applies the records of a part from *@ip up to @end. Returns false at one that would
 * have to wait; *@ip is the first that was not applied.
 */
static bool apply_some(struct timers *timers, const struct part *part, u32 *ip,
		       u32 end, u64 now_ns)
{
	u32 i = *ip, nr;
	int status;

	while (i < end) {
		nr = requests_alike(timers, part->records + i,
				    part->lookups + i, end - i, now_ns);
		i += nr;
		if (i == end)
			break;
		status = request_apply(timers, &part->records[i],
				       &part->lookups[i], now_ns);
		if (unlikely(status)) {
			if (status == -EAGAIN)
				break;
			timers->stat.refused++;
		}
		part->records[i++].status = status;
	}
	*ip = i;
	return i == end;
}

/* Applies a part, while what the next one touches first is prefetched. On a keyed queue
 * the lines come at first, and the slots half a part later. Returns how many records
 * were applied.
 */
static u32 apply_keyed(struct timers *timers, const struct part *part,
		       const struct part *next, u64 now_ns)
{
	u32 half = part->nr < PART / 2 ? part->nr : PART / 2, i = 0;

	prefetch_lines(timers, next);
	if (apply_some(timers, part, &i, half, now_ns)) {
		prefetch_slots(timers, next);
		(void)apply_some(timers, part, &i, part->nr, now_ns);
	}
	return i;
}

static u32 apply_plain(struct timers *timers, const struct part *part,
		       const struct part *next, u64 now_ns)
{
	u32 i = 0;

	prefetch_part(timers, next);
	(void)apply_some(timers, part, &i, part->nr, now_ns);
	return i;
}

u32 timers_submit(struct timers *timers, struct expiry_record *records,
		  u32 count, u64 now_ns)
{
	struct lookup lookups[2][PART] __uninitialized;
	struct part part = { records, count < PART ? count : PART, lookups[0] };
	bool is_keyed = timers_is_keyed(timers);
	u32 nr, left = count;

	timers->heap.now = now_ns;
	if (is_keyed) {
		prefetch_lines(timers, &part);
		prefetch_slots(timers, &part);
	} else {
		prefetch_part(timers, &part);
	}
	while (part.nr) {
		struct part next = { part.records + part.nr, 0,
				     lookups[part.lookups == lookups[0]] };

		left -= part.nr;
		next.nr = left < PART ? left : PART;
		nr = is_keyed ? apply_keyed(timers, &part, &next, now_ns) :
				apply_plain(timers, &part, &next, now_ns);
		timers_sweep(timers, nr);
		timers_compact(timers, nr);
		if (unlikely(nr < part.nr))
			return part.records - records + nr;
		part = next;
	}
	return count;
}
