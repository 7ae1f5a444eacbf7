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
 * @ids: by timer, from 1: 0 if it is not live
 * @deadlines: by timer; of one that is not live the next such timer
 * @now_ns: deadline of the last delivery
 * @free: a timer that is not live
 * @seen: by op and unit
 *
 * A timer's number is its cookie. A slot of an id does not tell it: when timers have
 * moved, two live ones may have been armed in the same slot.
 */
struct bounds {
	struct subject subject;
	u32 nr;
	u32 nr_max;
	u64 *ids;
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
