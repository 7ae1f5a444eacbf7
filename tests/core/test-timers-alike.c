// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Batches of requests that are alike, against the naive twin, which does them one by
 * one. Some requests within them are not: of another op, with flags or a status, for a
 * periodic timer, for an id that is unknown, stale, or in the batch twice. The queue
 * reaches its limit, empties and is compacted in the middle of a batch, and any page may
 * be out of memory or fail to return.
 */
#include <stdlib.h>

#include "horrible.h"
#include "support.h"

#define BATCH_MAX	100U
#define SPAN		SECOND

/**
 * struct alike - a queue, and its twin
 * @seed: printed when they differ
 * @now: on their clock
 * @full: requests that the limit refused
 * @failed: requests that a page refused, or that had to wait for one
 * @records: a batch
 * @replies: to it
 */
struct alike {
	struct test_queue queue;
	struct horrible horrible;
	u64 seed;
	u64 random;
	u64 now;
	u64 full;
	u64 failed;
	struct expiry_record records[BATCH_MAX];
	struct expiry_record replies[BATCH_MAX];
};

static u64 below(struct alike *alike, u64 n)
{
	return test_below(&alike->random, n);
}

static bool is_keyed(const struct alike *alike)
{
	return alike->queue.config.mode & EXPIRY_MODE_KEYED;
}

/* Returns the id of one of the queue's timers, now and then another one. */
static u64 some_id(struct alike *alike)
{
	const struct horrible *horrible = &alike->horrible;

	if (!horrible->nr || !below(alike, 40))
		return below(alike, 3) ? 1 + below(alike, 2 * BATCH_MAX) : 0;
	return horrible->timer[below(alike, horrible->nr)].id;
}

static u64 some_deadline(struct alike *alike, u8 flags)
{
	u64 ahead = below(alike, SPAN);

	if (!below(alike, 40))
		return below(alike, 2) ? EXPIRY_NEVER : 0;
	/* The same for many, in the past for some. */
	if (below(alike, 2))
		ahead -= ahead % (100 * MILLISECOND);
	if (flags & EXPIRY_F_RELATIVE)
		return ahead;
	return alike->now - SPAN / 16 + ahead;
}

static void make_record(struct alike *alike, struct expiry_record *record,
			u8 op, u8 flags)
{
	bool is_new = op == EXPIRY_OP_ARM && below(alike, 20);

	*record = (struct expiry_record) {
		.op = op,
		.flags = flags,
		.id = !is_new ? some_id(alike) : is_keyed(alike) ?
		      1 + below(alike, 4 * BATCH_MAX) : 0,
		.deadline_ns = some_deadline(alike, flags),
		.cookie = below(alike, ~0ULL),
	};
	if (op == EXPIRY_OP_ARM && !is_keyed(alike) && below(alike, 40))
		record->id = 0;
	if (below(alike, 12))
		return;
	switch (below(alike, 5)) {
	case 0:
		record->op = below(alike, EXPIRY_OP_QUERY + 2);
		break;
	case 1:
		record->flags ^= 1U << below(alike, 8);
		break;
	case 2:
		record->status = -1 - (int)below(alike, 3);
		break;
	case 3:
		record->period_ms = 1 + below(alike, 300);
		break;
	default:
		record->op = EXPIRY_OP_CANCEL;
		break;
	}
}

static void begin_faults(struct alike *alike)
{
	struct test_faults *faults = &alike->queue.faults;

	faults->failed = 0;
	if (below(alike, 2))
		return;
	faults->error = below(alike, 2) ? -EIO : -EAGAIN;
	test_queue_evict(&alike->queue, 1 + below(alike, 4));
	if (below(alike, 2))
		return;
	faults->fail_in = 1 + below(alike, 4);
	faults->for_good = below(alike, 2);
}

/* Holds a reply against the twin's. A request that a page refused did nothing. */
static void check_reply(struct alike *alike, u32 i)
{
	struct expiry_record *reply = &alike->replies[i], *twin = &alike->records[i];

	if (alike->queue.faults.failed && reply->status == -EIO) {
		alike->failed++;
		return;
	}
	horrible_submit(&alike->horrible, twin, alike->now,
			reply->status ? 0 : reply->id);
	if (memcmp(reply, twin, sizeof(*reply)))
		fail_msg("seed %llu: record %u, op %u: status %d, twin %d",
			 alike->seed, i, twin->op, reply->status, twin->status);
	alike->full += reply->status == -ENOSPC;
}

/* Submits a batch whose requests are mostly alike, and again what had to wait. */
static void submit(struct alike *alike)
{
	static const u8 ops[] = { EXPIRY_OP_ARM, EXPIRY_OP_ARM,
				  EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL,
				  EXPIRY_OP_ACK, EXPIRY_OP_QUERY };
	struct timers *timers = &alike->queue.timers;
	u8 op = ops[below(alike, ARRAY_SIZE(ops))];
	u8 flags = op <= EXPIRY_OP_REFRESH && below(alike, 2) ?
		   EXPIRY_F_RELATIVE : 0;
	u32 nr = 1 + below(alike, BATCH_MAX), i, done = 0, more;

	for (i = 0; i < nr; i++)
		make_record(alike, &alike->records[i], op, flags);
	memcpy(alike->replies, alike->records, nr * sizeof(alike->records[0]));
	begin_faults(alike);
	while (done < nr) {
		more = timers_submit(timers, alike->replies + done, nr - done,
				     alike->now);
		for (i = done; i < done + more; i++)
			check_reply(alike, i);
		done += more;
		if (done < nr) {
			assert_true(alike->queue.faults.failed);
			alike->failed++;
		}
		alike->queue.faults.fail_in = 0;
	}
	assert_int_equal(timers->armed, horrible_armed(&alike->horrible));
	assert_int_equal(timers_nr(timers), alike->horrible.nr);
	assert_int_equal(timers_validate(timers), 0);
}

static void deliver(struct alike *alike)
{
	const char *wrong;
	int i, ret;

	ret = timers_deliver(&alike->queue.timers, alike->replies,
			     1 + below(alike, BATCH_MAX), alike->now, false);
	assert_true(ret >= 0);
	for (i = 0; i < ret; i++) {
		wrong = horrible_deliver(&alike->horrible, &alike->replies[i],
					 alike->now, false);
		if (wrong)
			fail_msg("seed %llu: %s", alike->seed, wrong);
	}
}

/* The counters are the twin's. */
static void check_counters(const struct alike *alike)
{
	const struct horrible *horrible = &alike->horrible;
	struct expiry_stat stat = { 0 };

	timers_stat(&alike->queue.timers, &stat);
	assert_int_equal(stat.arms, horrible->arms);
	assert_int_equal(stat.refreshes, horrible->refreshes);
	assert_int_equal(stat.cancels, horrible->cancels);
	assert_int_equal(stat.acks, horrible->acks);
	assert_int_equal(stat.delivered, horrible->delivered);
	assert_int_equal(stat.past, horrible->past);
}

static void alike_run(u32 mode, u64 seed, u64 *fullp, u64 *failedp)
{
	struct alike *alike = calloc(1, sizeof(*alike));
	u32 steps = TEST_ROUNDS(200);
	u64 limit;

	assert_non_null(alike);
	alike->seed = seed;
	alike->random = seed;
	alike->now = SECOND;
	limit = below(alike, 2) ? 70 : 700;
	test_queue_init(&alike->queue, mode, limit, seed);
	horrible_init(&alike->horrible, mode, limit);
	while (steps--) {
		submit(alike);
		alike->now += below(alike, SPAN / 8);
		if (below(alike, 2))
			deliver(alike);
	}
	check_counters(alike);
	*fullp += alike->full;
	*failedp += alike->failed;
	horrible_free(&alike->horrible);
	test_queue_free(&alike->queue);
	free(alike);
}

static void batches_are_as_one_by_one(void **state)
{
	u64 round, full = 0, failed = 0;
	u32 mode;

	(void)state;
	for (round = 0; round < test_rounds; round++)
		for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++)
			alike_run(test_modes[mode], test_seed + round, &full,
				  &failed);
	/* The test's own test. */
	assert_true(full && failed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(batches_are_as_one_by_one),
	};

	test_arguments(argc, argv, CORE_PAGE_SIZE > 4096 ? 1 : 5);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
