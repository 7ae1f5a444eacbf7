/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Timers: heap, slots and index of one queue.
 *
 * Callers serialize all calls on one struct timers and pass the time of the
 * queue's own clock. They may free pages above pages->nr at any time between
 * calls.
 */
#ifndef CORE_TIMERS_H
#define CORE_TIMERS_H

#include "bheap.h"
#include "core.h"
#include "index.h"
#include "pages.h"
#include "slots.h"

/* The page arrays of a queue. */
enum timers_pages {
	TIMERS_PAGES_HEAP,
	TIMERS_PAGES_SLOTS,
	TIMERS_PAGES_INDEX,	/* on a plain queue only after compaction */
	TIMERS_PAGES_NR,
};

/**
 * struct timers_config - constants of a queue
 * @mode: EXPIRY_MODE_*
 * @limit: most timers, armed and unacknowledged, up to TIMERS_MAX
 * @seed: secret of the index, against chosen collisions; another one for each queue
 * @layout: of the heap
 */
struct timers_config {
	u32 mode;
	u64 limit;
	u64 seed[2];
	const struct bheap_layout *layout;
};

#define TIMERS_MAX	(1ULL << 30)

/* Records or deliveries between two steps of the sweep. */
#define TIMERS_SWEEP_EVERY	32U

/* Records for which a SCAN or REWIND that is not continued delays compaction. */
#define TIMERS_WALK_HOLD	(1U << 20)

/* Most deliveries held at a time: one bit each of @held_past. */
#define TIMERS_HELD_MAX	64U

/**
 * struct timers - see the file's head
 * @mode: const, as is @limit
 * @generation: of the last id given
 * @stamp: of the last node pushed
 * @armed: slots with SLOT_ARMED
 * @unacked: slots with SLOT_UNACKED
 * @top_is_live: the heap's first node is live: next_ns is exact
 * @moves: timers moved to another slot, from a number of the seed's on, modulo 2^32
 * @walks: SCANs and REWINDs in progress
 * @walk_hold: records until they count as given up
 * @stuck_nr: slots when the last compaction gave up; 0 = it did not
 * @stuck_used: slots in use then
 * @found_live: live nodes since the last that was stale or moved, up to a limit
 * @held_ns: when the held deliveries were taken
 * @held_past: bit n: the n-th deadline had passed when set
 * @taken_ns: since when a consumer takes timers (owner's; 0 = always)
 * @late_ns: most lateness in the last timers_deliver(), or 0
 * @stat: counters, filled in as in struct expiry_stat
 *
 * @stat.swept counts the stale nodes that sweeps found. A timer that was due
 * before @taken_ns counts as held, not as late.
 */
struct timers {
	u32 mode;
	u32 generation;
	u32 stamp;
	bool top_is_live;
	u32 moves;
	u32 walks;
	u32 walk_hold;
	u32 stuck_nr;
	u32 stuck_used;
	u32 found_live;
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

/* Returns the most pages that page array @which of such a queue can use: its
 * nr_max.
 */
u32 timers_pages_max(const struct timers_config *config,
		     enum timers_pages which);

/* Sets a queue up with @pages: TIMERS_PAGES_NR empty page arrays. -EINVAL: mode
 * or limit.
 */
int timers_setup(struct timers *timers, const struct timers_config *config,
		 struct core_pages *pages[TIMERS_PAGES_NR]);

/* Prepares a keyed queue that never had a timer for @nr of them: its index has the size
 * from the first one on, and need not grow step by step. A call with 0 ends that, and may
 * come at any time: from then on an index that is too large shrinks. Returns 0 or a page
 * error, which changes nothing.
 */
int timers_reserve(struct timers *timers, u64 nr);

/* Drops everything. The generation continues, so earlier ids never match. */
void timers_reset(struct timers *timers);

static inline bool timers_is_keyed(const struct timers *timers)
{
	return timers->mode & EXPIRY_MODE_KEYED;
}

/* Returns the timers in the queue: compared with the limit, counted by CLEAR.
 */
static inline u64 timers_nr(const struct timers *timers)
{
	return timers->slots.used;
}

/**
 * timers_submit - process records in place
 * @now_ns: now on the queue's clock
 *
 * Returns how many were processed, each with its reply and status. Returns
 * fewer than @count only if the owner reports -EAGAIN for a page. The rest is
 * unchanged and may be submitted again. The work a record is bounded.
 */
u32 timers_submit(struct timers *timers, struct expiry_record *records,
		  u32 count, u64 now_ns);

/**
 * timers_deliver - take due timers, in order of deadline
 * @records: room for @count expirations
 * @hold: keep each as unacknowledged, even on a plain queue
 *
 * With @hold, no delivery is counted yet: timers_release() or timers_restore()
 * reports whether the copy to the reader succeeded. One call's deliveries can
 * be held at a time, up to TIMERS_HELD_MAX records. Meanwhile the caller arms nothing
 * with EXPIRY_F_REDELIVERED, which would look like a held delivery of that timer.
 *
 * Returns the number of expirations or, if that is 0, a page error. The work is
 * bounded: the result may be less than is due, even 0. timers_due() tells
 * whether more are due.
 */
int timers_deliver(struct timers *timers, struct expiry_record *records,
		   u32 count, u64 now_ns, bool hold);

/**
 * timers_release - release held records that reached their reader
 *
 * Ends the timers, except on an acknowledging queue. If only the first records
 * reached the reader, timers_restore() the others first: a periodic timer may
 * be in both parts.
 *
 * Returns 0 or a page error; timers_deliver() has read those pages, so an error
 * is unlikely. Records not released stay unacknowledged.
 */
int timers_release(struct timers *timers, const struct expiry_record *records,
		   u32 count);

/**
 * timers_restore - undo held deliveries that did not reach their reader
 *
 * A periodic timer that was refreshed meanwhile keeps its new deadline instead.
 * A record marked as delivered before is due again in any case. One call
 * restores all records of one timer.
 *
 * Returns 0 or a page error. Records not restored stay unacknowledged;
 * timers_rewind() makes them due again.
 */
int timers_restore(struct timers *timers, const struct expiry_record *records,
		   u32 count);

/**
 * timers_rewind - make unacknowledged deliveries due again
 * @cursor: 0 at first; where to continue
 * @now_ns: now on the queue's clock
 *
 * A periodic timer's last delivery is due at once, even if the timer was
 * refreshed since: the refresh sets its next time. The work of a call is
 * bounded. Returns 1: call again, 0: done, or a page error (call again with the
 * same cursor). A rewind that is continued too late begins anew: see timers_scan().
 */
int timers_rewind(struct timers *timers, u64 *cursor, u64 now_ns);

/**
 * timers_scan - list timers
 * @count: room in @records, at least 1
 * @cursor: 0 at first; where to continue, 0 again at the end
 *
 * A delivered, unacknowledged timer is listed too, with EXPIRY_F_REDELIVERED.
 * Returns the number of records written or a page error. The work is bounded:
 * the result may be 0 before the end.
 *
 * A timer that is there all the time is listed once. So timers do not move while
 * the scan goes on, unless TIMERS_WALK_HOLD records were submitted since its last
 * call, or timers_tidy() gave it up. If any has moved then, returns -ECANCELED: only a
 * new scan lists all. A cursor of another queue is refused likewise.
 */
int timers_scan(struct timers *timers, struct expiry_record *records,
		u32 count, u64 *cursor);

/**
 * timers_walk_stop - end a SCAN or REWIND that will not go on
 * @cursorp: where it would have gone on; 0 = it had not begun. 0 afterwards.
 */
void timers_walk_stop(struct timers *timers, u64 *cursorp);

/* Returns whether timers_tidy() has work, now or when no walk is in progress. */
bool timers_is_sparse(const struct timers *timers);

/**
 * timers_tidy - compact the slots of a queue that nobody uses
 * @work: do as much as that number of records pays for
 * @gives_up: SCANs and REWINDs in progress are given up; else nothing is done
 *	while there are any
 *
 * For an owner whose queue gets no records. Returns 1: call again, 0: done, or a
 * page error (nothing is lost, call again).
 */
int timers_tidy(struct timers *timers, u32 work, bool gives_up);

/**
 * timers_drop_stale - drop stale nodes from the top of the heap
 * @steps: most nodes to check
 *
 * Returns 1 if the first node is live or there is none, 0 if more steps are
 * needed, or a page error.
 */
int timers_drop_stale(struct timers *timers, u32 steps);

/* Returns the earliest deadline, EXPIRY_NEVER if there is none. Unless
 * timers_drop_stale() returned 1 before, the true one may be later but is never
 * earlier.
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

/* Fills in the core's part of @stat and leaves the rest unchanged. */
void timers_stat(const struct timers *timers, struct expiry_stat *stat);

/* Walks everything (unbounded): 0, or -EIO if an invariant is broken. */
int timers_validate(struct timers *timers);

#endif /* CORE_TIMERS_H */
