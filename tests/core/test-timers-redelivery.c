// SPDX-License-Identifier: LGPL-2.1-or-later
/* Unacknowledged deliveries: how they are repeated. */
#include <stdlib.h>

#include "expired.h"

#define ACK	EXPIRY_MODE_ACK
#define MS	MILLISECOND

static void acknowledged(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, ACK, 10, test_seed);
	id = test_arm(&queue, 0, 100, 9, 0).id;
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, -ENOENT);
	assert_int_equal(one(&queue, &record, 100), 1);
	assert_true(queue.timers.unacked == 1 && queue.timers.armed == 0);
	assert_true(timers_nr(&queue.timers) == 1);
	assert_int_equal(one(&queue, &record, EXPIRY_NEVER), 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, -ENOENT);
	assert_true(!timers_nr(&queue.timers));
	test_rewind(&queue);
	assert_int_equal(one(&queue, &record, EXPIRY_NEVER), 0);
	test_queue_free(&queue);
}

static void rewound(void **state)
{
	struct expiry_record record, records[3];
	struct test_queue queue;
	u64 id[4];

	(void)state;
	test_queue_init(&queue, ACK, 10, test_seed);
	arm_in_turn(&queue, id, 4, 100);
	assert_int_equal(test_deliver(&queue, records, 3, 103), 3);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id[1]).status, 0);
	test_rewind(&queue);
	assert_true(queue.timers.unacked == 0 && queue.timers.armed == 3);

	/* Armed again: it can be queried and cancelled. */
	record = test_op(&queue, EXPIRY_OP_QUERY, id[0]);
	assert_true(!record.status && record.deadline_ns == 100);
	assert_int_equal(one(&queue, &record, 103), 1);
	expect(&record, id[0], 100, 0, EXPIRY_F_REDELIVERED);
	assert_true(record.cookie == 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, id[2]).status, 0);
	assert_int_equal(one(&queue, &record, 103), 1);
	expect(&record, id[3], 103, 0, 0);

	/* Twice not acknowledged, twice again. */
	test_rewind(&queue);
	assert_int_equal(test_deliver(&queue, records, 3, 103), 2);
	expect(&records[0], id[0], 100, 0, EXPIRY_F_REDELIVERED);
	expect(&records[1], id[3], 103, 0, EXPIRY_F_REDELIVERED);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id[0]).status, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id[3]).status, 0);
	assert_true(!timers_nr(&queue.timers));
	test_queue_free(&queue);
}

/* Armed for its next time and unacknowledged for its last: one timer. */
static void periodic_and_acknowledged(void **state)
{
	struct expiry_record record, records[5];
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, ACK, 1, test_seed);
	id = test_arm(&queue, 0, 10 * MS, 1, 10).id;
	assert_int_equal(test_deliver(&queue, records, 5, 30 * MS), 1);
	expect(&records[0], id, 10 * MS, 3, 0);
	assert_true(timers_nr(&queue.timers) == 1);
	assert_true(queue.timers.armed == 1 && queue.timers.unacked == 1);
	record = test_op(&queue, EXPIRY_OP_QUERY, id);
	assert_true(!record.status && record.deadline_ns == 40 * MS);

	/* The last is repeated, marked; those that follow are not marked. */
	test_rewind(&queue);
	assert_int_equal(test_deliver(&queue, records, 5, 45 * MS), 2);
	expect(&records[0], id, 30 * MS, 1, EXPIRY_F_REDELIVERED);
	expect(&records[1], id, 40 * MS, 1, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, -ENOENT);
	test_rewind(&queue);
	assert_int_equal(one(&queue, &record, 45 * MS), 0);

	/* Cancelled while unacknowledged: that one delivery is left. */
	assert_int_equal(one(&queue, &record, 50 * MS), 1);
	record = test_op(&queue, EXPIRY_OP_CANCEL, id);
	assert_true(!record.status && record.deadline_ns == 60 * MS);
	assert_int_equal(test_op(&queue, EXPIRY_OP_QUERY, id).status, -ENOENT);
	test_rewind(&queue);
	assert_int_equal(test_deliver(&queue, records, 5, SECOND), 1);
	expect(&records[0], id, 50 * MS, 0, EXPIRY_F_REDELIVERED);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	assert_true(!timers_nr(&queue.timers));
	test_queue_free(&queue);
}

/* A refresh of a periodic timer moves its next time, not the unacknowledged
 * delivery. That is repeated at once, before or after the rewind, however often
 * the timer is refreshed. Then the refreshed timer follows.
 */
static void refreshed_while_unacknowledged(void **state)
{
	static const u64 to[] = { 500 * MS, 30 * MS, 21 * MS, 5 * MS,
				  EXPIRY_NEVER };
	struct expiry_record records[4], record;
	struct test_queue queue;
	u32 i, when, nr, far;
	u64 id;

	(void)state;
	for (i = 0; i < 4 * ARRAY_SIZE(to); i++) {
		u64 next = to[i / 4];

		when = i % 4;
		far = next > SECOND;
		test_queue_init(&queue, ACK, 2, test_seed);
		id = test_arm(&queue, 0, 10 * MS, 7, 10).id;
		assert_int_equal(one(&queue, &record, 10 * MS), 1);
		if (when != 1)
			test_refresh(&queue, id, next, 0);
		test_rewind_at(&queue, 12 * MS);
		if (when)
			test_refresh(&queue, id, next, 0);
		if (when == 3)
			test_refresh(&queue, id, next, 0);
		assert_int_equal(timers_validate(&queue.timers), 0);

		record = test_op(&queue, EXPIRY_OP_QUERY, id);
		assert_true(!record.status && record.deadline_ns == next);
		nr = test_deliver(&queue, records, 4, 12 * MS);
		assert_int_equal(nr, next <= 12 * MS ? 2 : 1);
		assert_true(records[0].id == id);
		assert_int_equal(records[0].flags, EXPIRY_F_REDELIVERED);
		assert_true(records[0].deadline_ns <= 12 * MS);
		if (nr == 1)
			nr += far ? 0 : test_deliver(&queue, records + 1, 1,
						     next);
		if (!far) {
			assert_int_equal(nr, 2);
			expect(&records[1], id, next, 1, 0);
		} else {
			assert_int_equal(test_deliver(&queue, records, 1,
						      EXPIRY_NEVER - 1), 0);
		}
		test_queue_free(&queue);
	}
}

/* The same timer, cancelled or acknowledged: its delivery comes at once, or the
 * refreshed timer.
 */
static void refreshed_then_ended(void **state)
{
	static const u64 to[] = { 500 * MS, 5 * MS, EXPIRY_NEVER };
	struct expiry_record records[4], record;
	struct test_queue queue;
	u64 id;
	u32 i;

	(void)state;
	for (i = 0; i < 2 * ARRAY_SIZE(to); i++) {
		u64 next = to[i / 2];

		test_queue_init(&queue, ACK, 2, test_seed);
		id = test_arm(&queue, 0, 10 * MS, 7, 10).id;
		assert_int_equal(one(&queue, &record, 10 * MS), 1);
		test_refresh(&queue, id, next, 0);
		if (i % 2) {
			record = (struct expiry_record) {
				.op = EXPIRY_OP_CANCEL, .id = id,
			};
			test_submit(&queue, &record, 12 * MS);
			assert_int_equal(record.status, 0);
			test_rewind_at(&queue, 12 * MS);
			assert_int_equal(one(&queue, records, 12 * MS), 1);
			assert_int_equal(records[0].flags,
					 EXPIRY_F_REDELIVERED);
			assert_int_equal(test_op(&queue, EXPIRY_OP_ACK,
						 id).status, 0);
			assert_true(!timers_nr(&queue.timers));
		} else {
			test_rewind_at(&queue, 12 * MS);
			test_refresh(&queue, id, next, 0);
			assert_int_equal(test_op(&queue, EXPIRY_OP_ACK,
						 id).status, 0);
			assert_int_equal(timers_validate(&queue.timers), 0);
			assert_true(queue.timers.armed == 1);
			test_drop_stale(&queue);
			assert_true(timers_next_ns(&queue.timers) == next);
		}
		test_queue_free(&queue);
	}
}

/* A refresh may put the next time of a periodic timer before the end of its
 * first period on the clock: the last delivery is not lost.
 */
static void rewound_near_zero(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u32 cancel;
	u64 id;

	(void)state;
	for (cancel = 0; cancel < 2; cancel++) {
		test_queue_init(&queue, ACK, 1, test_seed);
		id = test_arm(&queue, 0, 5 * MS, 1, 10).id;
		assert_int_equal(one(&queue, &record, 6 * MS), 1);
		test_refresh(&queue, id, 3 * MS, 0);
		if (cancel)
			test_op(&queue, EXPIRY_OP_CANCEL, id);
		test_rewind(&queue);
		assert_int_equal(one(&queue, &record, 6 * MS), 1);
		assert_true(record.id == id);
		assert_int_equal(record.flags, EXPIRY_F_REDELIVERED);
		assert_true(record.deadline_ns == 0);
		test_queue_free(&queue);
	}
}

/* A call does bounded work, and the calls together all of it. */
static void rewound_in_steps(void **state)
{
	u32 n = 5000, i, calls = 0, armed = 0;
	struct expiry_record *records = calloc(n, sizeof(*records));
	struct test_queue queue;
	u64 cursor = 0;
	int ret;

	(void)state;
	assert_non_null(records);
	test_queue_init(&queue, ACK, n, test_seed);
	for (i = 0; i < n; i++)
		test_arm(&queue, 0, 100 + i % 7, 0, 0);
	assert_int_equal(test_deliver(&queue, records, n, 200), n);
	do {
		ret = timers_rewind(&queue.timers, &cursor, 200);
		assert_true(ret == (queue.timers.unacked > 0));
		assert_in_range(queue.timers.armed - armed, 1, 512);
		armed = queue.timers.armed;
		calls++;
	} while (ret);
	assert_true(calls > n / 1000);
	assert_true(cursor == 0);
	assert_int_equal(timers_validate(&queue.timers), 0);
	assert_int_equal(test_deliver(&queue, records, n, 200), n);
	for (i = 0; i < n; i++)
		assert_int_equal(records[i].flags, EXPIRY_F_REDELIVERED);
	test_queue_free(&queue);
	free(records);
}

/* A rewind starts again at its end, and checks nothing if there is nothing to
 * restore.
 */
static void rewound_to_the_end(void **state)
{
	struct expiry_record records[2];
	struct test_queue queue;
	u64 cursors[3] = { 0, 0, ~0ULL };
	u32 i, n = 1000;

	(void)state;
	test_queue_init(&queue, ACK, n, test_seed);
	for (i = 0; i < n; i++)
		test_arm(&queue, 0, 10 + i, 0, 0);
	assert_int_equal(timers_rewind(&queue.timers, &cursors[0], 11), 0);
	assert_true(cursors[0] == 0);
	assert_int_equal(test_deliver(&queue, records, 2, 11), 2);
	cursors[1] = (u64)queue.timers.moves << 32 | n;
	for (i = 1; i < 3; i++) {
		assert_int_equal(timers_rewind(&queue.timers, &cursors[i], 11),
				 0);
		assert_true(cursors[i] == 0);
		assert_true(queue.timers.unacked == 2);
	}
	test_rewind(&queue);
	assert_true(queue.timers.unacked == 0);
	test_queue_free(&queue);
}

/* A rewound periodic timer comes first until it is acknowledged, late: then its
 * next time does. Another first timer is not affected.
 */
static void the_top_is_live_after_a_late_ack(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, ACK, 10, test_seed);
	id = test_arm(&queue, 0, 10 * MS, 0, 10).id;
	assert_int_equal(one(&queue, &record, 10 * MS), 1);
	test_rewind(&queue);
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == 10 * MS);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == 20 * MS);

	assert_int_equal(one(&queue, &record, 20 * MS), 1);
	test_rewind(&queue);
	test_arm(&queue, 0, 5 * MS, 0, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	assert_true(timers_next_ns(&queue.timers) == 5 * MS);
	test_queue_free(&queue);
}

/* So does one that is armed anew: the delivery to be repeated is void. */
static void the_top_is_live_after_another_arm(void **state)
{
	struct expiry_record record;
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, ACK | EXPIRY_MODE_KEYED, 10, test_seed);
	test_arm(&queue, 7, 10 * MS, 0, 10);
	assert_int_equal(one(&queue, &record, 10 * MS), 1);
	test_rewind(&queue);
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == 10 * MS);
	assert_int_equal(test_arm(&queue, 7, 50 * MS, 0, 10).status, 0);
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == 50 * MS);

	/* Another first timer stays live. */
	assert_int_equal(one(&queue, &record, 50 * MS), 1);
	test_rewind(&queue);
	test_arm(&queue, 8, 5 * MS, 0, 0);
	assert_int_equal(test_arm(&queue, 7, 70 * MS, 0, 10).status, 0);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	assert_true(timers_next_ns(&queue.timers) == 5 * MS);
	test_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(acknowledged),
		test_with_layouts(rewound),
		test_with_layouts(periodic_and_acknowledged),
		test_with_layouts(refreshed_while_unacknowledged),
		test_with_layouts(refreshed_then_ended),
		test_with_layouts(rewound_near_zero),
		test_with_layouts(rewound_in_steps),
		test_with_layouts(rewound_to_the_end),
		test_with_layouts(the_top_is_live_after_a_late_ack),
		test_with_layouts(the_top_is_live_after_another_arm),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
