// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deliveries: when, in which order, how often, and how they come again.
 */
#include <stdlib.h>

#include "expired.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED
#define MS	MILLISECOND

static void in_order_of_deadline(void **state)
{
	struct expiry_record records[7];
	u32 i, n = 3000, nr, done = 0;
	struct test_queue queue;
	u64 random = test_seed, last = 0, now = 0;
	bool *seen = calloc(n, sizeof(*seen));

	(void)state;
	assert_non_null(seen);
	test_queue_init(&queue, 0, n, test_seed);
	for (i = 0; i < n; i++)
		test_arm(&queue, 0, test_below(&random, 1000), i, 0);
	for (now = 0; now < 1000; now += 1 + test_below(&random, 20)) {
		do {
			nr = test_deliver(&queue, records, ARRAY_SIZE(records),
					  now);
			for (i = 0; i < nr; i++) {
				assert_in_range(records[i].deadline_ns, last,
						now);
				last = records[i].deadline_ns;
				assert_false(seen[records[i].cookie]);
				seen[records[i].cookie] = true;
			}
			done += nr;
		} while (nr);
		assert_false(timers_due(&queue.timers, now));
	}
	done += test_deliver(&queue, records, ARRAY_SIZE(records), 1000);
	while (timers_nr(&queue.timers))
		done += test_deliver(&queue, records, ARRAY_SIZE(records),
				     1000);
	assert_int_equal(done, n);
	test_queue_free(&queue);
	free(seen);
}

static void not_a_nanosecond_early(void **state)
{
	static const u64 deadlines[] = {
		0, 1, 5 * SECOND, 1ULL << 63, EXPIRY_NEVER - 1,
	};
	struct expiry_record record;
	struct test_queue queue;
	u64 id;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(deadlines); i++) {
		test_queue_init(&queue, 0, 10, test_seed);
		id = test_arm(&queue, 0, deadlines[i], 0, 0).id;
		if (deadlines[i])
			assert_int_equal(one(&queue, &record,
					     deadlines[i] - 1), 0);
		assert_int_equal(one(&queue, &record, deadlines[i]), 1);
		expect(&record, id, deadlines[i], 0, 0);
		assert_int_equal(one(&queue, &record, EXPIRY_NEVER), 0);
		test_queue_free(&queue);
	}
}

static void never_is_never(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	id = test_arm(&queue, 0, EXPIRY_NEVER, 1, 50).id;
	assert_int_equal(timers_deliver(&queue.timers, &record, 1,
					EXPIRY_NEVER, false), 0);
	assert_false(timers_due(&queue.timers, EXPIRY_NEVER));
	test_refresh(&queue, id, 10, 0);
	assert_int_equal(one(&queue, &record, 10), 1);
	test_refresh(&queue, id, EXPIRY_NEVER, 0);
	assert_int_equal(timers_deliver(&queue.timers, &record, 1,
					EXPIRY_NEVER, false), 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, id).status, 0);
	test_queue_free(&queue);
}

static void refreshed_and_cancelled(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 later, earlier, gone;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	later = test_arm(&queue, 0, 100, 0, 0).id;
	earlier = test_arm(&queue, 0, 200, 0, 0).id;
	gone = test_arm(&queue, 0, 50, 0, 0).id;
	test_refresh(&queue, later, 300, 0);
	test_refresh(&queue, earlier, 150, 0);
	test_op(&queue, EXPIRY_OP_CANCEL, gone);
	assert_int_equal(one(&queue, &record, 149), 0);
	assert_int_equal(one(&queue, &record, 150), 1);
	expect(&record, earlier, 150, 0, 0);
	assert_int_equal(one(&queue, &record, 299), 0);
	assert_int_equal(one(&queue, &record, 300), 1);
	expect(&record, later, 300, 0, 0);
	assert_true(!timers_nr(&queue.timers));
	test_queue_free(&queue);
}

/* Until it is read it can be taken back, afterwards not. */
static void armed_until_it_is_read(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 a, b;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	a = test_arm(&queue, 0, 100, 0, 0).id;
	b = test_arm(&queue, 0, 101, 0, 0).id;
	assert_int_equal(one(&queue, &record, 1000), 1);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, a).status, -ENOENT);
	assert_int_equal(test_refresh(&queue, a, 1, 0).status, -ENOENT);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, b).status, 0);
	assert_int_equal(one(&queue, &record, 1000), 0);
	test_queue_free(&queue);
}

static void periodic(void **state)
{
	struct expiry_record record, records[5];
	struct test_queue queue;
	u64 id;
	u32 i;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	id = test_arm(&queue, 0, 10 * MS, 1, 10).id;
	assert_int_equal(one(&queue, &record, 15 * MS), 1);
	expect(&record, id, 10 * MS, 10, 0);
	assert_int_equal(one(&queue, &record, 20 * MS - 1), 0);
	assert_true(timers_next_ns(&queue.timers) == 20 * MS);

	/* Whoever comes late gets each of them. */
	assert_int_equal(test_deliver(&queue, records, 5, 55 * MS), 4);
	for (i = 0; i < 4; i++)
		expect(&records[i], id, (20 + 10 * i) * MS, 10, 0);

	/* A refresh moves it and keeps the period. */
	test_refresh(&queue, id, 61 * MS, 0);
	assert_int_equal(test_deliver(&queue, records, 5, 71 * MS), 2);
	expect(&records[0], id, 61 * MS, 10, 0);
	expect(&records[1], id, 71 * MS, 10, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, id).status, 0);
	assert_true(!timers_nr(&queue.timers));

	/* At the end of time there is no next. */
	id = test_arm(&queue, 0, EXPIRY_NEVER - 5, 1, ~0U).id;
	assert_int_equal(one(&queue, &record, EXPIRY_NEVER - 1), 1);
	expect(&record, id, EXPIRY_NEVER - 5, ~0U, 0);
	assert_int_equal(one(&queue, &record, EXPIRY_NEVER), 0);
	record = test_op(&queue, EXPIRY_OP_QUERY, id);
	assert_true(!record.status && record.deadline_ns == EXPIRY_NEVER);
	test_queue_free(&queue);
}

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
	u32 i;

	(void)state;
	test_queue_init(&queue, ACK, 10, test_seed);
	for (i = 0; i < 4; i++)
		id[i] = test_arm(&queue, 0, 100 + i, i, 0).id;
	assert_int_equal(test_deliver(&queue, records, 3, 103), 3);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id[1]).status, 0);
	test_rewind(&queue);
	assert_true(queue.timers.unacked == 0 && queue.timers.armed == 3);

	/* Armed again: it can be asked for, and taken back. */
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
	assert_int_equal(test_deliver(&queue, records, 5, 30 * MS), 3);
	assert_true(timers_nr(&queue.timers) == 1);
	assert_true(queue.timers.armed == 1 && queue.timers.unacked == 1);
	record = test_op(&queue, EXPIRY_OP_QUERY, id);
	assert_true(!record.status && record.deadline_ns == 40 * MS);

	/* The last is repeated, marked; those that follow are not marked. */
	test_rewind(&queue);
	assert_int_equal(test_deliver(&queue, records, 5, 45 * MS), 2);
	expect(&records[0], id, 30 * MS, 10, EXPIRY_F_REDELIVERED);
	expect(&records[1], id, 40 * MS, 10, 0);
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

/* A refresh of a periodic timer moves its next time, not the delivery that was
 * not acknowledged: that comes again at once, before or after the rewind as
 * often as the timer is refreshed, and then the timer as it was refreshed.
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
			expect(&records[1], id, next, 10, 0);
		} else {
			assert_int_equal(test_deliver(&queue, records, 1,
						      EXPIRY_NEVER - 1), 0);
		}
		test_queue_free(&queue);
	}
}

/* The same timer, cancelled or acknowledged: its delivery comes at once, or the
 * timer as it was refreshed.
 */
static void refreshed_then_settled(void **state)
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
			test_settle(&queue);
			assert_true(timers_next_ns(&queue.timers) == next);
		}
		test_queue_free(&queue);
	}
}

/* A refresh may put the next time of a periodic timer before its first period
 * is over on the clock: the last delivery is not lost by that.
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

/* Bounded work a call, and all of it in the end. */
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

/* Where a rewind ends it begins again, and without anything to bring back it
 * looks at nothing.
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
	cursors[1] = n;
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

/* One call gets past a few that are stale, too few for a sweep, and what it found
 * out is known.
 */
static void stale_ones_hold_nothing_up(void **state)
{
	struct expiry_record records[4];
	struct test_queue queue;
	u64 id[8];
	u32 i;

	(void)state;
	test_queue_init(&queue, ACK, 8, test_seed);
	for (i = 0; i < 8; i++)
		id[i] = test_arm(&queue, 0, 10 + i, 0, 0).id;
	for (i = 0; i < 8; i++)
		if (i % 2)
			test_op(&queue, EXPIRY_OP_CANCEL, id[i]);
	assert_int_equal(timers_deliver(&queue.timers, records, 1, 30, false),
			 1);
	assert_int_equal(timers_settle(&queue.timers, 2), 1);
	assert_true(timers_next_ns(&queue.timers) == 12);
	assert_int_equal(timers_settle(&queue.timers, 0), 1);
	assert_int_equal(timers_deliver(&queue.timers, records, 4, 30, false),
			 3);
	for (i = 0; i < 3; i++)
		expect(&records[i], id[2 + 2 * i], 12 + 2 * i, 0, 0);
	test_settle(&queue);

	/* Where nothing is left to come, nobody need look. */
	test_arm(&queue, 0, 40, 0, 0);
	assert_int_equal(timers_deliver(&queue.timers, records, 1, 40, false),
			 1);
	assert_int_equal(timers_settle(&queue.timers, 0), 1);
	test_queue_free(&queue);
}

/* What was delivered for the last time leaves no node behind. */
static void delivered_nodes_leave(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u32 mode, i;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		test_queue_init(&queue, mode ? ACK : 0, 10, test_seed);
		for (i = 0; i < 10; i++)
			test_arm(&queue, 0, 10 + i, 0, 0);
		for (i = 0; i < 9; i++) {
			assert_int_equal(one(&queue, &record, 30), 1);
			assert_int_equal(queue.timers.heap.nr, 9 - i);
		}
		test_queue_free(&queue);
	}
}

/* A rewound periodic timer comes first until it is acknowledged, late: then its
 * next time does. What else comes first is left alone.
 */
static void settled_after_a_late_ack(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, ACK, 10, test_seed);
	id = test_arm(&queue, 0, 10 * MS, 0, 10).id;
	assert_int_equal(one(&queue, &record, 10 * MS), 1);
	test_rewind(&queue);
	test_settle(&queue);
	assert_true(timers_next_ns(&queue.timers) == 10 * MS);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	test_settle(&queue);
	assert_true(timers_next_ns(&queue.timers) == 20 * MS);

	assert_int_equal(one(&queue, &record, 20 * MS), 1);
	test_rewind(&queue);
	test_arm(&queue, 0, 5 * MS, 0, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	assert_int_equal(timers_settle(&queue.timers, 0), 1);
	assert_true(timers_next_ns(&queue.timers) == 5 * MS);
	test_queue_free(&queue);
}

static void settled_on_the_truth(void **state)
{
	u32 n = 1000, i;
	struct test_queue queue;
	u64 ids[1000];

	(void)state;
	test_queue_init(&queue, 0, n, test_seed);
	test_settle(&queue);
	assert_true(timers_next_ns(&queue.timers) == EXPIRY_NEVER);
	for (i = 0; i < n; i++)
		ids[i] = test_arm(&queue, 0, 100 + i, 0, 0).id;
	for (i = 0; i + 1 < n; i++) {
		assert_true(timers_next_ns(&queue.timers) <= 100 + i);
		if (i % 3)
			test_refresh(&queue, ids[i], 100000 + i, 0);
		else
			test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
		if (i % 10 == 0) {
			test_settle(&queue);
			assert_true(timers_next_ns(&queue.timers) == 101 + i);
		}
	}
	test_settle(&queue);
	assert_true(timers_next_ns(&queue.timers) == 100 + n - 1);
	test_queue_free(&queue);
}

static void lateness(void **state)
{
	static const struct {
		u64 late;
		u32 bucket;
	} cases[] = {
		{ 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 2 }, { 4, 3 }, { 7, 3 },
		{ 8, 4 }, { 1ULL << 37, 38 }, { (1ULL << 38) - 1, 38 },
		{ 1ULL << 38, 39 }, { 1ULL << 39, 39 }, { 1ULL << 45, 39 },
		{ EXPIRY_NEVER - 2, 39 },
	};
	struct expiry_record record;
	struct expiry_stat stat;
	struct test_queue queue;
	u32 i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		test_queue_init(&queue, ACK, 10, test_seed);
		test_arm(&queue, 0, 1, 0, 0);
		assert_int_equal(one(&queue, &record, 1 + cases[i].late), 1);
		test_rewind(&queue);
		assert_int_equal(one(&queue, &record, EXPIRY_NEVER), 1);
		timers_stat(&queue.timers, &stat);
		assert_true(stat.lateness_max_ns == cases[i].late);
		for (j = 0; j < EXPIRY_LATENESS_BUCKETS; j++)
			assert_true(stat.lateness[j] == (j == cases[i].bucket));
		assert_true(stat.delivered == 2 && stat.redelivered == 1);
		test_queue_free(&queue);
	}
}

/* Of timers that were given a deadline which had passed (by ARM, a second ARM or
 * REFRESH), that were due before anybody took them, and others: who is late?
 */
static void lateness_that_is_not_ours(void **state)
{
	static const struct {
		u64 deadline;		/* ARM at 100 */
		u64 refresh;		/* REFRESH at 100, 0 = none */
		u64 taken;		/* since when somebody takes */
		u64 past;
		u64 held;
		u64 late;		/* at 1000 */
	} cases[] = {
		{ 99, 0, 0, 1, 0, 0 },
		{ 100, 0, 0, 0, 0, 900 },
		{ 101, 0, 0, 0, 0, 899 },
		{ 500, 99, 0, 1, 0, 0 },
		{ 500, 100, 0, 0, 0, 900 },
		{ 50, 500, 0, 0, 0, 500 },
		{ 500, 0, 501, 0, 1, 0 },
		{ 500, 0, 500, 0, 0, 500 },
		{ 50, 0, 900, 1, 0, 0 },
	};
	struct expiry_record record;
	struct expiry_stat stat;
	struct test_queue queue;
	u32 i, hold;
	u64 id;

	(void)state;
	for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		hold = i % 2;
		test_queue_init(&queue, 0, 10, test_seed);
		record = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.deadline_ns = cases[i / 2].deadline,
		};
		test_submit(&queue, &record, 100);
		id = record.id;
		if (cases[i / 2].refresh) {
			record = (struct expiry_record) {
				.op = EXPIRY_OP_REFRESH,
				.id = id,
				.deadline_ns = cases[i / 2].refresh,
			};
			test_submit(&queue, &record, 100);
		}
		queue.timers.taken_ns = cases[i / 2].taken;
		assert_int_equal(timers_deliver(&queue.timers, &record, 1, 1000,
						hold), 1);
		if (hold)
			assert_int_equal(timers_release(&queue.timers, &record,
							1), 0);
		memset(&stat, 0, sizeof(stat));
		timers_stat(&queue.timers, &stat);
		assert_true(stat.delivered == 1);
		assert_true(stat.past == cases[i / 2].past);
		assert_true(stat.held == cases[i / 2].held);
		assert_true(stat.lateness_max_ns == cases[i / 2].late);
		assert_true(queue.timers.late_ns == cases[i / 2].late);
		test_queue_free(&queue);
	}
}

/* The latest of a delivery is told, and of that one alone. */
static void lateness_of_one_delivery(void **state)
{
	struct expiry_record records[3];
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	test_arm(&queue, 0, 10, 0, 0);
	test_arm(&queue, 0, 30, 0, 0);
	test_arm(&queue, 0, 50, 0, 0);
	assert_int_equal(timers_deliver(&queue.timers, records, 2, 40, false),
			 2);
	assert_true(queue.timers.late_ns == 30);
	assert_int_equal(timers_deliver(&queue.timers, records, 1, 60, false),
			 1);
	assert_true(queue.timers.late_ns == 10);
	assert_int_equal(timers_deliver(&queue.timers, records, 1, 60, false),
			 0);
	assert_true(queue.timers.late_ns == 0);
	test_queue_free(&queue);
}

/* A periodic timer that was armed in the past is late again once it has caught up
 * with the time.
 */
static void lateness_behind_the_past(void **state)
{
	struct expiry_record records[8], record = {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = 10 * MS,
		.period_ms = 10,
	};
	struct expiry_stat stat;
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	test_submit(&queue, &record, 35 * MS);
	/* Its next time is now, and that has not passed. */
	assert_int_equal(test_deliver(&queue, records, 3, 40 * MS), 3);
	assert_int_equal(test_deliver(&queue, records, 8, 45 * MS), 1);
	memset(&stat, 0, sizeof(stat));
	timers_stat(&queue.timers, &stat);
	assert_true(stat.past == 3 && stat.lateness_max_ns == 5 * MS);
	test_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(in_order_of_deadline),
		test_with_layouts(not_a_nanosecond_early),
		test_with_layouts(never_is_never),
		test_with_layouts(refreshed_and_cancelled),
		test_with_layouts(armed_until_it_is_read),
		test_with_layouts(periodic),
		test_with_layouts(acknowledged),
		test_with_layouts(rewound),
		test_with_layouts(periodic_and_acknowledged),
		test_with_layouts(refreshed_while_unacknowledged),
		test_with_layouts(refreshed_then_settled),
		test_with_layouts(rewound_near_zero),
		test_with_layouts(rewound_in_steps),
		test_with_layouts(rewound_to_the_end),
		test_with_layouts(stale_ones_hold_nothing_up),
		test_with_layouts(delivered_nodes_leave),
		test_with_layouts(settled_after_a_late_ack),
		test_with_layouts(settled_on_the_truth),
		test_with_layouts(lateness),
		test_with_layouts(lateness_that_is_not_ours),
		test_with_layouts(lateness_of_one_delivery),
		test_with_layouts(lateness_behind_the_past),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
