/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What single operations on a queue cost at most: bounds.c says when, here is
 * what is done (bounds-ops.c) and how it is measured (bounds-clock.c or
 * bounds-watch.c, one of them to a program).
 */
#ifndef BENCH_HEAP_BOUNDS_H
#define BENCH_HEAP_BOUNDS_H

#include "bench/subject.h"
#include "increments.h"
#include "tally.h"

/* ------------------------------------------------------------------------
 * How
 */

#define MEASURES_MAX	3U

/* Units of what is measured; ends with NULL. */
extern const char *const measure_units[];

/* Whether measuring disturbs so little that every operation can be measured
 * alone; otherwise some are, and the others come in batches.
 */
extern const bool measure_all;

/* What is measured from now on is done to @subject. */
void measure_open(const struct subject *subject);
void measure_close(void);

/* Around one operation. False: something else came between. */
void measure_begin(void);
bool measure_end(uint32_t values[MEASURES_MAX]);

/* ------------------------------------------------------------------------
 * What
 */

#define BATCH	512U

enum op {
	OP_NOTHING,	/* what measuring takes */
	OP_ARM,
	OP_LATER,	/* REFRESH to a later deadline */
	OP_EARLIER,
	OP_CANCEL,
	OP_DELIVER,
	OP_SETTLE,
	OP_NR,
};

extern const char *const op_names[OP_NR];

/**
 * struct bounds - a queue and what is known of its timers
 * @nr: live timers; @nr_max: most there can be
 * @given: by timer, from 1: the upper half of its id; NOT_LIVE and, on a keyed
 *	queue, the next one that is not
 * @deadlines: by timer
 * @now_ns: deadline of what was delivered last
 * @free: a timer of a keyed queue that is not live
 * @seen: by op and unit
 */
struct bounds {
	struct subject subject;
	u32 nr;
	u32 nr_max;
	u32 *given;
	u64 *deadlines;
	u64 now_ns;
	uint64_t random;
	u32 free;
	struct increments increments;
	struct tally seen[OP_NR][MEASURES_MAX];
};

void bounds_init(struct bounds *bounds, const struct bheap_layout *layout,
		 bool keyed, u32 nr_max);
void bounds_deinit(struct bounds *bounds);

/* Do it, and count what it took if @measured. There must be a timer to do it
 * to, or room for one. Delivers 0 or 1.
 */
void bounds_do(struct bounds *bounds, enum op op, bool measured);

/* The same for @count of them, at most BATCH, in one call and unmeasured. */
void bounds_batch(struct bounds *bounds, enum op op, u32 count);

/* @count / 2 times CANCEL and ARM. */
void bounds_pairs(struct bounds *bounds, u32 count);

#endif /* BENCH_HEAP_BOUNDS_H */
