// SPDX-License-Identifier: LGPL-2.1-or-later
/* Scans: each timer once, in bounded work, also when pages are missing. */
#include <stdlib.h>

#include "support.h"

#define KEYED	EXPIRY_MODE_KEYED
#define FAR	(1000 * SECOND)

static void a_scan_sees_each_once(void **state)
{
	u32 mode, i, n = 9000, calls, seen_twice = 0;
	struct expiry_record rows[50], record;
	struct test_queue queue;
	u8 *seen = calloc(2 * n, 1);
	u64 *ids, cursor, random = test_seed;
	int ret;

	(void)state;
	assert_non_null(seen);
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		memset(seen, 0, 2 * n);
		test_queue_init(&queue, test_modes[mode], 2 * n, test_seed);
		ids = test_arm_many(&queue, n, 0);
		test_deliver(&queue, rows, 1, SECOND);
		cursor = 0;
		calls = 0;
		do {
			ret = timers_scan(&queue.timers, rows,
					  1 + test_below(&random, 49), &cursor);
			assert_in_range(ret, 0, 49);
			for (i = 0; i < (u32)ret; i++) {
				assert_true(rows[i].cookie < 2 * n);
				seen_twice += seen[rows[i].cookie]++;
			}
			/* The odd ones come and go; the even ones stay,
			 * refreshed.
			 */
			for (i = 0; i < 10; i++) {
				u32 nr = test_below(&random, n);

				if (nr % 2)
					test_op(&queue, EXPIRY_OP_CANCEL,
						ids[nr]);
				else
					test_refresh(&queue, ids[nr],
						     test_random(&random), 0);
			}
			record = test_arm(&queue, test_modes[mode] & KEYED ?
					  n + calls + 1 : 0, 5, n + calls, 0);
			assert_int_equal(record.status, 0);
			assert_true(calls++ < n);
		} while (cursor);
		assert_int_equal(seen_twice, 0);
		for (i = 0; i < n; i += 2)
			if (test_op(&queue, EXPIRY_OP_QUERY, ids[i]).status ==
			    0)
				assert_int_equal(seen[i], 1);
		test_queue_free(&queue);
		free(ids);
	}
	free(seen);
}

static void a_scan_does_bounded_work(void **state)
{
	u32 i, n = 20000, calls = 0, rows = 0;
	struct expiry_record record;
	struct test_queue queue;
	u64 *ids, cursor = 0;

	(void)state;
	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, n, FAR);
	/* A scan in progress keeps the slots of those cancelled. */
	assert_int_equal(timers_scan(&queue.timers, &record, 1, &cursor), 1);
	for (i = 0; i + 1 < n; i++)
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
	do {
		i = (u32)cursor;
		rows += timers_scan(&queue.timers, &record, 1, &cursor);
		assert_true(!cursor || (u32)cursor - i <= 4096);
		calls++;
	} while (cursor);
	assert_int_equal(rows, 1);
	assert_true(record.id == ids[n - 1]);
	assert_in_range(calls, 4, 100);

	/* An invented cursor ends the scan. */
	cursor = ~0ULL;
	assert_int_equal(timers_scan(&queue.timers, &record, 1, &cursor), 0);
	assert_true(cursor == 0);
	cursor = ~0ULL;
	assert_int_equal(timers_rewind(&queue.timers, &cursor, 0), 0);
	test_queue_free(&queue);
	free(ids);
}

static void a_scan_with_faults(void **state)
{
	struct expiry_record rows[200];
	struct test_queue queue;
	u64 cursor = 0;
	u32 nr = 0, k = 0;
	int ret;

	(void)state;
	test_queue_init(&queue, 0, 200, test_seed);
	free(test_arm_many(&queue, 200, FAR));
	do {
		test_queue_evict_all(&queue);
		queue.faults.fail_in = 1 + k++ % 3;
		queue.faults.error = -EAGAIN;
		ret = timers_scan(&queue.timers, rows + nr, 200 - nr, &cursor);
		assert_true(ret >= 0 || ret == -EAGAIN);
		nr += ret > 0 ? ret : 0;
	} while (ret < 0 || cursor);
	assert_int_equal(nr, 200);
	assert_true(queue.faults.failed > 0);
	test_queue_free(&queue);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(a_scan_sees_each_once),
		test_with_layouts(a_scan_does_bounded_work),
		test_with_layouts(a_scan_with_faults),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
