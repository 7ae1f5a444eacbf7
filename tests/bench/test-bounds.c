// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The work of one call on radix pages, where a client makes it as hard as it can. It is
 * counted in lines and in accesses of the queue's memory, as bench/heap/bounds-watched
 * counts them, so that no other load disturbs it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "bench/paper/watch.h"
#include "bench/subject.h"

#define LINE_SHIFT	6U
#define NODES		BHEAP_NODES_PER_PAGE
#define NOW		(1ULL << 40)

/**
 * struct work - what one call touches
 * @call: its number
 * @last: by line of the memory, the last call that touched it
 * @lines: different lines
 * @accesses: loads and stores
 */
static struct work {
	uint32_t call;
	uint32_t *last;
	uint32_t lines;
	uint32_t accesses;
} work;

static void touch(void *context, uint32_t line, bool write)
{
	(void)context, (void)write;
	work.accesses++;
	if (work.last[line] == work.call)
		return;
	work.last[line] = work.call;
	work.lines++;
}

static void work_begin(const struct subject *subject)
{
	work.call++;
	work.lines = 0;
	work.accesses = 0;
	watch(subject->memory, subject->size >> LINE_SHIFT, LINE_SHIFT, touch,
	      NULL);
}

static void work_end(void)
{
	watch(NULL, 0, 0, NULL, NULL);
}

static void start(struct subject *subject, uint32_t limit)
{
	subject_init(subject, &bheap_radix, false, limit);
	work.last = bench_map((subject->size >> LINE_SHIFT) *
			      sizeof(*work.last));
	work.call = 0;
}

static void finish(struct subject *subject)
{
	bench_unmap(work.last, (subject->size >> LINE_SHIFT) *
			       sizeof(*work.last));
	subject_deinit(subject);
}

static uint64_t arm(struct subject *subject, uint64_t deadline_ns)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = deadline_ns,
	};

	assert_int_equal(timers_submit(&subject->timers, &record, 1, NOW), 1);
	assert_int_equal(record.status, 0);
	return record.id;
}

static void cancel(struct subject *subject, uint64_t id)
{
	struct expiry_record record = { .op = EXPIRY_OP_CANCEL, .id = id };

	assert_int_equal(timers_submit(&subject->timers, &record, 1, NOW), 1);
	assert_int_equal(record.status, 0);
}

/* Fills a queue whose first @stale nodes are stale and in no order, as their slots
 * are. Three times as many live ones follow, so that no sweep begins.
 */
static void fill_with_stale(struct subject *subject, uint32_t stale)
{
	uint64_t *ids = calloc(stale, sizeof(*ids)), random = 1;
	uint32_t i;

	assert_non_null(ids);
	start(subject, 4 * stale);
	for (i = 0; i < 4 * stale; i++) {
		if (i % 4)
			arm(subject, 3 * NOW + i);
		else
			ids[i / 4] = arm(subject, NOW + 1 +
						  bench_below(&random, NOW));
	}
	for (i = 0; i < stale; i++)
		cancel(subject, ids[i]);
	assert_int_equal(subject->timers.heap.sweep, 0);
	free(ids);
}

/* A step to the first node may look at a page of nodes and their slots, and drop them
 * all. So it counts for many of the checks that a call makes: one delivery drops a page
 * of cancelled timers, and the 512 checks of the embedded engine at most four.
 */
static void a_call_drops_few_pages_of_stale_nodes(void **state)
{
	const uint32_t stale = 100 * NODES, page = 500;
	uint32_t deliver, calls, most = 0;
	struct expiry_record record;
	struct subject subject;
	int ret;

	(void)state;
	for (deliver = 0; deliver < 2; deliver++) {
		fill_with_stale(&subject, stale);
		for (calls = 0, most = 0, ret = 0; !ret; calls++) {
			assert_in_range(calls, 0, 4 * stale);
			work_begin(&subject);
			if (deliver)
				ret = timers_deliver(&subject.timers, &record,
						     1, 4 * NOW, false);
			else
				ret = timers_drop_stale(&subject.timers, 512);
			work_end();
			most = work.lines > most ? work.lines : most;
		}
		assert_int_equal(ret, 1);
		/* The test's own test: it was a page at least. */
		assert_in_range(most, NODES, (deliver ? 1 : 4) * page);
		finish(&subject);
	}
}

/* A request checks half a page of nodes for stale ones at most, and moves some slots: so
 * the longest of a queue that is emptied at random touches at most 500 lines.
 */
static void a_request_checks_few_nodes(void **state)
{
	const uint32_t nr = 400000, left = nr / 100;
	uint64_t *ids = calloc(nr, sizeof(*ids)), random = 1;
	uint32_t i, at, most = 0;
	struct subject subject;

	(void)state;
	assert_non_null(ids);
	start(&subject, nr);
	for (i = 0; i < nr; i++)
		ids[i] = arm(&subject, NOW + 1 + bench_below(&random, NOW));
	for (i = nr; i > left; i--) {
		at = bench_below(&random, i);
		work_begin(&subject);
		cancel(&subject, ids[at]);
		work_end();
		most = work.lines > most ? work.lines : most;
		ids[at] = ids[i - 1];
	}
	/* The test's own test: it checked half a page at least. */
	assert_in_range(most, NODES / 2, 500);
	finish(&subject);
	free(ids);
}

/* Nodes that the places of a bucket do not tell apart, in descending order, are the
 * worst for the insertion that follows: it would move each past all others. It has a
 * budget of some moves a node, and leaves them to a merge that reads and writes each
 * node eight times.
 */
static void a_bucket_is_sorted_within_a_budget(void **state)
{
	const uint64_t bucket = 1ULL << 60;
	struct subject subject;
	uint32_t i, most = 0;
	int ret = 0;

	(void)state;
	start(&subject, 4 * NODES);
	/* The near heap is full, and the front behind it. */
	for (i = 0; i < 2 * NODES; i++)
		arm(&subject, NOW + 1 + i);
	/* One node far from the others makes the bucket wide. */
	for (i = 1; i < NODES; i++)
		arm(&subject, bucket + NODES - i);
	arm(&subject, bucket + (1ULL << 59));
	for (i = 0; subject.timers.armed; i++) {
		struct expiry_record record;

		assert_in_range(i, 0, 100 * NODES);
		work_begin(&subject);
		ret = timers_deliver(&subject.timers, &record, 1,
				     EXPIRY_NEVER - 1, false);
		work_end();
		assert_in_range(ret, 0, 1);
		most = work.accesses > most ? work.accesses : most;
	}
	/* The test's own test: all nodes were copied thrice, by two words. */
	assert_in_range(most, 3 * 2 * NODES, 100 * NODES);
	finish(&subject);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_drops_few_pages_of_stale_nodes),
		cmocka_unit_test(a_request_checks_few_nodes),
		cmocka_unit_test(a_bucket_is_sorted_within_a_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
