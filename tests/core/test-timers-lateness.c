// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lateness: which deliveries count, and by how much.
 */
#include "expired.h"

#define ACK	EXPIRY_MODE_ACK
#define MS	MILLISECOND

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

/* Timers with deadlines that had passed when set (by ARM, a second ARM or
 * REFRESH), timers due before the first consumer, and others: which are late?
 */
static void lateness_that_is_not_ours(void **state)
{
	static const struct {
		u64 deadline;		/* ARM at 100 */
		u64 refresh;		/* REFRESH at 100, 0 = none */
		u64 taken;		/* since when a consumer takes */
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

/* The latest of a delivery is reported, for that delivery alone. */
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

/* The latest of a call may be behind one that does not count. */
static void lateness_behind_one_of_the_past(void **state)
{
	const u32 n = 8 * BHEAP_NODES_PER_PAGE;
	const u64 past = 100 + 10 * (n / 2) + 5, now = 100 + 20 * n;
	struct expiry_record record, records[3];
	struct test_queue queue;
	u32 i;
	int ret;

	(void)state;
	test_queue_init(&queue, 0, n + 1, test_seed);
	for (i = 0; i < n; i++)
		test_arm(&queue, 0, 100 + 10 * i, 0, 0);
	record = (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = past,
	};
	assert_int_equal(test_submit(&queue, &record, now), 0);
	/* One by one, until it is the next. */
	for (i = 0; i <= n / 2; i++)
		assert_int_equal(one(&queue, &record, now), 1);
	do {
		ret = timers_deliver(&queue.timers, records, 3, now, false);
	} while (!ret);
	assert_int_equal(ret, 3);
	assert_true(records[0].deadline_ns == past);
	assert_true(queue.timers.late_ns == now - records[1].deadline_ns);
	test_queue_free(&queue);
}

/* A periodic timer that was armed in the past is late again once it has caught
 * up.
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
	/* The times that had passed are one record; the next one has not. */
	assert_int_equal(test_deliver(&queue, records, 3, 36 * MS), 1);
	assert_int_equal(test_deliver(&queue, records, 8, 45 * MS), 1);
	memset(&stat, 0, sizeof(stat));
	timers_stat(&queue.timers, &stat);
	assert_true(stat.past == 1 && stat.lateness_max_ns == 5 * MS);
	test_queue_free(&queue);
}

/* A periodic timer's delivery is to be repeated, and the timer refreshed into the past
 * meanwhile. A late ACK ends the delivery, or it is repeated: the next time still counts
 * as past.
 */
static void lateness_behind_a_repeated_delivery(void **state)
{
	struct expiry_record record, refresh;
	struct expiry_stat stat;
	struct test_queue queue;
	u32 repeated;

	(void)state;
	for (repeated = 0; repeated < 2; repeated++) {
		test_queue_init(&queue, ACK, 10, test_seed);
		refresh = (struct expiry_record) {
			.op = EXPIRY_OP_REFRESH,
			.id = test_arm(&queue, 0, 10 * MS, 0, 10).id,
			.deadline_ns = 15 * MS,
		};
		assert_int_equal(one(&queue, &record, 10 * MS), 1);
		test_rewind(&queue);
		assert_int_equal(test_submit(&queue, &refresh, 18 * MS), 0);
		if (repeated) {
			assert_int_equal(one(&queue, &record, 19 * MS), 1);
			assert_int_equal(record.flags, EXPIRY_F_REDELIVERED);
		} else {
			assert_int_equal(test_op(&queue, EXPIRY_OP_ACK,
						 refresh.id).status, 0);
		}
		assert_int_equal(one(&queue, &record, 19 * MS), 1);
		assert_true(record.deadline_ns == 15 * MS && !record.flags);
		memset(&stat, 0, sizeof(stat));
		timers_stat(&queue.timers, &stat);
		assert_true(stat.delivered == 2 + repeated);
		assert_true(stat.redelivered == repeated);
		assert_true(stat.past == 1 && stat.lateness_max_ns == 0);
		test_queue_free(&queue);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(lateness),
		test_with_layouts(lateness_that_is_not_ours),
		test_with_layouts(lateness_of_one_delivery),
		test_with_layouts(lateness_behind_one_of_the_past),
		test_with_layouts(lateness_behind_the_past),
		test_with_layouts(lateness_behind_a_repeated_delivery),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
