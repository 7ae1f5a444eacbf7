// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bounds: nodes, pages, and the work of a call. */
#include <stdlib.h>

#include "lifecycle.h"
#include "support.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED
#define NODES	BHEAP_NODES_PER_PAGE
#define FAR	(1000 * SECOND)

/* Twice the live nodes and a constant. Radix pages may pass all buckets of the
 * finger meanwhile.
 */
static void nodes_are_bounded(const struct test_queue *queue)
{
	u32 more = test_layout == &bheap_radix ? 2 * BHEAP_RADIX_LEVELS : 0;

	assert_true(queue->timers.heap.nr <=
		    2 * queue->timers.armed + 4 * NODES + more);
}

/* Returns the most pages for @left timers after a sweep. Chains of radix pages may
 * be half empty, and there are free pages and those of a block.
 */
static u32 pages_max(u32 left)
{
	if (test_layout == &bheap_radix)
		return 2 * (2 * left / NODES) + 32 + 4 * BHEAP_RADIX_LEVELS;
	return 2 * left / NODES + 6;
}

static void shuffle(u64 *ids, u32 n)
{
	u64 random = test_seed, id;
	u32 i, j;

	for (i = n - 1; i > 0; i--) {
		j = test_below(&random, i + 1);
		id = ids[i];
		ids[i] = ids[j];
		ids[j] = id;
	}
}

static void cancelled_timers_leave(void **state)
{
	/* Many pages, of any size. */
	u32 mode, i, n = TEST_ROUNDS(30000) + 32 * NODES, left = n / 100, pages;
	struct test_queue queue;
	u64 *ids;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		test_queue_init(&queue, test_modes[mode], n, test_seed);
		ids = test_arm_many(&queue, n, FAR);
		pages = queue.timers.heap.pages->nr;
		if (mode % 2)
			shuffle(ids, n);
		for (i = 0; i < n - left; i++) {
			assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL,
						 ids[i]).status, 0);
			nodes_are_bounded(&queue);
		}
		for (i = 0; queue.timers.heap.sweep; i++) {
			test_op(&queue, EXPIRY_OP_QUERY, ids[n - 1]);
			assert_true(i < left);
		}
		assert_true(queue.timers.heap.pages->nr <= pages_max(left));
		assert_true(queue.timers.heap.pages->nr < pages);
		assert_int_equal(timers_validate(&queue.timers), 0);
		for (i = n - left; i < n; i++)
			test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
		test_queue_trim(&queue);
		assert_int_equal(test_queue_pages(&queue), 0);
		test_queue_free(&queue);
		free(ids);
	}
}

/* Each refresh to earlier leaves a stale node; it must not stay. */
static void refreshes_leave_nothing(void **state)
{
	u32 i, n = 100;
	struct test_queue queue;
	u64 *ids, random = test_seed;

	(void)state;
	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, n, FAR);
	for (i = 0; i < 200000; i++) {
		test_refresh(&queue, ids[test_below(&random, n)],
			     FAR - i, 0);
		nodes_are_bounded(&queue);
	}
	assert_int_equal(timers_validate(&queue.timers), 0);
	test_queue_free(&queue);
	free(ids);
}

/* The same in the biggest batch, on the smallest of queues. */
static void big_batches_leave_nothing(void **state)
{
	u32 n = EXPIRY_BATCH_MAX, limit, i;
	struct expiry_record *batch = calloc(n, sizeof(*batch));
	struct test_queue queue;
	u64 id;

	(void)state;
	assert_non_null(batch);
	for (limit = 1; limit <= 1000; limit *= 1000) {
		test_queue_init(&queue, 0, limit, test_seed);
		id = test_arm(&queue, 0, FAR, 0, 0).id;
		for (i = 0; i < n; i++)
			batch[i] = (struct expiry_record) {
				.op = EXPIRY_OP_REFRESH,
				.id = id,
				.deadline_ns = FAR - 1 - i,
			};
		assert_int_equal(timers_submit(&queue.timers, batch, n, 0), n);
		for (i = 0; i < n; i++)
			assert_int_equal(batch[i].status, 0);
		nodes_are_bounded(&queue);
		test_queue_free(&queue);
	}
	free(batch);
}

/* A sweep begins when three in seven nodes are stale and a page more, neither
 * before nor later.
 */
static void a_sweep_begins_at_three_in_seven(void **state)
{
	u32 n = 7000, stale, cancelled = 0;
	struct test_queue queue;
	const struct bheap *heap;
	u64 *ids;

	(void)state;
	test_queue_init(&queue, 0, n, test_seed);
	heap = &queue.timers.heap;
	ids = test_arm_many(&queue, n, FAR);
	shuffle(ids, n);
	do {
		stale = heap->nr - queue.timers.armed;
		assert_true(cancelled < n);
		test_op(&queue, EXPIRY_OP_CANCEL, ids[cancelled++]);
	} while (!heap->sweep);
	stale++;
	assert_in_range(4 * (stale - NODES), 3 * queue.timers.armed,
			3 * queue.timers.armed + 16);

	/* CLEAR ends it. */
	timers_reset(&queue.timers);
	assert_int_equal(heap->sweep, 0);
	test_queue_free(&queue);
	free(ids);
}

/* Memory is prefetched only for slots that exist. */
static void prefetching_stays_inside(void **state)
{
	static const u32 slots[] = { 0, 1, 2, ~0U };
	struct bheap_node node = { 0 };
	struct test_queue queue;
	size_t i;

	(void)state;
	test_queue_init(&queue, 0, 1, test_seed);
	free(test_arm_many(&queue, 1, FAR));
	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		node.slot = slots[i];
		timer_ahead(&queue.timers, &node, BHEAP_FAR);
		timer_ahead(&queue.timers, &node, BHEAP_SOON);
	}
	assert_int_equal(timers_validate(&queue.timers), 0);
	test_queue_free(&queue);
}

/* A batch has the same bound on nodes for each record as single requests. */
static void a_batch_sweeps_in_proportion(void **state)
{
	u32 i, n = 20000 + 8 * NODES, cancelled = n / 2, nr = 320;
	struct expiry_record *batch = calloc(nr, sizeof(*batch));
	struct test_queue queue;
	u64 *ids, swept;

	(void)state;
	assert_non_null(batch);
	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, n, FAR);
	shuffle(ids, n);
	for (i = 0; i < cancelled; i++)
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
	for (i = 0; i < nr; i++)
		batch[i] = (struct expiry_record) {
			.op = EXPIRY_OP_QUERY,
			.id = ids[n - 1],
		};
	assert_true(queue.timers.heap.sweep > 0);
	swept = queue.timers.stat.swept;
	assert_int_equal(timers_submit(&queue.timers, batch, nr, 0), nr);
	swept = queue.timers.stat.swept - swept;
	assert_in_range(swept, nr / 4, 8 * nr + 2 * NODES);
	test_queue_free(&queue);
	free(batch);
	free(ids);
}

/* Cancelled timers far from the top leave though only due timers are requested.
 */
static void deliveries_sweep_too(void **state)
{
	u32 i, n = 10000, far = 3000, due = n - far - 100;
	struct expiry_record *records = calloc(n, sizeof(*records));
	struct test_queue queue;
	u64 *ids;

	(void)state;
	assert_non_null(records);
	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, far, 2 * FAR);
	free(test_arm_many(&queue, 100, FAR));
	free(test_arm_many(&queue, due, 0));
	for (i = 0; i < far; i++)
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
	assert_true(queue.timers.heap.nr > 100 + due + far / 2);
	for (i = 0; i < due; i += 100)
		assert_int_equal(test_deliver(&queue, records, 100, SECOND),
				 100);
	assert_true(queue.timers.armed == 100);
	nodes_are_bounded(&queue);
	test_queue_free(&queue);
	free(records);
	free(ids);
}

/* Arms and cancels for ever: slots, nodes and entries are reused. Half of the
 * new deadlines are later than all before, half are earlier.
 */
static void churn_uses_no_more_pages(void **state)
{
	u32 mode, i, n = 500, pages, slot, more;
	struct test_queue queue;
	u64 *ids, random = test_seed, due;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		test_queue_init(&queue, test_modes[mode], n, test_seed);
		ids = test_arm_many(&queue, n, FAR);
		pages = 0;
		for (i = 0; i < 100000; i++) {
			slot = test_below(&random, n);
			test_op(&queue, EXPIRY_OP_CANCEL, ids[slot]);
			if (test_modes[mode] & KEYED)
				ids[slot] = test_random(&random) | 1;
			due = i / 1000 % 2 ? FAR + i : FAR - i;
			ids[slot] = test_arm(&queue, test_modes[mode] & KEYED ?
					     ids[slot] : 0, due, 0, 0).id;
			assert_true(ids[slot] != 0);
			nodes_are_bounded(&queue);
			if (i == 50000)
				pages = test_queue_pages(&queue);
		}
		/* Radix pages: how many buckets have a page that is not full,
		 * and how many pages are free, differs from moment to moment.
		 */
		more = test_layout == &bheap_radix ? pages / 20 : 0;
		assert_true(test_queue_pages(&queue) <= pages + more + 4);
		test_queue_free(&queue);
		free(ids);
	}
}

/* Any queue filled to its limit: the runs have room for it. */
static void room_for_the_limit(void **state)
{
	static const u32 limits[] = { 1, 2, 3, 7, 8, 9, 127, 128, 129, 1000,
				      3071, 3072, 3073, 20000 };
	struct test_queue queue;
	u32 mode, l, i;
	u64 *ids;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		for (l = 0; l < ARRAY_SIZE(limits); l++) {
			test_queue_init(&queue, test_modes[mode], limits[l],
					test_seed);
			ids = test_arm_many(&queue, limits[l], FAR);
			assert_int_equal(test_arm(&queue, test_modes[mode] & KEYED ?
						  ~0U : 0, 1, 0, 0).status,
					 -ENOSPC);
			for (i = 0; i < limits[l]; i++)
				assert_int_equal(test_refresh(&queue, ids[i],
							      FAR - i,
							      0).status, 0);
			assert_int_equal(timers_validate(&queue.timers), 0);
			test_queue_free(&queue);
			free(ids);
		}
	}
}

static void drained_queues_have_no_pages(void **state)
{
	u32 mode, i, n = 2000;
	struct expiry_record *records = calloc(n, sizeof(*records));
	struct test_queue queue;

	(void)state;
	assert_non_null(records);
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		test_queue_init(&queue, test_modes[mode], n, test_seed);
		free(test_arm_many(&queue, n, FAR));
		assert_int_equal(test_deliver(&queue, records, n, 2 * FAR), n);
		if (test_modes[mode] & ACK)
			for (i = 0; i < n; i++)
				assert_int_equal(test_op(&queue, EXPIRY_OP_ACK,
							 records[i].id).status,
						 0);
		test_queue_trim(&queue);
		assert_int_equal(test_queue_pages(&queue), 0);
		test_queue_free(&queue);
	}
	free(records);
}

/* A call checks a bounded number of nodes, however many cancelled ones precede
 * the first live one, and skips none.
 */
static void work_behind_cancelled_timers(void **state)
{
	/* More than the calls below can pass. */
	u32 i, n = 20000 + 60 * NODES, before, calls, most, page = 0;
	struct expiry_record record;
	struct test_queue queue;
	u64 *ids, last;
	int ret;

	(void)state;
	test_queue_init(&queue, 0, 2 * n, test_seed);
	ids = test_arm_many(&queue, n, 0);
	last = test_arm(&queue, 0, FAR, 7, 0).id;
	/* As many live nodes follow, so that no sweep begins. */
	free(test_arm_many(&queue, n - 1, 2 * FAR));
	for (i = 0; i < n / 2; i++)
		test_refresh(&queue, ids[i], 3 * FAR, 0);
	for (; i < n; i++)
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);

	/* A node a step; radix pages drop up to a page in one. */
	most = 200;
	if (test_layout == &bheap_radix) {
		page = NODES;
		most += NODES;
	}
	assert_true(timers_next_ns(&queue.timers) < SECOND);
	for (calls = 0; calls < 50; calls++) {
		before = queue.timers.heap.nr;
		assert_int_equal(timers_drop_stale(&queue.timers, 10), 0);
		assert_true(before - queue.timers.heap.nr <= 10 + page);
	}
	for (calls = 0; timers_due(&queue.timers, FAR); calls++) {
		before = queue.timers.heap.nr;
		ret = timers_deliver(&queue.timers, &record, 1, FAR, false);
		assert_in_range(ret, 0, 1);
		assert_true(before - queue.timers.heap.nr <= most);
		if (ret)
			assert_true(record.id == last);
	}
	assert_in_range(calls, 50, n);
	assert_int_equal(test_op(&queue, EXPIRY_OP_CANCEL, last).status,
			 -ENOENT);
	test_queue_free(&queue);
	free(ids);
}

/* Returns the pages that one request touches in a big queue, the sweep's steps
 * included.
 */
static void pages_touched_by_a_request(void **state)
{
	static const u8 ops[] = {
		EXPIRY_OP_ARM, EXPIRY_OP_REFRESH, EXPIRY_OP_QUERY,
		EXPIRY_OP_CANCEL,
	};
	u32 mode, n = TEST_ROUNDS(60000), i;
	struct expiry_record record;
	struct test_queue queue;
	u64 *ids, random = test_seed, before;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		test_queue_init(&queue, test_modes[mode], 2 * n, test_seed);
		ids = test_arm_many(&queue, n, FAR);
		for (i = 0; i < 60; i++) {
			record = (struct expiry_record) {
				.op = ops[i % 4],
				.id = ids[i / 4],
				.deadline_ns = test_below(&random, FAR),
			};
			if (record.op == EXPIRY_OP_ARM)
				record.id = test_modes[mode] & KEYED ? ~(u64)i : 0;
			test_queue_evict_all(&queue);
			before = queue.faults.ins;
			assert_int_equal(test_submit(&queue, &record, 0), 0);
			assert_in_range(queue.faults.ins - before, 1,
					test_layout == &bheap_radix ? 64 : 32);
		}
		test_queue_free(&queue);
		free(ids);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(cancelled_timers_leave),
		test_with_layouts(refreshes_leave_nothing),
		test_with_layouts(big_batches_leave_nothing),
		test_with_layouts(a_sweep_begins_at_three_in_seven),
		test_with_layouts(prefetching_stays_inside),
		test_with_layouts(a_batch_sweeps_in_proportion),
		test_with_layouts(deliveries_sweep_too),
		test_with_layouts(churn_uses_no_more_pages),
		test_with_layouts(room_for_the_limit),
		test_with_layouts(drained_queues_have_no_pages),
		test_with_layouts(work_behind_cancelled_timers),
		test_with_layouts(pages_touched_by_a_request),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
