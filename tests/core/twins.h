/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * struct timers and its naive twin: every step makes the same request to both
 * and compares the results. The caller decides whether random numbers or the
 * bytes of a file select the requests.
 */
#ifndef TESTS_CORE_TWINS_H
#define TESTS_CORE_TWINS_H

#include "horrible.h"
#include "support.h"

#define TWINS_OLD_IDS	64U	/* ids a plain queue gave, to be tried again */

/**
 * struct twins - a queue and its twin
 * @seed: printed when they differ
 * @random: selects, unless there is @data
 * @data: bytes that select, up to @data_end; or NULL
 * @now: on their clock; usually advances
 * @old: ids that were given, live or stale
 * @step: steps taken
 * @evict: pages of each run that leave memory after a step
 * @faults: one in that many operations has missing pages; 0 = none
 * @thorough: compare everything after one in that many steps
 * @walk: walk through heap, slots and index after every step
 * @restored: deliveries were restored: their count is not exact
 * @rows: room for a listing
 */
struct twins {
	struct test_queue queue;
	struct horrible horrible;
	u64 seed;
	u64 random;
	const u8 *data;
	const u8 *data_end;
	u64 now;
	u64 old[TWINS_OLD_IDS];
	u32 step;
	u32 evict;
	u32 faults;
	u32 thorough;
	bool walk;
	bool restored;
	struct expiry_record *rows;
};

/* Initializes twins of @test_layout. The caller has filled in @random or @data,
 * and may set @evict, @faults, @thorough and @walk before or after.
 */
void twins_init(struct twins *twins, u32 mode, u32 limit, u64 seed);
void twins_free(struct twins *twins);

/* Returns 0 to @n - 1, random or from the next bytes; 0 at their end. */
u64 twins_chance(struct twins *twins, u64 n);

/* Takes one step. */
void twins_step(struct twins *twins);

/* Compares everything visible from outside, and walks through the inside. */
void twins_compare(struct twins *twins);
void twins_compare_counters(struct twins *twins);

/* Drains the queue: timers with a deadline come out once and in order. Then
 * both are empty, and no page is left.
 */
void twins_drain(struct twins *twins);

#endif /* TESTS_CORE_TWINS_H */
