// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages that are not available: the effects on a call, and on the queue. */
#include <stdlib.h>

#include "support.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED
#define FAR	(1000 * SECOND)

/* Any missing page is reported to the caller, which may call again. */
static void faults_in_drop_stale(void **state)
{
	struct test_queue queue;
	u32 k, failed = 1, steps = 10;
	u64 *ids;
	int ret;

	(void)state;
	/* Pages smaller than the queue have timers in chains, which radix pages
	 * spread a page a step, a level at a time, on the way to the first.
	 */
	if (test_layout == &bheap_radix && BHEAP_NODES_PER_PAGE < 60)
		steps = 4 * 60;
	for (k = 1; failed; k++) {
		test_queue_init(&queue, 0, 60, test_seed);
		ids = test_arm_many(&queue, 60, FAR);
		test_drop_stale(&queue);
		test_refresh(&queue, ids[queue.timers.heap.first.slot - 1],
			     2 * FAR, 0);
		test_queue_evict_all(&queue);
		queue.faults.fail_in = k;
		queue.faults.for_good = true;
		queue.faults.error = -EIO;
		ret = timers_drop_stale(&queue.timers, steps);
		failed = queue.faults.failed;
		assert_int_equal(ret, failed ? -EIO : 1);
		queue.faults.fail_in = 0;
		assert_int_equal(timers_drop_stale(&queue.timers, steps), 1);
		test_queue_free(&queue);
		free(ids);
	}
	assert_true(k > 2);
}

/* A comparable state: the queue's contents, row by row. */
struct picture {
	struct expiry_record rows[64];
	u32 nr;
	u64 armed, unacked;
};

static struct picture picture_of(struct test_queue *queue)
{
	struct picture picture;

	memset(&picture, 0, sizeof(picture));
	picture.nr = test_list(queue, picture.rows, ARRAY_SIZE(picture.rows));
	picture.armed = queue->timers.armed;
	picture.unacked = queue->timers.unacked;
	return picture;
}

/*
 * Makes a queue of forty timers, almost each with pages of its own, out of
 * memory. The page_in number @k fails, alone or with all after it. Returns
 * whether that many were needed.
 */
static bool fault(u32 mode, struct expiry_record request, u32 k, bool for_good,
		  int error)
{
	struct expiry_record reply, expired[8];
	struct picture before, after;
	struct test_queue queue;
	u64 *ids;
	int status;
	bool failed;

	test_queue_init(&queue, mode, 50, test_seed);
	ids = test_arm_many(&queue, 40, FAR);
	test_deliver(&queue, expired, 8, FAR + SECOND);
	if (request.id == 1)
		request.id = ids[39];
	else if (request.id == 2)
		request.id = mode & ACK ? expired[3].id : ids[1];
	before = picture_of(&queue);

	test_queue_evict_all(&queue);
	queue.faults.fail_in = k;
	queue.faults.for_good = for_good;
	queue.faults.error = error;
	reply = request;
	status = test_submit(&queue, &reply, 0);
	failed = queue.faults.failed;
	queue.faults.fail_in = 0;
	queue.faults.for_good = false;

	assert_true(failed || !status);
	if (status) {
		assert_int_equal(status, error);
		after = picture_of(&queue);
		assert_memory_equal(&before, &after, sizeof(after));
		reply.status = 0;
		assert_memory_equal(&request, &reply, sizeof(reply));
		assert_int_equal(timers_validate(&queue.timers), 0);
		assert_int_equal(test_submit(&queue, &reply, 0), 0);
	}
	assert_int_equal(timers_validate(&queue.timers), 0);
	test_queue_free(&queue);
	free(ids);
	return failed;
}

static void faults_change_nothing(void **state)
{
	static const int errors[] = { -ENOMEM, -EIO, -EAGAIN };
	static const struct {
		u32 mode;
		struct expiry_record request;	/* id 1 armed, 2 unacked */
	} cases[] = {
		{ 0, { .op = EXPIRY_OP_ARM, .deadline_ns = 1 } },
		{ 0, { .op = EXPIRY_OP_ARM, .deadline_ns = 2 * FAR } },
		{ 0, { .op = EXPIRY_OP_REFRESH, .id = 1, .deadline_ns = 1 } },
		{ 0, { .op = EXPIRY_OP_REFRESH, .id = 1,
		       .deadline_ns = 2 * FAR } },
		{ 0, { .op = EXPIRY_OP_CANCEL, .id = 1 } },
		{ 0, { .op = EXPIRY_OP_QUERY, .id = 1 } },
		{ ACK, { .op = EXPIRY_OP_ACK, .id = 2 } },
		{ KEYED, { .op = EXPIRY_OP_ARM, .id = 99, .deadline_ns = 1 } },
		{ KEYED, { .op = EXPIRY_OP_ARM, .id = 1, .deadline_ns = 1 } },
		{ KEYED, { .op = EXPIRY_OP_CANCEL, .id = 1 } },
		{ KEYED | ACK, { .op = EXPIRY_OP_ACK, .id = 2 } },
		{ KEYED | ACK, { .op = EXPIRY_OP_ARM, .id = 2,
				 .deadline_ns = 1 } },
	};
	u32 i, e, k, failures = 0;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (e = 0; e < 2 * ARRAY_SIZE(errors); e++) {
			k = 1;
			while (fault(cases[i].mode, cases[i].request, k,
				     e % 2, errors[e / 2]))
				k++;
			assert_true(k > 1);
			failures += k - 1;
		}
	}
	assert_true(failures > 100);
}

/* A delivery that fails has delivered exactly the records that it returns. */
static void faults_in_deliveries(void **state)
{
	struct expiry_record records[40];
	u32 mode, k, hold, nr, failures = 0;
	struct test_queue queue;
	int ret;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++)
		for (hold = 0; hold < 2; hold++)
			for (k = 2; k < 80; k++) {
				test_queue_init(&queue, test_modes[mode], 40,
						test_seed);
				free(test_arm_many(&queue, 40, 0));
				test_queue_evict_all(&queue);
				queue.faults.fail_in = k / 2;
				queue.faults.for_good = k % 2;
				queue.faults.error = -EIO;
				ret = timers_deliver(&queue.timers, records, 40,
						     SECOND, hold);
				failures += !!queue.faults.failed;
				queue.faults.fail_in = 0;
				nr = ret < 0 ? 0 : ret;
				assert_true(ret >= 0 || ret == -EIO);
				/* It says why, where that lasts. */
				if (queue.faults.failed && k % 2)
					assert_int_not_equal(ret, 0);
				assert_int_equal(queue.timers.armed, 40 - nr);
				assert_int_equal(timers_validate(&queue.timers),
						 0);
				nr += test_deliver(&queue, records, 40 - nr,
						   SECOND);
				assert_int_equal(nr, 40);
				test_queue_free(&queue);
			}
	assert_true(failures > 4);
}

/* Timers that reached their reader are released though a page was missing at
 * first.
 */
static void faults_in_release(void **state)
{
	struct expiry_record records[20];
	struct test_queue queue;
	u32 mode, k;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		for (k = 1; k < 8; k++) {
			test_queue_init(&queue, test_modes[mode], 20, test_seed);
			free(test_arm_many(&queue, 20, 0));
			assert_int_equal(timers_deliver(&queue.timers, records,
							20, SECOND, true), 20);
			test_queue_evict_all(&queue);
			queue.faults.fail_in = k;
			queue.faults.error = -ENOMEM;
			timers_release(&queue.timers, records, 20);
			queue.faults.fail_in = 0;
			assert_int_equal(timers_release(&queue.timers, records,
							20), 0);
			assert_true(!timers_nr(&queue.timers));
			test_queue_free(&queue);
		}
	}
}

/* A release that follows its delivery needs no page that is not there. The module
 * relies on it: it cannot retry.
 */
static void release_needs_no_page(void **state)
{
	struct expiry_record records[32];
	struct test_queue queue;
	u64 random = test_seed;
	u32 mode, round, i, nr, held;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		for (round = 0; round < TEST_ROUNDS(200); round++) {
			nr = 1 + test_below(&random, 600);
			test_queue_init(&queue, mode ? KEYED : 0, nr,
					test_random(&random));
			for (i = 1; i <= nr; i++)
				test_arm(&queue, mode ? i : 0,
					 test_below(&random, 2 * SECOND), 0,
					 test_one_in(&random, 4) ? 700 : 0);
			test_queue_evict_all(&queue);
			held = timers_deliver(&queue.timers, records,
					      1 + test_below(&random, 32),
					      SECOND, true);
			queue.faults.fail_in = 1;
			queue.faults.for_good = true;
			queue.faults.error = -ENOMEM;
			assert_int_equal(timers_release(&queue.timers, records,
							held), 0);
			assert_int_equal(queue.timers.unacked, 0);
			queue.faults.fail_in = 0;
			assert_int_equal(timers_validate(&queue.timers), 0);
			test_queue_free(&queue);
		}
	}
}

/* Where there is no memory for another page, a sweep still removes the nodes of
 * cancelled timers: it has its pages already.
 */
static void sweeps_need_no_new_page(void **state)
{
	u32 nr = 16 * BHEAP_NODES_PER_PAGE, i;
	struct test_queue queue;
	u64 *ids;

	(void)state;
	test_queue_init(&queue, 0, nr, test_seed);
	ids = test_arm_many(&queue, nr, 1000);
	queue.faults.fail_in = 1;
	queue.faults.for_good = true;
	queue.faults.error = -ENOMEM;
	for (i = 0; i < nr * 3 / 4; i++)
		assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL,
					 ids[i]).status, 0);
	assert_true(queue.timers.heap.nr <= nr / 2);
	queue.faults.fail_in = 0;
	assert_int_equal(timers_validate(&queue.timers), 0);
	free(ids);
	test_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(faults_change_nothing),
		test_with_layouts(faults_in_deliveries),
		test_with_layouts(faults_in_drop_stale),
		test_with_layouts(faults_in_release),
		test_with_layouts(release_needs_no_page),
		test_with_layouts(sweeps_need_no_new_page),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
