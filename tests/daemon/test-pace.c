// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pace of a checkpoint, beside commits of any size, length and distance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "daemon/queue/pace.h"

#define STEP_ROWS	512U
#define COMMITS		200000U

static uint32_t random_bits = 1;

static uint32_t below(uint32_t limit)
{
	random_bits = random_bits * 1103515245 + 12345;
	return (uint64_t)(random_bits >> 8) * limit >> 24;
}

/* Puts rows from @now_ns to @end_ns, a step each @step_ns. Returns how many. */
static uint64_t put(struct pace *pace, uint64_t now_ns, uint64_t end_ns,
		    uint64_t step_ns)
{
	uint64_t rows = 0, wait_ns, step;

	while (now_ns < end_ns) {
		wait_ns = pace_wait_ns(pace, now_ns);
		if (wait_ns >= end_ns - now_ns)
			break;
		now_ns += wait_ns;
		assert_int_equal(pace_wait_ns(pace, now_ns), 0);
		step = pace_rows(pace);
		step = step < STEP_ROWS ? step : STEP_ROWS;
		pace_put(pace, step);
		rows += step;
		now_ns += step_ns;
	}
	return rows;
}

/* Between commits that follow each other, and beside them, a checkpoint puts what they
 * leave it and no more.
 */
static void keeps_to_the_share_of_commits(void **state)
{
	uint64_t now_ns = 1000000000, rows = 0, share = 0, records, length_ns, gap_ns;
	struct pace pace = {0};
	uint32_t i;

	(void)state;
	pace_begin(&pace);
	for (i = 0; i < COMMITS; i++) {
		records = 1 + below(below(2) ? 4 : 2000);
		length_ns = 10000 + below(below(8) ? 300000 : 20000000);
		gap_ns = below(PACE_IDLE_NS);
		share += records * PACE_SHARE < PACE_LEAST ? PACE_LEAST :
							     records * PACE_SHARE;
		pace_commit(&pace, records);
		rows += put(&pace, now_ns, now_ns + length_ns, 5000);
		now_ns += length_ns;
		pace_commit_ended(&pace, now_ns);
		rows += put(&pace, now_ns, now_ns + gap_ns, 5000);
		now_ns += gap_ns;
		assert_true(rows <= share);
	}
	assert_true(rows >= share / 2);
}

/* A commit that takes long gets nothing more written beside it. */
static void waits_for_a_commit_that_takes_long(void **state)
{
	struct pace pace = {0};

	(void)state;
	pace_begin(&pace);
	pace_commit(&pace, 1);
	assert_int_equal(put(&pace, 0, 60000000000, 5000), PACE_LEAST);
	assert_int_equal(pace_wait_ns(&pace, 60000000000), UINT64_MAX);
	pace_commit_ended(&pace, 60000000000);
	assert_int_equal(pace_wait_ns(&pace, 60000000000), PACE_IDLE_NS);
	assert_int_equal(pace_wait_ns(&pace, 60000000000 + PACE_IDLE_NS), 0);
}

static void is_at_full_speed_without_commits(void **state)
{
	struct pace pace = {0};

	(void)state;
	pace_begin(&pace);
	assert_int_equal(put(&pace, PACE_IDLE_NS, PACE_IDLE_NS + 5000000, 5000),
			 1000 * STEP_ROWS);
	pace_commit(&pace, 512);
	pace_commit_ended(&pace, 100000000);
	pace_begin(&pace);
	assert_int_equal(put(&pace, 100000000, 100000000 + 2 * PACE_IDLE_NS, 5000),
			 PACE_IDLE_NS / 5000 * STEP_ROWS);
}

/* Commits of one record without a pause do not keep it from its end. */
static void goes_on_beside_small_commits(void **state)
{
	uint64_t now_ns = 0, rows = 0;
	struct pace pace = {0};
	uint32_t i;

	(void)state;
	pace_begin(&pace);
	for (i = 0; i < COMMITS; i++) {
		pace_commit(&pace, 1);
		rows += put(&pace, now_ns, now_ns + 100000, 5000);
		now_ns += 100000;
		pace_commit_ended(&pace, now_ns);
	}
	assert_true(rows >= (uint64_t)PACE_LEAST * COMMITS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_to_the_share_of_commits),
		cmocka_unit_test(waits_for_a_commit_that_takes_long),
		cmocka_unit_test(is_at_full_speed_without_commits),
		cmocka_unit_test(goes_on_beside_small_commits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
