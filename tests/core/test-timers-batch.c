// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deliveries of many timers at once, against the naive twin. Timers that are
 * cancelled, moved, periodic, armed anew, and on pages that are out of memory lie
 * between the others. Any page may fail to return.
 */
#include <stdlib.h>

#include "horrible.h"
#include "support.h"

#define SPAN		SECOND
#define DELIVER_MAX	100U

/* More than a heap keeps in no order. */
#define PAGES		(CORE_PAGE_SIZE > 4096 ? 1 : 5)
#define TIMERS		(PAGES * BHEAP_NODES_PER_PAGE + 400)

/**
 * struct bulk - a queue of many timers, and its twin
 * @seed: printed when they differ
 * @now: on their clock
 * @large: calls that delivered more than one batch
 * @stopped: calls that a fault ended in the middle
 * @records: room for one call's
 */
struct bulk {
	struct test_queue queue;
	struct horrible horrible;
	u64 seed;
	u64 random;
	u64 now;
	u32 large;
	u32 stopped;
	struct expiry_record records[DELIVER_MAX];
};

static u64 below(struct bulk *bulk, u64 n)
{
	return test_below(&bulk->random, n);
}

static void request(struct bulk *bulk, struct expiry_record record)
{
	struct expiry_record reply = record;

	test_submit(&bulk->queue, &reply, bulk->now);
	horrible_submit(&bulk->horrible, &record, bulk->now,
			reply.status ? 0 : reply.id);
	assert_memory_equal(&reply, &record, sizeof(reply));
}

/* Returns a time of the next second, or no time. Many are the same. */
static u64 some_deadline(struct bulk *bulk)
{
	u64 ahead = below(bulk, SPAN);

	if (below(bulk, 30) == 0)
		return EXPIRY_NEVER;
	if (below(bulk, 3) == 0)
		ahead -= ahead % (20 * MILLISECOND);
	return bulk->now + ahead;
}

static void arm(struct bulk *bulk)
{
	bool keyed = bulk->queue.config.mode & EXPIRY_MODE_KEYED;

	request(bulk, (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		.id = keyed ? 1 + below(bulk, 2 * TIMERS) : 0,
		.deadline_ns = some_deadline(bulk),
		.cookie = below(bulk, ~0ULL),
		.period_ms = below(bulk, 30) ? 0 : 1 + below(bulk, 900),
	});
}

/* Makes nodes of the heap stale or moved, and may take them over. */
static void change(struct bulk *bulk)
{
	static const u8 ops[] = { EXPIRY_OP_CANCEL, EXPIRY_OP_REFRESH,
				  EXPIRY_OP_REFRESH };
	u64 any;

	if (!bulk->horrible.nr)
		return;
	any = bulk->horrible.timer[below(bulk, bulk->horrible.nr)].id;
	request(bulk, (struct expiry_record) {
		.op = ops[below(bulk, ARRAY_SIZE(ops))],
		.id = any,
		.deadline_ns = some_deadline(bulk),
	});
	if (below(bulk, 2) && bulk->horrible.nr < bulk->horrible.limit)
		arm(bulk);
}

static void begin_faults(struct bulk *bulk)
{
	struct test_faults *faults = &bulk->queue.faults;

	faults->failed = 0;
	faults->error = below(bulk, 2) ? -EIO : -EAGAIN;
	if (below(bulk, 2))
		test_queue_evict_all(&bulk->queue);
	else
		test_queue_evict(&bulk->queue, below(bulk, 3));
	if (below(bulk, 3))
		return;
	faults->fail_in = 1 + below(bulk, 1 + test_queue_pages(&bulk->queue));
	faults->for_good = below(bulk, 2);
}

/* Delivers to both. Half of the calls hold what they deliver until it is read. */
static void deliver(struct bulk *bulk, bool has_faults)
{
	struct timers *timers = &bulk->queue.timers;
	struct expiry_record *records = bulk->records;
	bool hold = below(bulk, 2);
	u32 count = 1 + below(bulk, hold ? TIMERS_HELD_MAX : DELIVER_MAX), i;
	const char *wrong;
	int ret;

	if (has_faults)
		begin_faults(bulk);
	ret = timers_deliver(timers, records, count, bulk->now, hold);
	bulk->queue.faults.fail_in = 0;
	assert_true(ret <= (int)count);
	if (ret < 0)
		assert_true(bulk->queue.faults.failed &&
			    ret == bulk->queue.faults.error);
	for (i = 0; (int)i < ret; i++) {
		wrong = horrible_deliver(&bulk->horrible, &records[i], bulk->now,
					 hold);
		if (wrong)
			fail_msg("seed %llu: %s", bulk->seed, wrong);
	}
	assert_int_equal(timers->armed, horrible_armed(&bulk->horrible));
	bulk->large += ret > 40;
	bulk->stopped += bulk->queue.faults.failed && ret > 0;
	if (!hold || ret < 0)
		return;
	assert_int_equal(timers_release(timers, records, ret), 0);
	for (i = 0; (int)i < ret; i++)
		horrible_release(&bulk->horrible, records[i].id);
	horrible_end_held(&bulk->horrible);
}

/* Ends what has no end by itself. */
static void cancel_periodic(struct bulk *bulk)
{
	struct horrible *horrible = &bulk->horrible;
	u32 i;

	for (i = 0; i < horrible->nr; i++) {
		if (!horrible->timer[i].armed || !horrible->timer[i].period_ms)
			continue;
		request(bulk, (struct expiry_record) {
			.op = EXPIRY_OP_CANCEL,
			.id = horrible->timer[i].id,
		});
		/* Another may be in its place. */
		i = -1;
	}
}

/* Not on the stack: the kernel's is small. */
static struct bulk *bulk_new(u32 mode, u64 seed)
{
	struct bulk *bulk = calloc(1, sizeof(*bulk));

	assert_non_null(bulk);
	bulk->seed = seed;
	bulk->random = seed;
	bulk->now = SECOND;
	test_queue_init(&bulk->queue, mode, 2 * TIMERS, seed);
	horrible_init(&bulk->horrible, mode, 2 * TIMERS);
	return bulk;
}

static void bulk_free(struct bulk *bulk)
{
	horrible_free(&bulk->horrible);
	test_queue_free(&bulk->queue);
	free(bulk);
}

static void bulk_run(u32 mode, u64 seed, u32 *largep, u32 *stoppedp)
{
	struct bulk *bulk = bulk_new(mode, seed);
	u32 i, calls, changes = below(bulk, TIMERS);

	for (i = 0; i < TIMERS; i++)
		arm(bulk);
	for (i = 0; i < changes; i++)
		change(bulk);
	for (calls = 1; calls < TIMERS / 16; calls++) {
		bulk->now += below(bulk, SPAN / 12);
		deliver(bulk, true);
		if (below(bulk, 2))
			change(bulk);
		if (calls % 8 == 0)
			assert_int_equal(timers_validate(&bulk->queue.timers), 0);
	}
	cancel_periodic(bulk);
	/* The end of time comes, and what is never due stays. */
	bulk->now = EXPIRY_NEVER;
	for (calls = 0; horrible_next_ns(&bulk->horrible) < EXPIRY_NEVER; calls++) {
		deliver(bulk, false);
		assert_true(calls < 100 * TIMERS);
	}
	assert_true(horrible_armed(&bulk->horrible) > 0);
	assert_int_equal(timers_validate(&bulk->queue.timers), 0);
	*largep += bulk->large;
	*stoppedp += bulk->stopped;
	bulk_free(bulk);
}

static void batches_are_as_one_by_one(void **state)
{
	u32 mode, large = 0, stopped = 0;
	u64 round;

	(void)state;
	for (round = 0; round < test_rounds; round++)
		for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++)
			bulk_run(test_modes[mode], test_seed + round, &large,
				 &stopped);
	/* The test's own test. */
	assert_true(large && stopped);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(batches_are_as_one_by_one),
	};

	test_arguments(argc, argv, CORE_PAGE_SIZE > 4096 ? 1 : 10);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
