// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deliveries in two steps: held until the copy to their reader is made, then
 * released or restored.
 */
#include "expired.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED
#define MS	MILLISECOND

/* Lateness at the time of taking, not of reaching the reader. */
static void lateness_of_what_is_held(void **state)
{
	struct expiry_record record;
	struct test_queue queue;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	test_arm(&queue, 0, 10, 0, 0);
	assert_int_equal(timers_deliver(&queue.timers, &record, 1, 25, true),
			 1);
	assert_int_equal(timers_release(&queue.timers, &record, 1), 0);
	assert_int_equal(queue.timers.stat.lateness_max_ns, 15);
	assert_int_equal(queue.timers.stat.lateness[4], 1);
	test_queue_free(&queue);
}

static void held_and_released(void **state)
{
	struct expiry_record records[2];
	struct test_queue queue;
	u64 a, b;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	a = test_arm(&queue, 0, 10, 0, 0).id;
	b = test_arm(&queue, 0, 20, 0, 0).id;
	assert_int_equal(timers_deliver(&queue.timers, records, 2, 20, true),
			 2);
	assert_true(timers_nr(&queue.timers) == 2);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, a).status, -ENOENT);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, a).status, -EINVAL);
	timers_release(&queue.timers, records, 1);
	assert_true(timers_nr(&queue.timers) == 1);
	assert_int_equal(timers_restore(&queue.timers, records + 1, 1), 0);
	assert_true(queue.timers.armed == 1 && !queue.timers.unacked);
	assert_int_equal(one(&queue, records, 20), 1);
	expect(records, b, 20, 0, 0);		/* as if never delivered */
	assert_true(!timers_nr(&queue.timers));
	test_queue_free(&queue);
}

/* An acknowledging queue keeps read timers; unread ones are not marked. */
static void held_on_an_acknowledging_queue(void **state)
{
	struct expiry_record records[3];
	struct test_queue queue;
	u64 a, b;

	(void)state;
	test_queue_init(&queue, ACK, 10, test_seed);
	a = test_arm(&queue, 0, 10, 0, 0).id;
	b = test_arm(&queue, 0, 20, 0, 0).id;
	assert_int_equal(timers_deliver(&queue.timers, records, 2, 20, true),
			 2);
	assert_int_equal(timers_restore(&queue.timers, records + 1, 1), 0);
	timers_release(&queue.timers, records, 1);
	assert_true(queue.timers.armed == 1 && queue.timers.unacked == 1);
	test_rewind(&queue);
	assert_int_equal(test_deliver(&queue, records, 3, 20), 2);
	expect(&records[0], a, 10, 0, EXPIRY_F_REDELIVERED);
	expect(&records[1], b, 20, 0, 0);

	/* A redelivery that failed is still one. */
	test_rewind(&queue);
	assert_int_equal(timers_deliver(&queue.timers, records, 3, 20, true),
			 2);
	assert_int_equal(timers_restore(&queue.timers, records, 2), 0);
	assert_int_equal(test_deliver(&queue, records, 3, 20), 2);
	expect(&records[0], a, 10, 0, EXPIRY_F_REDELIVERED);
	expect(&records[1], b, 20, 0, EXPIRY_F_REDELIVERED);
	test_queue_free(&queue);
}

/* A periodic timer whose record did not reach the reader is due again from the
 * first of the times that the record counted, with those since then. On an
 * acknowledging queue a redelivery and its next record restore the same.
 */
static void restored_periodic(void **state)
{
	static const u64 now[] = { 10 * MS, 19 * MS, 20 * MS, 45 * MS,
				   10 * MS + 36000000 * 10 * MS };
	struct expiry_record records[5];
	struct test_queue queue;
	u32 reached, acking, first, i, nr;
	u64 id;

	(void)state;
	for (i = 0; i < 4 * ARRAY_SIZE(now); i++) {
		u64 at = now[i / 4];

		acking = i & 1;
		first = acking ? 2 : 1;
		reached = i & 2 ? first : 0;
		test_queue_init(&queue, acking ? ACK : 0, 10, test_seed);
		id = test_arm(&queue, 0, acking ? 0 : 10 * MS, 0, 10).id;
		if (acking) {
			assert_int_equal(one(&queue, records, 0), 1);
			test_rewind(&queue);
		}
		assert_int_equal(timers_deliver(&queue.timers, records, 4, at,
						true), first);
		assert_int_equal(timers_restore(&queue.timers,
						records + reached,
						first - reached), 0);
		assert_int_equal(timers_release(&queue.timers, records,
						reached), 0);
		assert_int_equal(timers_validate(&queue.timers), 0);
		at += 10 * MS;
		nr = test_deliver(&queue, records, 5, at);
		assert_int_equal(nr, reached ? 1 : first);
		if (acking && !reached)
			expect(&records[0], id, 0, 1, EXPIRY_F_REDELIVERED);
		if (reached)
			expect(&records[nr - 1], id, at / (10 * MS) * 10 * MS,
			       1, 0);
		else
			expect(&records[nr - 1], id, 10 * MS, at / (10 * MS),
			       0);
		test_queue_free(&queue);
	}
}

/* During the copy its timers were armed anew or cleared, and others have their
 * slots: restore and release do not change those.
 */
static void overtaken_while_held(void **state)
{
	struct expiry_record records[2], record;
	struct test_queue queue;
	u32 release;

	(void)state;
	for (release = 0; release < 2; release++) {
		test_queue_init(&queue, KEYED, 10, test_seed);
		test_arm(&queue, 1, 10, 0, 0);
		test_arm(&queue, 2, 20, 0, 0);
		assert_int_equal(timers_deliver(&queue.timers, records, 2, 20,
						true), 2);
		test_arm(&queue, 1, 500, 77, 0);
		if (release)
			timers_release(&queue.timers, records, 2);
		else
			timers_restore(&queue.timers, records, 2);
		record = test_op(&queue, EXPIRY_OP_QUERY, 1);
		assert_true(!record.status && record.deadline_ns == 500);
		record = test_op(&queue, EXPIRY_OP_QUERY, 2);
		assert_int_equal(record.status, release ? -ENOENT : 0);
		test_queue_free(&queue);

		test_queue_init(&queue, 0, 10, test_seed);
		test_arm(&queue, 0, 10, 0, 0);
		test_arm(&queue, 0, 20, 0, 0);
		assert_int_equal(timers_deliver(&queue.timers, records, 2, 20,
						true), 2);
		test_op(&queue, EXPIRY_OP_CLEAR, 0);
		test_arm(&queue, 0, 500, 0, 0);
		if (release)
			timers_release(&queue.timers, records, 2);
		else
			timers_restore(&queue.timers, records, 2);
		assert_true(timers_nr(&queue.timers) == 1);
		assert_int_equal(one(&queue, &record, 499), 0);
		assert_int_equal(one(&queue, &record, 500), 1);
		test_queue_free(&queue);
	}
}

/* Restores a delivery to be repeated, for later than the timer was refreshed to
 * meanwhile: the node on top is stale. Returns the timer's id.
 */
static u64 restored_later_than_refreshed(struct test_queue *queue, u64 limit)
{
	struct expiry_record record;
	u64 id;

	test_queue_init(queue, ACK, limit, test_seed);
	id = test_arm(queue, 0, 10 * MS, 0, 10).id;
	assert_int_equal(one(queue, &record, 10 * MS), 1);
	test_rewind(queue);
	assert_int_equal(timers_deliver(&queue->timers, &record, 1, 10 * MS,
					true), 1);
	test_refresh(queue, id, 5 * MS, 0);
	assert_int_equal(timers_restore(&queue->timers, &record, 1), 0);
	return id;
}

/* Both the redelivery and what the timer was refreshed to are delivered. */
static void both_come(struct test_queue *queue, u64 id)
{
	struct expiry_record records[2];

	assert_int_equal(test_deliver(queue, records, 2, 10 * MS), 2);
	expect(&records[0], id, 10 * MS, 1, EXPIRY_F_REDELIVERED);
	expect(&records[1], id, 5 * MS, 1, 0);
}

/* The next deadline is not that of the stale node on top. */
static void the_top_is_live_after_restore(void **state)
{
	struct test_queue queue;
	u64 id;

	(void)state;
	id = restored_later_than_refreshed(&queue, 10);
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == 10 * MS);
	both_come(&queue, id);
	test_queue_free(&queue);
}

/* The same where sweeps go over it: what is later than its timer's deadline is a
 * redelivery, not a stale node.
 */
static void swept_after_restore(void **state)
{
	struct test_queue queue;
	u64 id;
	u32 i;

	(void)state;
	id = restored_later_than_refreshed(&queue, 10000);
	for (i = 0; i < 5000; i++)
		test_op(&queue, EXPIRY_OP_CANCEL,
			test_arm(&queue, 0, 2 * SECOND - i, 0, 0).id);
	assert_true(queue.timers.stat.swept > 0);
	both_come(&queue, id);
	test_queue_free(&queue);
}

/* A refresh while a reader has the timer's expiration is not undone when the
 * reader's copy fails.
 */
static void refreshed_while_held(void **state)
{
	static const u64 now[] = { 10 * MS, 35 * MS };
	struct expiry_record records[4];
	struct test_queue queue;
	u32 i;
	u64 id;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(now); i++) {
		test_queue_init(&queue, 0, 10, test_seed);
		id = test_arm(&queue, 0, 10 * MS, 0, 10).id;
		assert_int_equal(timers_deliver(&queue.timers, records, 3,
						now[i], true), 1);
		test_refresh(&queue, id, 90 * MS, 0);
		assert_int_equal(timers_restore(&queue.timers, records, 1), 0);
		assert_true(queue.timers.unacked == 0);
		assert_int_equal(timers_validate(&queue.timers), 0);
		assert_int_equal(test_deliver(&queue, records, 2, 89 * MS), 0);
		assert_int_equal(one(&queue, records, 90 * MS), 1);
		expect(&records[0], id, 90 * MS, 1, 0);
		test_queue_free(&queue);
	}
}

/* The same where a redelivery was taken, and the record of the times after it, too:
 * the redelivery comes again at once, what the timer was refreshed to at its time, and nothing between.
 */
static void redelivery_refreshed_while_held(void **state)
{
	struct expiry_record records[5];
	struct test_queue queue;
	u64 id;
	int nr;

	(void)state;
	test_queue_init(&queue, ACK, 10, test_seed);
	id = test_arm(&queue, 0, 10 * MS, 0, 10).id;
	assert_int_equal(one(&queue, records, 15 * MS), 1);
	test_rewind_at(&queue, 15 * MS);
	nr = timers_deliver(&queue.timers, records, 5, 45 * MS, true);
	assert_int_equal(nr, 2);
	assert_int_equal(records[0].flags, EXPIRY_F_REDELIVERED);
	test_refresh(&queue, id, 90 * MS, 0);
	assert_int_equal(timers_restore(&queue.timers, records, nr), 0);
	assert_int_equal(timers_validate(&queue.timers), 0);
	assert_int_equal(test_deliver(&queue, records, 5, 89 * MS), 1);
	assert_int_equal(records[0].flags, EXPIRY_F_REDELIVERED);
	assert_int_equal(one(&queue, records, 90 * MS), 1);
	expect(&records[0], id, 90 * MS, 1, 0);
	test_queue_free(&queue);
}

/* A read holds at most TIMERS_HELD_MAX timers, even with more room. Each counts as
 * armed in the past, or as late.
 */
static void not_more_are_held_than_can_be(void **state)
{
	static struct expiry_record records[2 * TIMERS_HELD_MAX];
	u32 count, i, nr = 2 * TIMERS_HELD_MAX;
	struct expiry_record record;
	struct test_queue queue;

	(void)state;
	for (count = TIMERS_HELD_MAX - 1; count <= 2 * TIMERS_HELD_MAX; count++) {
		test_queue_init(&queue, 0, 1000, test_seed);
		for (i = 0; i < nr; i++) {
			record = (struct expiry_record){
				.op = EXPIRY_OP_ARM,
				.deadline_ns = 10 + i,
			};
			assert_int_equal(test_submit(&queue, &record,
						     i % 2 ? 500 : 0), 0);
		}
		i = timers_deliver(&queue.timers, records, count, 1000, true);
		assert_int_equal(i, count < TIMERS_HELD_MAX ? count :
				 TIMERS_HELD_MAX);
		assert_int_equal(timers_release(&queue.timers, records, i), 0);
		assert_int_equal(queue.timers.stat.delivered, i);
		assert_int_equal(queue.timers.stat.past, i / 2);
		test_queue_free(&queue);
	}
}

/* The counts agree whether or not the reader's copy failed. */
static void counts_agree_after_restore(void **state)
{
	struct expiry_record records[4];
	struct expiry_stat stat;
	struct test_queue queue;
	u64 late = 0;
	u32 i;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	for (i = 0; i < 4; i++)
		test_arm(&queue, 0, 10 * MS, 0, i * 10);
	assert_int_equal(timers_deliver(&queue.timers, records, 4, 45 * MS,
					true), 4);
	assert_int_equal(timers_restore(&queue.timers, records, 4), 0);
	timers_stat(&queue.timers, &stat);
	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		late += stat.lateness[i];
	assert_true(stat.delivered - stat.redelivered == late);
	test_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(lateness_of_what_is_held),
		test_with_layouts(held_and_released),
		test_with_layouts(held_on_an_acknowledging_queue),
		test_with_layouts(restored_periodic),
		test_with_layouts(overtaken_while_held),
		test_with_layouts(the_top_is_live_after_restore),
		test_with_layouts(swept_after_restore),
		test_with_layouts(refreshed_while_held),
		test_with_layouts(redelivery_refreshed_while_held),
		test_with_layouts(not_more_are_held_than_can_be),
		test_with_layouts(counts_agree_after_restore),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
