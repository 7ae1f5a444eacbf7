// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * After mass cancellation a queue gives its pages back, whichever timers are left:
 * a table of each layout, plain and keyed, by the order of the cancels.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bheap_radix_pages.h"
#include "support.h"

/* As many pages where these are larger. */
#define TIMERS	(CORE_PAGE_SIZE < 4096 ? TEST_ROUNDS(20000U) : \
					 100000U * (CORE_PAGE_SIZE / 4096))
#define LEFT	100U	/* one in a hundred stays */
#define BATCH	512U

enum order { ARMED, REVERSE, STRIDE, RANDOM };

static const char * const order_names[] = {
	[ARMED] = "as armed",
	[REVERSE] = "the last first",
	[STRIDE] = "all but each 100th",
	[RANDOM] = "at random",
};

/* Puts the ids into the order in which they are cancelled; the last ones stay. */
static void put_in_order(u64 *ids, u32 n, enum order order)
{
	u32 i, j, left = n / LEFT, nr = 0;
	u64 random = test_seed, id, *stay;

	stay = calloc(left, sizeof(*stay));
	assert_non_null(stay);
	for (i = 0; i < n / 2 && order == REVERSE; i++) {
		id = ids[i];
		ids[i] = ids[n - 1 - i];
		ids[n - 1 - i] = id;
	}
	for (i = n - 1; i > 0 && order == RANDOM; i--) {
		j = test_below(&random, i + 1);
		id = ids[i];
		ids[i] = ids[j];
		ids[j] = id;
	}
	if (order == STRIDE) {
		for (i = 0; i < n; i++) {
			if (i % LEFT == LEFT - 1)
				stay[i / LEFT] = ids[i];
			else
				ids[nr++] = ids[i];
		}
		memcpy(ids + nr, stay, left * sizeof(*ids));
	}
	free(stay);
}

static void cancel(struct test_queue *queue, const u64 *ids, u32 n)
{
	struct expiry_record batch[BATCH];
	u32 i, nr;

	for (; n; ids += nr, n -= nr) {
		nr = n < BATCH ? n : BATCH;
		for (i = 0; i < nr; i++)
			batch[i] = (struct expiry_record) {
				.op = EXPIRY_OP_CANCEL,
				.id = ids[i],
			};
		assert_int_equal(timers_submit(&queue->timers, batch, nr, 0),
				 nr);
		for (i = 0; i < nr; i++)
			assert_int_equal(batch[i].status, 0);
	}
}

static void falls(u32 mode, enum order order)
{
	u32 before[TIMERS_PAGES_NR], after[TIMERS_PAGES_NR], i, n = TIMERS;
	u32 sum_before, sum_after;
	struct test_queue queue;
	u64 *ids;

	test_queue_init(&queue, mode, n, test_seed);
	ids = test_arm_many(&queue, n, 1000 * SECOND);
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		before[i] = queue.runs[i].pages.nr;
	sum_before = test_queue_pages(&queue);
	put_in_order(ids, n, order);
	cancel(&queue, ids, n - n / LEFT);
	test_queue_trim(&queue);
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		after[i] = queue.runs[i].pages.nr;
	sum_after = test_queue_pages(&queue);
	printf("# %-8s %-6s %-19s %5u %5u  %5u %5u  %5u %5u  %5u %5u\n",
	       test_layout->name, mode & EXPIRY_MODE_KEYED ? "keyed" : "plain",
	       order_names[order], before[TIMERS_PAGES_HEAP],
	       after[TIMERS_PAGES_HEAP], before[TIMERS_PAGES_SLOTS],
	       after[TIMERS_PAGES_SLOTS], before[TIMERS_PAGES_INDEX],
	       after[TIMERS_PAGES_INDEX], sum_before, sum_after);
	assert_true(10 * sum_after <= sum_before);
	assert_int_equal(timers_validate(&queue.timers), 0);
	for (i = n - n / LEFT; i < n; i++)
		assert_int_equal(test_op(&queue, EXPIRY_OP_QUERY, ids[i]).status,
				 0);
	test_queue_free(&queue);
	free(ids);
}

static void to_a_tenth(void **state)
{
	u32 mode, order;

	(void)state;
	printf("# pages before and after%22s  %11s  %11s  %11s\n", "heap", "slots",
	       "index", "all");
	for (mode = 0; mode < 2; mode++)
		for (order = ARMED; order <= RANDOM; order++)
			falls(test_modes[mode], order);
}

/* Returns how many pages for chains are before page @end. */
static u32 chain_pages(u32 end)
{
	u32 pages = end > RADIX_BLOCKS ? end - RADIX_BLOCKS : 0, rest = pages % BLOCK;

	return pages / BLOCK * (BLOCK - BLOCK_FIXED) +
	       (rest > BLOCK_FIXED ? rest - BLOCK_FIXED : 0);
}

/* Moving a page costs as much as a hundred requests. The sweep of a request, that of the
 * timers it moves and the step in the background may move one each.
 */
static void a_request_moves_three_pages_at_most(void **state)
{
	u32 i, n = TIMERS, before, most = 0;
	const struct bheap_radix_state *s;
	struct test_queue queue;
	u64 *ids;

	(void)state;
	if (test_layout != &bheap_radix || CORE_PAGE_SIZE < 4096)
		return;
	test_queue_init(&queue, 0, n, test_seed);
	s = &queue.timers.heap.radix;
	ids = test_arm_many(&queue, n, 1000 * SECOND);
	put_in_order(ids, n, RANDOM);
	for (i = 0; i < n - n / LEFT; i++) {
		before = chain_pages(s->pages_end);
		cancel(&queue, ids + i, 1);
		if (before > most + chain_pages(s->pages_end))
			most = before - chain_pages(s->pages_end);
	}
	assert_in_range(most, 1, 3);
	test_queue_free(&queue);
	free(ids);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(to_a_tenth),
		test_with_layouts(a_request_moves_three_pages_at_most),
	};

	test_arguments(argc, argv, 1);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
