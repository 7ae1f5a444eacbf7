// SPDX-License-Identifier: LGPL-2.1-or-later
/* A queue with its pages, and the few calls of every test. */
#include <stdlib.h>

#include "support.h"

const u32 test_modes[] = {
	0, EXPIRY_MODE_KEYED, EXPIRY_MODE_ACK,
	EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK,
};

void test_queue_init(struct test_queue *queue, u32 mode, u64 limit, u64 seed)
{
	struct core_pages *pages[TIMERS_PAGES_NR];
	u32 i;

	memset(queue, 0, sizeof(*queue));
	queue->config.mode = mode;
	queue->config.limit = limit;
	queue->config.seed[0] = test_random(&seed);
	queue->config.seed[1] = test_random(&seed);
	queue->config.layout = test_layout;
	for (i = 0; i < TIMERS_PAGES_NR; i++) {
		test_pages_init(&queue->runs[i],
				timers_pages_max(&queue->config, i),
				&queue->faults, test_random(&seed));
		pages[i] = &queue->runs[i].pages;
	}
	assert_int_equal(timers_setup(&queue->timers, &queue->config, pages), 0);
}

void test_queue_free(struct test_queue *queue)
{
	u32 i;

	for (i = 0; i < TIMERS_PAGES_NR; i++)
		test_pages_free(&queue->runs[i]);
}

void test_queue_evict(struct test_queue *queue, u32 nr)
{
	u32 i;

	for (i = 0; i < TIMERS_PAGES_NR; i++)
		test_pages_evict(&queue->runs[i], nr);
}

void test_queue_evict_all(struct test_queue *queue)
{
	u32 i;

	for (i = 0; i < TIMERS_PAGES_NR; i++)
		test_pages_evict_all(&queue->runs[i]);
}

void test_queue_trim(struct test_queue *queue)
{
	u32 i;

	for (i = 0; i < TIMERS_PAGES_NR; i++)
		test_pages_trim(&queue->runs[i]);
}

u32 test_queue_pages(const struct test_queue *queue)
{
	u32 i, count = 0;

	for (i = 0; i < TIMERS_PAGES_NR; i++)
		count += test_pages_count(&queue->runs[i]);
	return count;
}

int test_submit(struct test_queue *queue, struct expiry_record *record,
		u64 now_ns)
{
	if (!timers_submit(&queue->timers, record, 1, now_ns))
		return -EAGAIN;
	assert_int_not_equal(record->status, -EAGAIN);
	return record->status;
}

struct expiry_record test_arm(struct test_queue *queue, u64 id,
			      u64 deadline_ns, u64 cookie, u32 period_ms)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.id = id,
		.deadline_ns = deadline_ns,
		.cookie = cookie,
		.period_ms = period_ms,
	};

	test_submit(queue, &record, 0);
	return record;
}

u64 *test_arm_many(struct test_queue *queue, u32 n, u64 from)
{
	u64 *ids = calloc(n, sizeof(*ids));
	u64 random = test_seed;
	u32 i;

	assert_non_null(ids);
	for (i = 0; i < n; i++) {
		ids[i] = queue->config.mode & EXPIRY_MODE_KEYED ? i + 1 : 0;
		ids[i] = test_arm(queue, ids[i], from +
				  test_below(&random, SECOND), i, 0).id;
		assert_true(ids[i] != 0);
	}
	return ids;
}

struct expiry_record test_refresh(struct test_queue *queue, u64 id,
				  u64 deadline_ns, u8 flags)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_REFRESH,
		.flags = flags,
		.id = id,
		.deadline_ns = deadline_ns,
	};

	test_submit(queue, &record, 0);
	return record;
}

struct expiry_record test_op(struct test_queue *queue, u8 op, u64 id)
{
	struct expiry_record record = { .op = op, .id = id };

	test_submit(queue, &record, EXPIRY_NEVER);
	return record;
}

/* A call does bounded work and may return nothing though a timer is due. The
 * limit detects one that makes no progress.
 */
u32 test_deliver(struct test_queue *queue, struct expiry_record *records,
		 u32 count, u64 now_ns)
{
	u32 done = 0, idle = 0;
	int ret;

	while (done < count && timers_due(&queue->timers, now_ns)) {
		ret = timers_deliver(&queue->timers, records + done,
				     count - done, now_ns, false);
		assert_true(ret >= 0);
		assert_true((u32)ret <= count - done);
		idle = ret ? 0 : idle + 1;
		assert_true(idle < 100000);
		done += ret;
	}
	return done;
}

void test_rewind_at(struct test_queue *queue, u64 now_ns)
{
	u64 cursor = 0;
	u32 calls = 0;
	int ret;

	do {
		ret = timers_rewind(&queue->timers, &cursor, now_ns);
		assert_true(ret >= 0);
		assert_true(calls++ < 1000000);
	} while (ret);
}

void test_rewind(struct test_queue *queue)
{
	test_rewind_at(queue, EXPIRY_NEVER);
}

void test_drop_stale(struct test_queue *queue)
{
	u32 calls = 0;
	int ret;

	do {
		ret = timers_drop_stale(&queue->timers, 16);
		assert_true(ret >= 0);
		assert_true(calls++ < 1000000);
	} while (!ret);
}

static int compare_ids(const void *a, const void *b)
{
	u64 x = ((const struct expiry_record *)a)->id;
	u64 y = ((const struct expiry_record *)b)->id;

	return (x > y) - (x < y);
}

u32 test_list(struct test_queue *queue, struct expiry_record *records,
	      u32 count)
{
	u64 cursor = 0;
	u32 done = 0, calls = 0;
	int ret;

	do {
		ret = timers_scan(&queue->timers, records + done, count - done,
				  &cursor);
		assert_true(ret >= 0);
		assert_true((u32)ret <= count - done);
		assert_true(calls++ < 1000000);
		done += ret;
	} while (cursor && done < count);
	qsort(records, done, sizeof(*records), compare_ids);
	return done;
}
