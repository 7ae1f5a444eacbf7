// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A freed slot keeps the node of its last timer, and the next timer in the slot
 * may take it over: never late, in order, and without more nodes.
 */
#include <stdlib.h>

#include "expired.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED
#define FAR	(1000 * SECOND)
#define MS	MILLISECOND

static void cancel(struct test_queue *queue, u64 id)
{
	assert_int_equal(test_op(queue, EXPIRY_OP_CANCEL, id).status, 0);
}

static u64 arm(struct test_queue *queue, u64 deadline_ns)
{
	u64 id = test_arm(queue, 0, deadline_ns, 0, 0).id;

	assert_true(id != 0);
	assert_int_equal(timers_validate(&queue->timers), 0);
	return id;
}

/* Checks that a timer comes at its deadline, and nothing before. */
static void comes_at(struct test_queue *queue, u64 id, u64 deadline_ns)
{
	struct expiry_record record;

	assert_true(timers_next_ns(&queue->timers) <= deadline_ns);
	assert_int_equal(one(queue, &record, deadline_ns - 1), 0);
	assert_int_equal(one(queue, &record, deadline_ns), 1);
	expect(&record, id, deadline_ns, 0, 0);
}

/* Timeouts: each is cancelled and armed anew, for later. No node goes stale, so
 * nothing is swept.
 */
static void no_more_nodes_than_timers(void **state)
{
	u32 mode, i, n = 500, nr;
	struct test_queue queue;
	u64 *ids, random = test_seed;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		test_queue_init(&queue, test_modes[mode], n, test_seed);
		ids = test_arm_many(&queue, n, FAR);
		for (i = 0; i < 5000; i++) {
			nr = test_below(&random, n);
			cancel(&queue, ids[nr]);
			if (test_modes[mode] & KEYED)
				ids[nr] = test_random(&random) | 1;
			ids[nr] = test_arm(&queue, test_modes[mode] & KEYED ?
					   ids[nr] : 0, FAR + SECOND + i, i,
					   0).id;
			assert_int_equal(queue.timers.heap.nr, n);
		}
		assert_int_equal(queue.timers.stat.swept, 0);
		assert_int_equal(timers_validate(&queue.timers), 0);
		test_queue_free(&queue);
		free(ids);
	}
}

/* The same by chance: all come in order, each at its own time. */
static void in_order_of_the_new_deadlines(void **state)
{
	u32 i, n = 700, nr = 0;
	struct expiry_record *records = calloc(n, sizeof(*records));
	u64 *deadline = calloc(n, sizeof(*deadline)), *ids;
	u64 random = test_seed, last = 0;
	struct test_queue queue;

	(void)state;
	assert_non_null(records);
	assert_non_null(deadline);
	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, n, FAR);
	for (i = 0; i < 3 * n; i++) {
		u32 which = i % n;

		cancel(&queue, ids[which]);
		deadline[which] = FAR + i * MS + test_below(&random, SECOND);
		ids[which] = test_arm(&queue, 0, deadline[which], which, 0).id;
		test_queue_evict(&queue, 2);
	}
	nr = test_deliver(&queue, records, n, FAR + 10 * SECOND);
	assert_int_equal(nr, n);
	for (i = 0; i < n; i++) {
		assert_true(records[i].deadline_ns ==
			    deadline[records[i].cookie]);
		assert_true(records[i].deadline_ns >= last);
		last = records[i].deadline_ns;
	}
	test_queue_free(&queue);
	free(records);
	free(deadline);
	free(ids);
}

/* Equal or later deadlines take the node over, an earlier one does not. */
static void an_earlier_timer_gets_a_node(void **state)
{
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	arm(&queue, FAR);
	cancel(&queue, arm(&queue, 100));
	cancel(&queue, arm(&queue, 100));
	id = arm(&queue, 250);
	assert_int_equal(queue.timers.heap.nr, 2);
	comes_at(&queue, id, 250);

	cancel(&queue, arm(&queue, 1000));
	id = arm(&queue, 999);
	assert_int_equal(queue.timers.heap.nr, 3);
	comes_at(&queue, id, 999);

	/* The node of a timer that was refreshed is earlier than the timer. */
	id = arm(&queue, 2000);
	test_refresh(&queue, id, 4000, 0);
	cancel(&queue, id);
	id = arm(&queue, 3000);
	comes_at(&queue, id, 3000);
	id = arm(&queue, 6000);
	test_refresh(&queue, id, 5000, 0);
	cancel(&queue, id);
	id = arm(&queue, 5500);
	comes_at(&queue, id, 5500);
	test_queue_free(&queue);
}

/* The first node is taken over: the next deadline is not later than the new
 * one, and exact after stale nodes were dropped.
 */
static void the_first_node_is_taken_over(void **state)
{
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	arm(&queue, 500);
	cancel(&queue, arm(&queue, 100));
	id = arm(&queue, 300);
	assert_int_equal(queue.timers.heap.nr, 2);
	test_drop_stale(&queue);
	assert_true(timers_next_ns(&queue.timers) == 300);
	comes_at(&queue, id, 300);
	test_queue_free(&queue);
}

/* A node that left the heap cannot be taken over: dropped at the top, expired,
 * cleared.
 */
static void nodes_that_are_gone(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 id;

	(void)state;
	test_queue_init(&queue, 0, 10, test_seed);
	arm(&queue, FAR);
	cancel(&queue, arm(&queue, 100));
	test_drop_stale(&queue);
	assert_int_equal(queue.timers.heap.nr, 1);
	id = arm(&queue, 200);
	assert_int_equal(queue.timers.heap.nr, 2);
	comes_at(&queue, id, 200);

	id = arm(&queue, 300);
	assert_int_equal(queue.timers.heap.nr, 2);
	comes_at(&queue, id, 300);

	cancel(&queue, arm(&queue, 400));
	arm(&queue, FAR);
	test_op(&queue, EXPIRY_OP_CLEAR, 0);
	id = arm(&queue, 500);
	arm(&queue, FAR);
	assert_int_equal(queue.timers.heap.nr, 2);
	comes_at(&queue, id, 500);
	assert_int_equal(one(&queue, &record, FAR - 1), 0);
	test_queue_free(&queue);
}

/* The same where sweeps drop them, with pages that fail meanwhile. */
static void nodes_that_are_swept(void **state)
{
	u32 i, n = 3000 + 4 * BHEAP_NODES_PER_PAGE, left = n / 10;
	struct expiry_record *records = calloc(n, sizeof(*records));
	struct test_queue queue;
	u64 *ids, last = 0;

	(void)state;
	assert_non_null(records);
	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, n, FAR);
	for (i = 0; i < n - left; i++) {
		test_queue_evict(&queue, 3);
		queue.faults.fail_in = i % 7 ? 0 : 1 + i % 5;
		queue.faults.error = -EIO;
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
		queue.faults.fail_in = 0;
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
		if (i % 100 == 0)
			assert_int_equal(timers_validate(&queue.timers), 0);
	}
	assert_true(queue.timers.stat.swept > n / 3);
	for (i = 0; i < n - left; i++)
		ids[i] = test_arm(&queue, 0, FAR + 2 * SECOND - i, i, 0).id;
	assert_int_equal(timers_validate(&queue.timers), 0);
	assert_int_equal(test_deliver(&queue, records, n, FAR + 2 * SECOND), n);
	for (i = 0; i < n; i++) {
		assert_true(records[i].deadline_ns >= last);
		last = records[i].deadline_ns;
	}
	test_queue_free(&queue);
	free(records);
	free(ids);
}

/*
 * A slot may be freed while its node is later than its deadline. Such a node is
 * not taken over, or the next timer would come too late.
 */
static void a_later_node_is_not_kept(void **state)
{
	struct expiry_record record;
	struct test_queue queue;
	u64 id;

	(void)state;
	/* Cancelled between delivery and ACK: its next time was 110 ms. */
	test_queue_init(&queue, ACK, 10, test_seed);
	arm(&queue, FAR);
	id = test_arm(&queue, 0, 100 * MS, 0, 10).id;
	assert_int_equal(one(&queue, &record, 100 * MS), 1);
	cancel(&queue, id);
	assert_int_equal(test_op(&queue, EXPIRY_OP_ACK, id).status, 0);
	id = arm(&queue, 105 * MS);
	comes_at(&queue, id, 105 * MS);
	test_op(&queue, EXPIRY_OP_ACK, id);

	/* To be repeated at 100 ms, and refreshed to 50 ms. */
	id = test_arm(&queue, 0, 100 * MS, 0, 10).id;
	assert_int_equal(one(&queue, &record, 100 * MS), 1);
	test_rewind_at(&queue, 100 * MS);
	test_refresh(&queue, id, 50 * MS, 0);
	cancel(&queue, id);
	id = arm(&queue, 60 * MS);
	comes_at(&queue, id, 60 * MS);
	test_op(&queue, EXPIRY_OP_ACK, id);

	/* Acknowledged when its node has been delivered. */
	id = arm(&queue, 200 * MS);
	comes_at(&queue, id, 200 * MS);
	test_op(&queue, EXPIRY_OP_ACK, id);
	id = arm(&queue, 300 * MS);
	comes_at(&queue, id, 300 * MS);
	test_queue_free(&queue);
}

/* Page number @k fails when a node is to be taken over: nothing has changed.
 * Returns whether that many were needed.
 */
static bool fault(u32 mode, u32 k, int error)
{
	struct expiry_record request = {
		.op = EXPIRY_OP_ARM,
		.id = mode & KEYED ? 99 : 0,
		.deadline_ns = FAR + 2 * SECOND,
	};
	struct expiry_record reply = request;
	struct timers before;
	struct test_queue queue;
	bool failed;
	int status;
	u64 *ids;

	test_queue_init(&queue, mode, 50, test_seed);
	ids = test_arm_many(&queue, 40, FAR);
	cancel(&queue, ids[17]);
	before = queue.timers;
	test_queue_evict_all(&queue);
	queue.faults.fail_in = k;
	queue.faults.error = error;
	status = test_submit(&queue, &reply, 0);
	failed = queue.faults.failed;
	queue.faults.fail_in = 0;
	if (status) {
		assert_int_equal(status, error);
		assert_true(!memcmp(queue.timers.slots.free, before.slots.free,
			     sizeof(before.slots.free)));
		assert_true(queue.timers.slots.used == before.slots.used);
		assert_true(queue.timers.armed == before.armed);
		assert_true(queue.timers.generation == before.generation);
		assert_int_equal(timers_validate(&queue.timers), 0);
		reply = request;
		assert_int_equal(test_submit(&queue, &reply, 0), 0);
	}
	/* The node was there still. */
	assert_int_equal(queue.timers.heap.nr, 40);
	assert_int_equal(timers_validate(&queue.timers), 0);
	test_queue_free(&queue);
	free(ids);
	return failed;
}

static void a_missing_page_changes_nothing(void **state)
{
	static const int errors[] = { -ENOMEM, -EIO, -EAGAIN };
	u32 mode, e, k;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++)
		for (e = 0; e < ARRAY_SIZE(errors); e++) {
			for (k = 1; fault(test_modes[mode], k, errors[e]); k++)
				;
			/* The slot's page, and those of the index. */
			assert_true(k > (test_modes[mode] & KEYED ? 2 : 1));
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(no_more_nodes_than_timers),
		test_with_layouts(in_order_of_the_new_deadlines),
		test_with_layouts(an_earlier_timer_gets_a_node),
		test_with_layouts(the_first_node_is_taken_over),
		test_with_layouts(nodes_that_are_gone),
		test_with_layouts(nodes_that_are_swept),
		test_with_layouts(a_later_node_is_not_kept),
		test_with_layouts(a_missing_page_changes_nothing),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
