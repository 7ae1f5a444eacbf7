// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deliveries: when, in which order, how often.
 */
#include <stdlib.h>

#include "expired.h"

#define ACK	EXPIRY_MODE_ACK
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

/* Until it is read it can be cancelled, afterwards not. */
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

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	id = test_arm(&queue, 0, 10 * MS, 1, 10).id;
	assert_int_equal(one(&queue, &record, 15 * MS), 1);
	expect(&record, id, 10 * MS, 1, 0);
	assert_int_equal(one(&queue, &record, 20 * MS - 1), 0);
	assert_true(timers_next_ns(&queue.timers) == 20 * MS);

	/* A late reader gets one record that counts them. */
	assert_int_equal(test_deliver(&queue, records, 5, 55 * MS), 1);
	expect(&records[0], id, 20 * MS, 4, 0);
	assert_true(timers_next_ns(&queue.timers) == 60 * MS);

	/* A refresh moves it and keeps the period. */
	test_refresh(&queue, id, 61 * MS, 0);
	assert_int_equal(test_deliver(&queue, records, 5, 71 * MS), 1);
	expect(&records[0], id, 61 * MS, 2, 0);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, id).status, 0);
	assert_true(!timers_nr(&queue.timers));

	/* At the end of time there is no next. */
	id = test_arm(&queue, 0, EXPIRY_NEVER - 5, 1, ~0U).id;
	assert_int_equal(one(&queue, &record, EXPIRY_NEVER - 1), 1);
	expect(&record, id, EXPIRY_NEVER - 5, 1, 0);
	assert_int_equal(one(&queue, &record, EXPIRY_NEVER), 0);
	record = test_op(&queue, EXPIRY_OP_QUERY, id);
	assert_true(!record.status && record.deadline_ns == EXPIRY_NEVER);
	test_queue_free(&queue);
}

/* However many times a periodic timer missed, they are one record that counts
 * them, and its next time is the first that has not come: for each period,
 * number of periods missed, and time since the last of them.
 */
static void missed_times_are_counted(void **state)
{
	static const u32 periods[] = { 1, 10, 3600000, ~0U };
	static const u64 missed[] = { 0, 1, 2, 36000000, 0xfffffffeULL,
				      0xffffffffULL, 0x100000000ULL };
	struct expiry_record records[4];
	struct test_queue queue;
	u32 i, since, count;
	u64 id;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(periods) * ARRAY_SIZE(missed) * 3; i++) {
		u64 period = periods[i % ARRAY_SIZE(periods)] * MS;
		u64 times = missed[i / 3 % ARRAY_SIZE(missed)];
		u64 rest[] = { 0, 1, period - 1 }, now, next;

		since = i % 3;
		if (times > (EXPIRY_NEVER - 7) / period)
			times = (EXPIRY_NEVER - 7) / period - 1;
		count = times < 0xffffffff ? times + 1 : 0xffffffff;
		now = 7 + times * period + rest[since];
		next = now - rest[since] > EXPIRY_NEVER - period ?
		       EXPIRY_NEVER : now - rest[since] + period;

		test_queue_init(&queue, i & 1 ? ACK : 0, 10, test_seed);
		id = test_arm(&queue, 0, 7, 1, period / MS).id;
		assert_int_equal(test_deliver(&queue, records, 4, now), 1);
		expect(&records[0], id, 7, count, 0);
		assert_int_equal(one(&queue, &records[0], next - 1), 0);
		assert_true(timers_next_ns(&queue.timers) == next);
		if (i & 1) {
			/* Only the last of them is repeated. */
			test_rewind_at(&queue, now);
			assert_int_equal(one(&queue, &records[0], now), 1);
			expect(&records[0], id, now - rest[since], 1,
			       EXPIRY_F_REDELIVERED);
		}
		test_queue_free(&queue);
	}
}

/* One call skips a few stale nodes, too few for a sweep, and remembers the
 * result.
 */
static void stale_ones_hold_nothing_up(void **state)
{
	struct expiry_record records[4];
	struct test_queue queue;
	u64 id[8];
	u32 i;

	(void)state;
	test_queue_init(&queue, ACK, 8, test_seed);
	arm_in_turn(&queue, id, 8, 10);
	for (i = 0; i < 8; i++)
		if (i % 2)
			test_op(&queue, EXPIRY_OP_CANCEL, id[i]);
	assert_int_equal(timers_deliver(&queue.timers, records, 1, 30, false),
			 1);
	/* In radix pages of 64 bytes eight timers are more than near. */
	if (test_layout == &bheap_radix)
		test_drop_stale(&queue);
	else
		assert_int_equal(timers_drop_stale(&queue.timers, 2), 1);
	assert_true(timers_next_ns(&queue.timers) == 12);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	assert_int_equal(timers_deliver(&queue.timers, records, 4, 30, false),
			 3);
	for (i = 0; i < 3; i++)
		expect(&records[i], id[2 + 2 * i], 12 + 2 * i, 0, 0);
	test_drop_stale(&queue);

	/* An empty queue needs no check. */
	test_arm(&queue, 0, 40, 0, 0);
	assert_int_equal(timers_deliver(&queue.timers, records, 1, 40, false),
			 1);
	assert_int_equal(timers_drop_stale(&queue.timers, 0), 1);
	test_queue_free(&queue);
}

/* A timer's last delivery leaves no node. */
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

static void the_top_is_the_truth(void **state)
{
	u32 n = 1000, i;
	struct test_queue queue;
	u64 ids[1000];

	(void)state;
	test_queue_init(&queue, 0, n, test_seed);
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == EXPIRY_NEVER);
	arm_in_turn(&queue, ids, n, 100);
	for (i = 0; i + 1 < n; i++) {
		assert_true(timers_next_ns(&queue.timers) <= 100 + i);
		if (i % 3)
			test_refresh(&queue, ids[i], 100000 + i, 0);
		else
			test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
		if (i % 10 == 0) {
			test_drop_stale(&queue);
			assert_true(timers_next_ns(&queue.timers) == 101 + i);
		}
	}
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == 100 + n - 1);
	test_queue_free(&queue);
}

/* Arms @n timers, due within a second in no order, and takes all that are left when
 * every @step-th was cancelled. Returns how many these were. Sets *@leastp to the
 * fewest live nodes in sequence.
 */
static u32 arm_cancel_and_take(struct test_queue *queue, u32 n, u32 step,
			       u64 from, u32 *leastp)
{
	struct expiry_record expired;
	u64 random = test_seed;
	u32 i, taken = 0;

	for (i = 0; i < n; i++) {
		u64 id = test_arm(queue, 0, from + test_below(&random, SECOND),
				  i, 0).id;

		if (step && i % step == 0)
			test_op(queue, EXPIRY_OP_CANCEL, id);
	}
	*leastp = ~0U;
	while (test_deliver(queue, &expired, 1, from + SECOND)) {
		if (queue->timers.found_live < *leastp)
			*leastp = queue->timers.found_live;
		taken++;
	}
	return taken;
}

/* Radix pages look at timers early only while some of late were cancelled. */
static void review_pauses_and_resumes(void **state)
{
	u32 n = 8 * BHEAP_NODES_PER_PAGE + 500, live, least;
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, 0, 2 * n, test_seed);
	assert_int_equal(arm_cancel_and_take(&queue, n, 0, SECOND, &least), n);
	live = queue.timers.found_live;
	assert_true(least < live && live < n);
	/* No more are looked at: the number stays. */
	assert_int_equal(arm_cancel_and_take(&queue, n, 0, 3 * SECOND, &least),
			 n);
	assert_int_equal(least, live);
	/* A stale node at the top: they are looked at again. */
	assert_int_equal(arm_cancel_and_take(&queue, n, 50, 5 * SECOND, &least),
			 n - (n + 49) / 50);
	assert_true(least < live);
	test_queue_free(&queue);
}

/* A stale node in the middle of a batch begins the count of live ones anew. */
static void live_ones_count_from_the_last_stale_one(void **state)
{
	u32 n = 2 * BHEAP_NODES_PER_PAGE + 88;
	struct expiry_record records[40];
	struct test_queue queue;
	u64 *ids = calloc(n, sizeof(*ids));

	(void)state;
	assert_non_null(ids);
	test_queue_init(&queue, 0, n, test_seed);
	arm_in_turn(&queue, ids, n, SECOND);
	assert_int_equal(test_deliver(&queue, records, 40, 2 * SECOND), 40);
	assert_true(queue.timers.found_live > 15);
	test_op(&queue, EXPIRY_OP_CANCEL, ids[55]);
	/* Fifteen come before it, and five behind it. */
	assert_int_equal(test_deliver(&queue, records, 20, 2 * SECOND), 20);
	assert_true(records[14].id == ids[54] && records[15].id == ids[56]);
	/* Small radix pages are looked at meanwhile, and those looks count, too. */
	if (test_layout != &bheap_radix || BHEAP_NODES_PER_PAGE >= 64)
		assert_int_equal(queue.timers.found_live, 5);
	test_queue_free(&queue);
	free(ids);
}

/* A page of nodes whose turn comes loses its stale ones at once. */
static void a_review_drops_many(void **state)
{
	u32 n = 8 * BHEAP_NODES_PER_PAGE, nodes, most = 0, i;
	struct expiry_record expired;
	struct test_queue queue;
	u64 *ids;

	(void)state;
	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, n, SECOND);
	for (i = 0; i < n; i += 3)
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
	for (;;) {
		nodes = queue.timers.heap.nr;
		if (!test_deliver(&queue, &expired, 1, EXPIRY_NEVER - 1))
			break;
		/* With the last timer, all go. */
		if (queue.timers.heap.nr && nodes - queue.timers.heap.nr > most)
			most = nodes - queue.timers.heap.nr;
	}
	assert_int_equal(queue.timers.stat.swept, 0);
	assert_true(most > BHEAP_NODES_PER_PAGE / 8 + 2);
	test_queue_free(&queue);
	free(ids);
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
		test_with_layouts(missed_times_are_counted),
		test_with_layouts(stale_ones_hold_nothing_up),
		test_with_layouts(delivered_nodes_leave),
		test_with_layouts(the_top_is_the_truth),
		test_with_layouts(live_ones_count_from_the_last_stale_one),
		test_with_layout(review_pauses_and_resumes, radix),
		test_with_layout(a_review_drops_many, radix),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
