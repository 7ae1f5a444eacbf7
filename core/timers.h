/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Timers: heap, slots and index joined into one queue's worth of them.
 *
 * Callers serialize every call on one struct timers, pass the time of the
 * queue's own clock, and take back pages above pages->nr at their leisure.
 */
#ifndef CORE_TIMERS_H
#define CORE_TIMERS_H

#include "bheap.h"
#include "core.h"
#include "index.h"
#include "pages.h"
#include "slots.h"

/* The runs of pages a queue is made of. */
enum timers_pages {
	TIMERS_PAGES_HEAP,
	TIMERS_PAGES_SLOTS,
	TIMERS_PAGES_INDEX_0,	/* keyed queues only; the second is in use */
	TIMERS_PAGES_INDEX_1,	/* while the index changes its size */
	TIMERS_PAGES_NR,
};

/**
 * struct timers_config - what a queue is, for its whole life
 * @mode: EXPIRY_MODE_*
 * @limit: most timers, armed and unacknowledged together, 1 to TIMERS_MAX
 * @seed: secret randomness for the index, so that nobody can aim at a bucket
 * @layout: of the heap
 */
struct timers_config {
	u32 mode;
	u64 limit;
	u64 seed[2];
	const struct bheap_layout *layout;
};

#define TIMERS_MAX	(1ULL << 30)

/* Most deliveries that are held at a time: one bit each of @held_past. */
#define TIMERS_HELD_MAX	64U

/**
 * struct timers - see the file's head
 * @mode: const, as is @limit
 * @generation: of the last id given
 * @stamp: of the last node pushed
 * @armed: slots with SLOT_ARMED
 * @unacked: slots with SLOT_UNACKED
 * @settled: the heap's first node is live: next_ns is the truth
 * @held_ns: when the deliveries held last were taken; @held_past: bit n: the
 *	deadline of the n-th had passed when it was given
 * @taken_ns: since when there is somebody who takes what is due: what was due
 *	before is counted as held, not as late (the owner's; 0 = always)
 * @late_ns: most that a delivery of the last timers_deliver() was late, or 0
 * @stat: counters, filled in as in struct expiry_stat; @swept: stale nodes
 *	that a sweep found
 */
struct timers {
	u32 mode;
	u32 generation;
	u32 stamp;
	bool settled;
	u64 limit;
	u64 armed;
	u64 unacked;
	u64 held_ns;
	u64 held_past;
	u64 taken_ns;
	u64 late_ns;
	struct bheap heap;
	struct slots slots;
	struct index index;
	struct {
		u64 arms;
		u64 refreshes;
		u64 cancels;
		u64 acks;
		u64 delivered;
		u64 redelivered;
		u64 refused;
		u64 refused_limit;
		u64 swept;
		u64 past;
		u64 held;
		u64 lateness_max_ns;
		u64 lateness[EXPIRY_LATENESS_BUCKETS];
	} stat;
};

/* Most pages of run @which that a queue of this kind can come to use: what
 * nr_max must be.
 */
u32 timers_pages_max(const struct timers_config *config,
		     enum timers_pages which);

/* @pages: TIMERS_PAGES_NR runs, empty. -EINVAL: mode or limit. */
int timers_setup(struct timers *timers, const struct timers_config *config,
		 struct core_pages *pages[TIMERS_PAGES_NR]);

/* Timers in the queue: what limit is held against and CLEAR counts. */
static inline u64 timers_nr(const struct timers *timers)
{
	return timers->slots.used;
}

/**
 * timers_submit - process records in place
 * @now_ns: now on the queue's clock
 *
 * Returns how many were processed, each having its reply and status. Fewer
 * than @count only if a page could not be had without waiting (-EAGAIN from
 * the owner): the rest is untouched and may be submitted again. Bounded work a
 * record.
 */
u32 timers_submit(struct timers *timers, struct expiry_record *records,
		  u32 count, u64 now_ns);

/**
 * timers_deliver - take what is due, in order of deadline
 * @records: room for @count expirations
 * @hold: keep each as unacknowledged even on a plain queue, and count none,
 *	until timers_release() or timers_restore() says how the copy to its
 *	reader went; one delivery at a time can be held, of up to
 *	TIMERS_HELD_MAX records
 *
 * Returns the number of expirations, or, if that is 0, an error of the pages.
 * Bounded work: may return fewer than are due, even 0; timers_due() tells
 * whether there is more.
 */
int timers_deliver(struct timers *timers, struct expiry_record *records,
		   u32 count, u64 now_ns, bool hold);

/**
 * timers_release - the records delivered with @hold reached their reader
 *
 * They are forgotten, unless the queue is an acknowledging one. If only the
 * first of them did, timers_restore() the others before: a periodic timer may
 * be in both parts.
 *
 * Returns 0 or the error of a page, which timers_deliver() made unlikely by
 * touching it; the records not released stay unacknowledged.
 */
int timers_release(struct timers *timers, const struct expiry_record *records,
		   u32 count);

/**
 * timers_restore - they did not: they are due again, as if never delivered
 *
 * A periodic timer that was refreshed meanwhile is armed for that instead; what
 * was marked as delivered before is due again in any case. Records of one timer
 * are restored by one call.
 *
 * Returns 0 or the error of a page; those not restored stay unacknowledged and
 * timers_rewind() brings them back.
 */
int timers_restore(struct timers *timers, const struct expiry_record *records,
		   u32 count);

/**
 * timers_rewind - make what was delivered and not acknowledged due again
 * @cursor: 0 to start with; where to go on
 * @now_ns: now on the queue's clock
 *
 * A periodic timer's last delivery comes again at once, whatever the timer was
 * refreshed to since: that is its next time. Bounded work a call. Returns 1: call
 * again, 0: done, or a page error (may be called again with the same cursor).
 */
int timers_rewind(struct timers *timers, u64 *cursor, u64 now_ns);

/**
 * timers_scan - list timers
 * @count: room for so many, at least 1
 * @cursor: 0 to start with; where to go on, 0 again at the end
 *
 * A timer that is delivered and not acknowledged is listed too, with
 * EXPIRY_F_REDELIVERED. Returns the number of records written (bounded work: may be 0 before the
 * end), or a page error.
 */
int timers_scan(struct timers *timers, struct expiry_record *records,
		u32 count, u64 *cursor);

/**
 * timers_settle - drop stale nodes from the top of the heap
 * @steps: most nodes to look at
 *
 * Returns 1 if the first node is live or there is none, 0 if more steps are
 * needed, or a page error.
 */
int timers_settle(struct timers *timers, u32 steps);

/* The earliest deadline, EXPIRY_NEVER if there is none. Without timers_settle()
 * returning 1 before, the truth may be later but is never earlier.
 */
static inline u64 timers_next_ns(const struct timers *timers)
{
	return timers->heap.nr ? timers->heap.first.deadline : EXPIRY_NEVER;
}

static inline bool timers_due(const struct timers *timers, u64 now_ns)
{
	u64 next_ns = timers_next_ns(timers);

	return next_ns <= now_ns && next_ns != EXPIRY_NEVER;
}

/* Fill in what the core knows; the rest of @stat is left alone. */
void timers_stat(const struct timers *timers, struct expiry_stat *stat);

/* Walk everything (unbounded): 0 or -EIO if an invariant is broken. */
int timers_validate(struct timers *timers);

#endif /* CORE_TIMERS_H */
