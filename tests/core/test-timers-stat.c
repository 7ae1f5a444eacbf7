// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A queue's report: its initial values, its counters, and when the next
 * deadline is known without a check.
 */
#include <stdlib.h>

#include "support.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED

/* Whatever was in the struct before. */
static void setup_forgets_all(void **state)
{
	struct core_pages *pages[TIMERS_PAGES_NR];
	struct expiry_stat stat, fresh;
	struct test_queue queue;
	u32 i;

	(void)state;
	test_queue_init(&queue, KEYED | ACK, 9, test_seed);
	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		pages[i] = &queue.runs[i].pages;
		pages[i]->nr = 1;
	}
	memset(&queue.timers, 0xa5, sizeof(queue.timers));
	assert_int_equal(timers_setup(&queue.timers, &queue.config, pages), 0);

	memset(&stat, 0, sizeof(stat));
	memset(&fresh, 0, sizeof(fresh));
	fresh.next_ns = EXPIRY_NEVER;
	fresh.limit = 9;
	fresh.mode = KEYED | ACK;
	timers_stat(&queue.timers, &stat);
	assert_memory_equal(&stat, &fresh, sizeof(stat));
	assert_int_equal(timers_validate(&queue.timers), 0);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	assert_true(timers_nr(&queue.timers) == 0);
	test_queue_free(&queue);
}

static void stat_tells_all(void **state)
{
	struct expiry_record records[4];
	struct expiry_stat stat;
	struct test_queue queue;
	u32 mode;
	u64 id[5], i;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		bool acking = test_modes[mode] & ACK, keyed = test_modes[mode] & KEYED;

		test_queue_init(&queue, test_modes[mode], 5, test_seed);
		for (i = 0; i < 5; i++)
			id[i] = test_arm(&queue, keyed ? i + 1 : 0,
					 10 * (i + 1), i, 0).id;
		test_arm(&queue, keyed ? 6 : 0, 1, 0, 0);
		test_refresh(&queue, id[4], 70, 0);
		test_op(&queue, EXPIRY_OP_CANCEL, id[3]);
		test_op(&queue, EXPIRY_OP_QUERY, id[3]);
		assert_int_equal(test_deliver(&queue, records, 2, 21), 2);
		if (acking) {
			test_op(&queue, EXPIRY_OP_ACK, id[0]);
			test_rewind(&queue);
			assert_int_equal(test_deliver(&queue, records, 1, 21),
					 1);
		}
		test_drop_stale(&queue);

		memset(&stat, 0, sizeof(stat));
		timers_stat(&queue.timers, &stat);
		assert_true(stat.next_ns == 30);
		assert_true(stat.armed == 2);
		assert_true(stat.unacked == acking);
		assert_true(stat.limit == 5);
		assert_true(stat.mode == test_modes[mode]);
		assert_true(stat.nodes == queue.timers.heap.nr);
		assert_in_range(stat.nodes, 2, 5);
		assert_true(stat.pages_heap == queue.runs[0].pages.nr);
		assert_true(stat.pages_slots > 0);
		assert_true(stat.pages_slots == queue.runs[1].pages.nr);
		assert_true(stat.pages_index == keyed);
		assert_true(stat.arms == 5);
		assert_true(stat.refreshes == 1);
		assert_true(stat.cancels == 1);
		assert_true(stat.acks == acking);
		assert_true(stat.delivered == 2ULL + acking);
		assert_true(stat.redelivered == acking);
		/* One ARM too many and a QUERY too late. */
		assert_true(stat.refused == 2);
		assert_true(stat.refused_limit == 1);
		/* At 21 for 10 and for 20. */
		assert_true(stat.lateness_max_ns == 11);
		assert_true(stat.lateness[4] == 1 && stat.lateness[1] == 1);
		test_queue_free(&queue);
	}
}

/* A plain queue has an index only of timers that have moved. */
static void no_pages_for_no_index(void **state)
{
	struct test_queue queue;
	u32 mode;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		test_queue_init(&queue, test_modes[mode], 1000, test_seed);
		free(test_arm_many(&queue, 1000, SECOND));
		assert_int_equal(!!queue.timers.index.pages->nr,
				 !!(test_modes[mode] & KEYED));
		assert_int_equal(timers_pages_max(&queue.config,
						  TIMERS_PAGES_NR), 0);
		test_queue_free(&queue);
	}
}

/* Known deadlines need no check: a node pushed in front of a stale one is live,
 * and an empty heap has no stale nodes.
 */
static void known_without_looking(void **state)
{
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, 0, 9, test_seed);
	test_arm(&queue, 0, 100, 0, 0);
	id = test_arm(&queue, 0, 50, 0, 0).id;
	test_op(&queue, EXPIRY_OP_CANCEL, id);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 0);
	test_arm(&queue, 0, 200, 0, 0);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 0);
	id = test_arm(&queue, 0, 40, 0, 0).id;
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	assert_true(timers_next_ns(&queue.timers) == 40);

	test_op(&queue, EXPIRY_OP_CANCEL, id);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 0);
	test_op(&queue, EXPIRY_OP_CLEAR, 0);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	test_queue_free(&queue);
}

/* The same after a refresh that leaves the first node in place, which also
 * needs no node.
 */
static void known_after_a_refresh(void **state)
{
	struct test_queue queue;
	u64 first, second;

	(void)state;
	test_queue_init(&queue, 0, 9, test_seed);
	first = test_arm(&queue, 0, 50, 0, 0).id;
	second = test_arm(&queue, 0, 100, 0, 0).id;
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	test_refresh(&queue, first, 50, 0);
	test_refresh(&queue, second, 100, 0);
	assert_int_equal(queue.timers.heap.nr, 2);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	test_refresh(&queue, second, 200, 0);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	test_refresh(&queue, first, 300, 0);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 0);
	test_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(setup_forgets_all),
		test_with_layouts(stat_tells_all),
		test_with_layouts(no_pages_for_no_index),
		test_with_layouts(known_without_looking),
		test_with_layouts(known_after_a_refresh),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
