/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The worst single operations on a queue. bounds.c says when, bounds-ops.c does
 * them, and bounds-clock.c or bounds-watch.c measures them, one of them to a
 * program.
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

/* Units of the measured values; ends with NULL. */
extern const char *const measure_units[];

/* Whether measuring disturbs so little that every operation is measured alone.
 * Otherwise some are, and the others come in batches.
 */
extern const bool measure_all;

/* Begins measuring operations on @subject. */
void measure_open(const struct subject *subject);
void measure_close(void);

/* Measures one operation between the calls. False: something else came between.
 */
void measure_begin(void);
bool measure_end(uint32_t values[MEASURES_MAX]);

/* ------------------------------------------------------------------------
 * What
 */

#define BATCH	512U

enum op {
	OP_NOTHING,	/* the cost of measuring */
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
 * struct bounds - a queue and the state of its timers
 * @nr: live timers; @nr_max: most timers
 * @given: by timer, from 1: the upper half of its id
 * @deadlines: by timer
 * @now_ns: deadline of the last delivery
 * @free: a timer of a keyed queue that is not live
 * @seen: by op and unit
 *
 * For a timer that is not live @given is NOT_LIVE and, on a keyed queue, the
 * next such timer.
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

/* Does an operation, and counts its cost if @measured. There must be a timer
 * for it, or room for one. Delivers 0 or 1.
 */
void bounds_do(struct bounds *bounds, enum op op, bool measured);

/* Does the same for @count of them, at most BATCH, in one call and unmeasured.
 */
void bounds_batch(struct bounds *bounds, enum op op, u32 count);

/* Does CANCEL and ARM @count / 2 times. */
void bounds_pairs(struct bounds *bounds, u32 count);

#endif /* BENCH_HEAP_BOUNDS_H */
