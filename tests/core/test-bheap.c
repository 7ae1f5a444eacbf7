// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The B-heap, in each of its layouts: nodes come out in order, in few pages,
 * and faults change nothing. The layout's own order holds in between.
 */
#include <stdlib.h>

#include "heap.h"

/* Patterns of deadlines: the i-th of n keys. */
static u32 shape_random(u64 *random, u32 i, u32 n)
{
	(void)i, (void)n;
	return test_below(random, KEYS);
}

static u32 shape_equal(u64 *random, u32 i, u32 n)
{
	(void)random, (void)i, (void)n;
	return KEYS / 2;
}

static u32 shape_ascending(u64 *random, u32 i, u32 n)
{
	(void)random;
	return (u64)i * (KEYS - 1) / n;
}

static u32 shape_descending(u64 *random, u32 i, u32 n)
{
	(void)random;
	return (u64)(n - i) * (KEYS - 1) / n;
}

static u32 shape_sawtooth(u64 *random, u32 i, u32 n)
{
	(void)random, (void)n;
	return i * 37 % KEYS;
}

static u32 shape_ends(u64 *random, u32 i, u32 n)
{
	(void)i, (void)n;
	return test_one_in(random, 2) ? KEYS - 1 : 0;
}

static u32 (*const shapes[])(u64 *random, u32 i, u32 n) = {
	shape_random, shape_equal, shape_ascending,
	shape_descending, shape_sawtooth, shape_ends,
};

static void fill_and_drain(u32 n)
{
	struct subject subject;
	u32 shape, i;

	for (shape = 0; shape < ARRAY_SIZE(shapes); shape++) {
		subject_init(&subject, n + 1);
		for (i = 0; i < n; i++)
			push(&subject, shapes[shape](&subject.random, i, n));
		validate(&subject);
		assert_true(test_pages_count(&subject.run) <=
			    pages_max(&subject));
		while (subject.nr) {
			if (subject.nr == n / 2)
				validate(&subject);
			pop(&subject);
		}
		assert_int_equal(subject.run.pages.nr, 0);
		subject_free(&subject);
	}
}

static void fill_and_drain_every_small_size(void **state)
{
	u32 n;

	(void)state;
	for (n = 0; n < 100; n++)
		fill_and_drain(n);
}

/* A full page, and its neighbours; the first page with others below it. */
static void fill_and_drain_around_pages(void **state)
{
	const u32 outer = NODES - (NODES / 4 - 1);
	const u32 pages[] = { 1, 2, 3, outer, outer + 1, outer + 2 };
	u32 i, around;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		/* In larger pages than the shipped ones that is millions. */
		if (CORE_PAGE_SIZE > 4096 && pages[i] >= outer)
			continue;
		for (around = 0; around < 4; around++)
			fill_and_drain(pages[i] * NODES + around - 1);
	}
}

static void random_operations(u32 steady, u32 rounds, u32 evict,
			      u32 validate_every)
{
	struct subject subject;
	u32 i, op, key;

	subject_init(&subject, 2 * steady);
	for (i = 0; i < rounds; i++) {
		op = test_below(&subject.random, 8);
		key = test_below(&subject.random, KEYS);
		/* Swings between almost nothing and almost everything. */
		if (i / (4 * steady) % 2)
			op = op < 3 ? op : op ^ 4;
		if (subject.nr && op < 2)
			replace(&subject, key);
		else if (subject.nr && op < 4)
			pop(&subject);
		else if (subject.nr < 2 * steady - 1)
			push(&subject, key);
		if (evict) {
			test_pages_trim(&subject.run);
			test_pages_evict(&subject.run, evict);
		}
		if (i % validate_every == 0)
			validate(&subject);
	}
	while (subject.nr)
		pop(&subject);
	subject_free(&subject);
}

static void random_operations_small(void **state)
{
	(void)state;
	random_operations(20, 5000, 0, 1);
	random_operations(200, 20000, 0, 50);
}

static void random_operations_large(void **state)
{
	(void)state;
	random_operations(100000, 1000000, 0, 250000);
}

static void random_operations_with_evictions(void **state)
{
	(void)state;
	random_operations(30, 5000, 2, 1);
	random_operations(3000, 30000, 4, 1000);
}

static int try(struct subject *subject, u32 op, struct bheap_node *node)
{
	if (op == 0)
		return bheap_push(&subject->heap, node);
	if (op == 1)
		return bheap_replace(&subject->heap, node);
	return bheap_pop(&subject->heap);
}

/* Fails the first page, then the second ... until the operation succeeds. */
static void fault_everywhere(struct subject *subject, u32 op, u32 key)
{
	const int errors[] = { -ENOMEM, -EIO, -EAGAIN };
	struct bheap_node node = node_new(subject, key), first;
	struct bheap_node *before, *after;
	u32 k, nr = subject->nr;
	int err;

	find_first(subject);
	first = subject->heap.first;
	for (k = 1;; k++) {
		before = nodes_copy(subject);
		test_pages_trim(&subject->run);
		test_pages_evict_all(&subject->run);
		subject->faults.fail_in = k;
		subject->faults.error = errors[k % 3];
		err = try(subject, op, &node);
		if (subject->faults.fail_in) {
			free(before);
			subject->faults.fail_in = 0;
			assert_int_equal(err, 0);
			break;
		}
		assert_int_equal(err, errors[k % 3]);
		assert_int_equal(subject->heap.nr, nr);
		after = nodes_copy(subject);
		assert_memory_equal(before, after, nr * sizeof(*after));
		free(before);
		free(after);
	}
	if (op != 0)
		went_out(subject, &first);
	if (op != 2)
		went_in(subject, &node);
	validate(subject);
}

static void faults_change_nothing(void **state)
{
	struct subject subject;
	u32 i, n = 5 * NODES + 200, rounds = TEST_ROUNDS(150);

	(void)state;
	subject_init(&subject, 2 * n);
	for (i = 0; i < n; i++)
		push(&subject, test_below(&subject.random, KEYS));
	for (i = 0; i < rounds; i++)
		fault_everywhere(&subject, i % 3,
				 test_below(&subject.random, KEYS));
	assert_true(subject.faults.failed > rounds);
	while (subject.nr)
		pop(&subject);
	subject_free(&subject);
}

/* Returns the pages that one operation may need in a heap of that many pages.
 */
static u32 pages_touched_max(u32 pages)
{
	const u32 outer = NODES - (NODES / 4 - 1);
	u32 depth = 1;

	if (test_layout == &bheap_sorted) {
		/* Both children on each level, one page of each rise, and
		 * insertion heap, run, the last page, the new one.
		 */
		for (; pages; pages /= 2)
			depth++;
		return 3 * depth + 4;
	}
	/* The near part, the finger's tables, records of pages, and a chain or
	 * two for each bucket that a page of nodes goes to.
	 */
	if (test_layout == &bheap_radix)
		return 8 + BHEAP_RADIX_LEVELS + 64;
	while (pages) {
		pages = (pages - 1) / outer;
		depth++;
	}
	return depth + 1;	/* pop: and the last page */
}

/* Takes one step to the first node, with no page in memory. */
static void find_step(struct subject *subject)
{
	test_pages_evict_all(&subject->run);
	assert_true(bheap_find_first(&subject->heap, NULL, NULL, NULL) >= 0);
}

/* Fails the first page, then the second ... of each step to the first node: no
 * node is lost, and the heap remains valid. Returns how many steps failed.
 */
static u32 find_first_with_faults(struct subject *subject)
{
	struct bheap_node *before, *after;
	u32 k, failed = 0;
	int ret;

	for (k = 1; subject->heap.is_bound; k++) {
		before = nodes_copy(subject);
		subject->faults.fail_in = k;
		subject->faults.error = -EIO;
		test_pages_trim(&subject->run);
		test_pages_evict_all(&subject->run);
		ret = bheap_find_first(&subject->heap, NULL, NULL, NULL);
		failed += ret < 0;
		/* A step may do without a page that only helps. */
		assert_true(ret >= 0 || ret == -EIO);
		if (ret >= 0)
			k = 0;
		subject->faults.fail_in = 0;
		after = nodes_copy(subject);
		assert_memory_equal(before, after,
				    subject->nr * sizeof(*after));
		free(before);
		free(after);
	}
	return failed;
}

static void faults_on_the_way_to_the_first(void **state)
{
	u32 n = 40 * NODES < 4000 ? 40 * NODES : 4000, failed = 0;
	struct subject subject;

	(void)state;
	subject_init(&subject, n + 1);
	while (subject.nr < n)
		push(&subject, test_below(&subject.random, KEYS));
	while (subject.nr) {
		failed += find_first_with_faults(&subject);
		pop(&subject);
	}
	assert_true(failed > 10 || test_layout != &bheap_radix);
	subject_free(&subject);
}

/* Makes radix pages with a sorted run of keys up to 3, a full near heap of keys
 * that are not before the present, and a front behind both.
 */
static void fill_before_the_front(struct subject *subject)
{
	u32 i;

	subject_init(subject, 5 * NODES);
	for (i = 0; i < 2 * NODES; i++)
		push(subject, i >= NODES ? 100 : i < 2 ? i + 1 : 3);
	pop(subject);
	find_first(subject);
	subject->heap.now = deadline_of(40);
	for (i = 0; i < NODES; i++)
		push(subject, 50);
	assert_true(subject->heap.radix.run_at < subject->heap.radix.run_nr);
	assert_int_equal(subject->heap.radix.near, NODES);
	assert_true(subject->heap.radix.front > deadline_of(50));
}

/* Radix pages: the front retreats into a bucket, whose range begins before the
 * rest of the run. The run is next also while the bucket is not in memory.
 */
static void the_run_is_before_the_front(void **state)
{
	struct subject subject;

	(void)state;
	if (test_layout != &bheap_radix)
		return;
	fill_before_the_front(&subject);
	push(&subject, 50);
	assert_true(subject.heap.radix.run_at < subject.heap.radix.run_nr);
	assert_true(subject.heap.radix.front > deadline_of(3) &&
		    subject.heap.radix.front <= deadline_of(50));
	while (subject.nr) {
		test_pages_evict_all(&subject.run);
		pop(&subject);
		assert_true(!subject.nr || least_key(&subject) > 3 ||
			    !subject.heap.is_bound);
		validate(&subject);
		find_first(&subject);
		validate(&subject);
	}
	subject_free(&subject);
}

/* Radix pages: a fault leaves nodes in the near heap that are not before the new
 * front. Then another one follows the step that opens a bucket.
 */
static void faults_around_a_full_near_heap(void **state)
{
	struct subject subject;
	struct bheap_node node;
	u32 k, both = 0;
	int err = -EIO;

	(void)state;
	if (test_layout != &bheap_radix)
		return;
	for (k = 1; err; k++) {
		fill_before_the_front(&subject);
		node = node_new(&subject, 50);
		test_pages_evict_all(&subject.run);
		subject.faults.fail_in = k;
		subject.faults.error = -EIO;
		err = bheap_push(&subject.heap, &node);
		assert_true(!err || err == -EIO);
		subject.faults.fail_in = 0;
		validate(&subject);
		if (!err)
			went_in(&subject, &node);
		push(&subject, 45);
		while (subject.nr) {
			if (subject.heap.is_bound && subject.heap.radix.near)
				both++;
			find_first_with_faults(&subject);
			pop(&subject);
		}
		subject_free(&subject);
	}
	assert_true(both);
}

/* The purpose of the B-heap: an operation needs few pages, and sorted pages
 * rarely more than two on average.
 */
static void pages_touched_are_few(void **state)
{
	struct subject subject;
	u32 i, n = 40000, op, max, rounds = TEST_ROUNDS(3000);
	u64 before, ins;

	(void)state;
	subject_init(&subject, 2 * n);
	for (i = 0; i < n; i++)
		push(&subject, test_below(&subject.random, KEYS));
	max = pages_touched_max(n / NODES + 1);
	ins = subject.faults.ins;
	for (i = 0; i < rounds; i++) {
		test_pages_evict_all(&subject.run);
		op = i % 3;
		if (op) {
			before = subject.faults.ins;
			while (subject.heap.is_bound) {
				find_step(&subject);
				assert_in_range(subject.faults.ins - before, 0,
						max);
				before = subject.faults.ins;
			}
			test_pages_evict_all(&subject.run);
		}
		before = subject.faults.ins;
		if (op == 0)
			push(&subject, test_below(&subject.random, KEYS));
		else if (op == 1)
			replace(&subject, test_below(&subject.random, KEYS));
		else
			pop(&subject);
		assert_in_range(subject.faults.ins - before, 0, max);
	}
	ins = subject.faults.ins - ins;
	if (NODES >= 256 && test_layout != &bheap_subtree)
		assert_true(ins < rounds * 5 / 2);
	subject_free(&subject);
}

/* Sorted pages: each operation sinks the hole a step, so that none has to sink
 * it to the bottom.
 */
static void the_hole_never_waits(void **state)
{
	struct subject subject;
	u32 op, hole, n = 60 * NODES;

	(void)state;
	if (test_layout != &bheap_sorted)
		return;
	for (op = 0; op < 3; op++) {
		subject_init(&subject, 2 * n);
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		while (!subject.heap.sorted.hole)
			pop(&subject);
		while ((hole = subject.heap.sorted.hole)) {
			if (op == 0)
				push(&subject, KEYS - 1);
			else if (op == 1)
				replace(&subject, KEYS - 1);
			else
				pop(&subject);
			assert_true(subject.heap.sorted.hole != hole);
		}
		subject_free(&subject);
	}
}

/* A heap that fits into one page, besides the first, has one. */
static void small_heaps_have_one_page(void **state)
{
	struct subject subject;
	u32 i;

	(void)state;
	subject_init(&subject, 2 * NODES);
	for (i = 0; i < 2; i++) {
		while (subject.nr <= NODES) {
			assert_int_equal(subject.run.pages.nr, subject.nr > 1);
			push(&subject, test_below(&subject.random, KEYS));
		}
		push(&subject, 5);
		assert_true(subject.run.pages.nr > 1);
		while (subject.nr)
			pop(&subject);
		assert_int_equal(subject.run.pages.nr, 0);
	}
	subject_free(&subject);
}

/* The test's own test: validate detects a node that is less than the first,
 * wherever it is. It detects one that is too great, unless no other must be
 * greater.
 */
static void validate_sees_disorder(void **state)
{
	u32 i, n = 8 * NODES + 30, seen = 0;
	struct subject subject;
	struct nodes nodes;
	u64 kept;

	(void)state;
	subject_init(&subject, n + 1);
	while (subject.nr < n)
		push(&subject, 1 + test_below(&subject.random, KEYS - 2));
	nodes = nodes_of(&subject);
	for (i = 0; i < nodes.nr; i++) {
		if (nodes.node[i] == &subject.heap.first)
			continue;
		kept = nodes.node[i]->deadline;
		nodes.node[i]->deadline = 0;
		assert_int_equal(test_layout->validate(&subject.heap, NULL,
						       NULL), -EIO);
		nodes.node[i]->deadline = ~0ULL;
		seen += test_layout->validate(&subject.heap, NULL, NULL) ==
			-EIO;
		nodes.node[i]->deadline = kept;
		validate(&subject);
	}
	assert_true(seen > n / 5);
	free(nodes.node);

	/* One that is not counted. */
	subject.heap.nr--;
	if (test_layout == &bheap_sorted)
		assert_int_equal(test_layout->validate(&subject.heap, NULL,
						       NULL), -EIO);
	subject_free(&subject);
}

static void top_names_the_next(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u64 before;
	u32 n;

	(void)state;
	subject_init(&subject, 100);
	for (n = 0; n < 50; n++) {
		calls.ahead = 0;
		validate(&subject);	/* brings all pages in */
		test_layout->top(&subject.heap, ahead, &calls);
		/* Nothing is near that is in chains. */
		assert_true(calls.ahead <= n &&
			    (n < 2 || calls.ahead ||
			     (test_layout == &bheap_radix &&
			      !subject.heap.radix.near)));
		test_pages_evict_all(&subject.run);
		before = subject.faults.ins;
		test_layout->top(&subject.heap, ahead, &calls);
		assert_true(subject.faults.ins == before);
		push(&subject, test_below(&subject.random, KEYS));
	}
	subject_free(&subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(fill_and_drain_every_small_size),
		test_with_layouts(fill_and_drain_around_pages),
		test_with_layouts(random_operations_small),
		test_with_layouts(random_operations_large),
		test_with_layouts(random_operations_with_evictions),
		test_with_layouts(faults_change_nothing),
		test_with_layouts(faults_on_the_way_to_the_first),
		test_with_layouts(the_run_is_before_the_front),
		test_with_layouts(faults_around_a_full_near_heap),
		test_with_layouts(pages_touched_are_few),
		test_with_layouts(validate_sees_disorder),
		test_with_layouts(top_names_the_next),
		test_with_layouts(the_hole_never_waits),
		test_with_layouts(small_heaps_have_one_page),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
