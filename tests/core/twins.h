/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * struct timers and its naive twin, living the same life: every step asks the
 * same of both and compares what they say. Whether chance or the bytes of a
 * file decide what is asked is up to the caller.
 */
#ifndef TESTS_CORE_TWINS_H
#define TESTS_CORE_TWINS_H

#include "horrible.h"
#include "support.h"

#define TWINS_OLD_IDS	64U	/* ids a plain queue gave, to be tried again */

/**
 * struct twins - a queue and its twin
 * @seed: to be named when they differ
 * @random: decides, unless there is @data
 * @data: bytes that decide, up to @data_end; NULL = chance does
 * @now: on their clock; goes on most of the time
 * @old: ids that were given, live or stale
 * @step: steps taken
 * @evict: pages of each run that go out of memory after a step
 * @faults: one in that many operations meets missing pages; 0 = none
 * @thorough: compare everything after one in that many steps
 * @walk: walk through heap, slots and index after every step
 * @restored: deliveries were taken back: the count of them is not exact
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

/* Of @test_layout. The caller has filled in what decides, and sets @evict,
 * @faults, @thorough and @walk as it likes, before or after.
 */
void twins_init(struct twins *twins, u32 mode, u32 limit, u64 seed);
void twins_free(struct twins *twins);

/* 0 to @n - 1, by chance or by the next bytes; 0 when these are at their end. */
u64 twins_chance(struct twins *twins, u64 n);

/* One step of their lives. */
void twins_step(struct twins *twins);

/* All that can be seen from outside, and a walk through the inside. */
void twins_compare(struct twins *twins);
void twins_compare_counters(struct twins *twins);

/* What is armed with a deadline comes out in the end, once and in order; then
 * both are empty, and no page is left.
 */
void twins_drain(struct twins *twins);

#endif /* TESTS_CORE_TWINS_H */
