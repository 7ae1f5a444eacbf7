// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Radix pages: how much of the work is done before a node's turn, in how many steps
 * the rest, and what a sweep gives back.
 */
#include <stdlib.h>

#include "heap.h"

/* So that all are in a few buckets, of any layout of digits. */
#define BEGIN	(3ULL << 60)

#define NOW	(1ULL << 40)

/* Far more than what is spread when in no order. */
#define PAGES	40U

static void push_at(struct subject *subject, u64 deadline)
{
	const struct bheap_node node = {
		.deadline = deadline,
		.slot = subject->slots++,
	};

	assert_int_equal(bheap_push(&subject->heap, &node), 0);
}

static bool spreads(const struct subject *subject)
{
	const struct bheap_radix_state *s = &subject->heap.radix;

	return s->hints || s->spread[BHEAP_RADIX_BACKGROUND].head;
}

/* Finds the first node. Returns the steps that this took. */
static u32 steps_to_first(struct subject *subject)
{
	u32 steps = 0;

	while (subject->heap.is_bound) {
		assert_true(bheap_find_first(&subject->heap, NULL, NULL,
					     NULL) >= 0);
		steps++;
	}
	return steps;
}

/* Begins a far part at the present, which some nodes follow. */
static void begin_far_part(struct subject *subject, u32 max)
{
	subject_init(subject, max);
	subject->heap.now = NOW;
	while (!subject->heap.radix.tables)
		push_at(subject, NOW + 1000 + subject->slots);
}

/* Where the table of the first bucket is in memory, the bound is that bucket's least
 * deadline: a queue's timer is set for it, and does not expire for nothing.
 */
static void a_bound_is_the_least_of_its_bucket(void **state)
{
	const u64 least = (1ULL << 50) + 12345;
	struct subject subject;
	struct bheap *heap = &subject.heap;
	u32 early, i;

	(void)state;
	begin_far_part(&subject, 8 * NODES);
	early = heap->nr;
	for (i = 0; i < 2 * NODES; i++)
		push_at(&subject, least + (i ^ 1));
	while (early--) {
		steps_to_first(&subject);
		assert_int_equal(bheap_pop(heap), 0);
	}
	assert_true(heap->is_bound);
	assert_true(heap->first.deadline == least);
	subject_free(&subject);
}

/* Buckets of a node each: one step opens several of them. */
static void small_buckets_are_opened_together(void **state)
{
	u32 i, n = 20, early, steps = 0;
	struct subject subject;
	struct bheap *heap = &subject.heap;

	(void)state;
	begin_far_part(&subject, 4 * NODES + n);
	early = heap->nr;
	for (i = 0; i < n; i++)
		push_at(&subject, 1ULL << (64 - n + i));
	for (i = 0; i < early + n; i++) {
		steps += steps_to_first(&subject);
		if (i >= early)
			assert_true(heap->first.deadline ==
				    1ULL << (64 - n + i - early));
		assert_int_equal(bheap_pop(heap), 0);
	}
	/* Up to half a page of nodes a step, of eight buckets at most. */
	assert_in_range(steps, 1, NODES < 16 ? 3 * n / 4 : n / 3);
	subject_free(&subject);
}

/* A chain that is in no order from its beginning on is noted when it has become long, and
 * not before.
 */
static void a_long_chain_is_spread_ahead_of_time(void **state)
{
	u32 i, n = PAGES * NODES, at = 0;
	struct subject subject;

	(void)state;
	begin_far_part(&subject, n + 4 * NODES);
	for (i = 0; i < n; i++) {
		push_at(&subject, BEGIN + (i ^ 1));
		if (!at && spreads(&subject))
			at = i;
	}
	assert_in_range(at, 31 * NODES, 35 * NODES);
	validate(&subject);
	subject_free(&subject);
}

/* One chain is being spread, which takes a step every few operations. Another long one
 * waits meanwhile, and grows: it is noted once.
 */
static void a_long_chain_is_noted_once(void **state)
{
	u32 i, half = PAGES * NODES, waited = 0;
	struct subject subject;
	struct bheap_radix_state *s = &subject.heap.radix;

	(void)state;
	begin_far_part(&subject, 4 * half);
	for (i = 0; i < 32 * NODES; i++)
		push_at(&subject, 2 * BEGIN + (i ^ 1));
	for (i = 0; !s->spread[BHEAP_RADIX_BACKGROUND].head; i++) {
		assert_in_range(i, 0, half);
		push_at(&subject, BEGIN + (i ^ 1));
	}
	for (i = 32 * NODES; s->spread[BHEAP_RADIX_BACKGROUND].head; i++) {
		push_at(&subject, 2 * BEGIN + (i ^ 1));
		assert_in_range(s->hints, 0, 1);
		waited += s->hints;
	}
	/* The test's own test: the chain grew by pages while it waited. */
	assert_true(waited > 2 * NODES);
	validate(&subject);
	subject_free(&subject);
}

/* A queue whose periodic timers alone come is not behind with that. */
static void replaced_nodes_pay_for_it(void **state)
{
	const u32 n = PAGES * NODES;
	struct bheap_node node;
	struct subject subject;
	u32 i;

	(void)state;
	begin_far_part(&subject, n + 4 * NODES);
	for (i = 0; !spreads(&subject); i++) {
		assert_in_range(i, 0, n);
		push_at(&subject, BEGIN + (i ^ 1));
	}
	for (i = 0; spreads(&subject); i++) {
		assert_in_range(i, 0, n);
		node = subject.heap.first;
		node.deadline++;
		assert_int_equal(bheap_replace(&subject.heap, &node), 0);
		steps_to_first(&subject);
	}
	subject_free(&subject);
}

/* Counts the nodes whose turn comes, and those that were prefetched before. */
struct looks {
	u32 reviews;
	u32 aheads;
};

static bool count_review(void *context, struct bheap_node *node)
{
	struct looks *looks = context;

	(void)node;
	looks->reviews++;
	assert_true(looks->reviews <= looks->aheads);
	return true;
}

static void look_ahead(void *context, const struct bheap_node *node,
		       enum bheap_when when)
{
	struct looks *looks = context;

	(void)node;
	looks->aheads += when == BHEAP_SOON;
}

/* A node's timer is prefetched once before it is looked at, and no other is. */
static void each_node_is_prefetched_before_its_review(void **state)
{
	u32 i, n = PAGES * NODES;
	struct subject subject;
	struct bheap *heap = &subject.heap;
	struct looks looks = { 0 };

	(void)state;
	begin_far_part(&subject, n + 4 * NODES);
	for (i = 0; i < n; i++)
		push_at(&subject, BEGIN + (u64)(i * 37 % n) * 1000);
	while (heap->nr) {
		while (heap->is_bound) {
			assert_true(bheap_find_first(heap, count_review, look_ahead,
						     &looks) >= 0);
			assert_int_equal(looks.aheads, looks.reviews);
		}
		if (heap->nr)
			assert_int_equal(bheap_pop(heap), 0);
	}
	assert_true(looks.reviews >= n - NODES);
	subject_free(&subject);
}

static bool is_marked(void *context, const struct bheap_node *node)
{
	(void)context;
	return node->stamp & STALE;
}

static void ignore(void *context, const struct bheap_node *node,
		   enum bheap_when when)
{
	(void)context, (void)node, (void)when;
}

/* Marks the last @nr nodes that were pushed, but for the first of the heap. */
static void mark(struct subject *subject, u32 nr)
{
	struct nodes nodes = nodes_of(subject);
	u32 i;

	for (i = 0; i < nodes.nr; i++)
		if (nodes.node[i]->slot >= subject->slots - nr &&
		    nodes.node[i] != &subject->heap.first)
			nodes.node[i]->stamp |= STALE;
	free(nodes.node);
}

/* The far part ends while a sweep is in it, and another one begins: pages have other
 * numbers there, and new ones any content.
 */
static void the_far_part_ends_amid_a_sweep(void **state)
{
	u32 steps, i, n = 8 * NODES, most = n;
	struct subject subject;
	struct bheap *heap = &subject.heap;

	(void)state;
	for (steps = 1; steps < most; steps += 1 + most / (NODES < 64 ? 100 : 8)) {
		begin_far_part(&subject, 4 * n);
		for (i = 0; i < n; i++)
			push_at(&subject, BEGIN + (i ^ 1));
		test_layout->sweep(heap, steps, is_marked, ignore, NULL);
		while (heap->radix.tables) {
			steps_to_first(&subject);
			assert_int_equal(bheap_pop(heap), 0);
		}
		test_pages_trim(&subject.run);
		for (i = 0; i < n; i++)
			push_at(&subject, BEGIN + (u64)(n - i) * 1000);
		mark(&subject, n / 2);
		for (i = 0; test_layout->sweep(heap, 1, is_marked, ignore, NULL); i++)
			if (i % (n / 16) == 0)
				validate(&subject);
		validate(&subject);
		subject_free(&subject);
	}
}

/* Sweeps to the end. Each call looks at a node at least. */
static void sweep_to_end(struct subject *subject, u32 steps)
{
	u32 calls = 0;

	while (test_layout->sweep(&subject->heap, steps, is_marked, ignore, NULL))
		assert_in_range(calls++, 0, 4 * subject->slots + 1000);
	validate(subject);
}

/* A near heap alone, of any size: its page goes with its last node. */
static void a_near_heap_is_swept(void **state)
{
	struct subject subject;
	struct bheap *heap = &subject.heap;
	u32 n, steps;

	(void)state;
	for (n = 1; n <= NODES; n += 1 + n / 8) {
		for (steps = 1; steps < 8; steps++) {
			subject_init(&subject, n + 1);
			while (heap->nr < n + 1)
				push_at(&subject, 1000 - subject.slots % 7);
			mark(&subject, n + 1);
			sweep_to_end(&subject, steps);
			assert_int_equal(heap->nr, 1);
			assert_int_equal(subject.run.pages.nr, 0);
			subject_free(&subject);
		}
	}
}

/* Where a sweep takes all but a few nodes, it gives back tables and pages. What is left
 * comes in order.
 */
static void a_sweep_gives_tables_back(void **state)
{
	u32 n = 4 * PAGES * NODES, few, left, tables, before, i;
	struct subject subject;
	struct bheap *heap = &subject.heap;
	u64 random = test_seed, last;

	(void)state;
	for (few = 0; few < 4; few++) {
		begin_far_part(&subject, n + 4 * NODES);
		before = subject.slots;
		for (i = 0; i < n; i++)
			push_at(&subject, BEGIN + (test_random(&random) >> 8));
		while (spreads(&subject))
			push_at(&subject, BEGIN + (test_random(&random) >> 8));
		tables = heap->radix.tables;
		/* All nodes of the far part; or its first ones stay. */
		mark(&subject, few ? subject.slots - before - few :
				     subject.slots);
		sweep_to_end(&subject, 64);
		left = few ? before + few : 1;
		assert_int_equal(heap->nr, left);
		if (few)
			assert_in_range(heap->radix.tables, 1,
					NODES < 16 ? tables - 1 : tables / 2);
		else
			assert_int_equal(subject.run.pages.nr, 0);
		for (last = 0; left; left--) {
			steps_to_first(&subject);
			assert_true(heap->first.deadline >= last);
			last = heap->first.deadline;
			assert_int_equal(bheap_pop(heap), 0);
		}
		assert_int_equal(heap->nr, 0);
		subject_free(&subject);
	}
}

/* A sweep takes all nodes while no more than a bound of the first is known. */
static void a_heap_that_a_sweep_emptied_begins_anew(void **state)
{
	struct subject subject;
	struct bheap *heap = &subject.heap;

	(void)state;
	begin_far_part(&subject, 8 * NODES);
	while (!heap->is_bound)
		assert_int_equal(bheap_pop(heap), 0);
	assert_true(heap->nr);
	mark(&subject, subject.slots);
	sweep_to_end(&subject, 64);
	assert_int_equal(heap->nr, 0);
	push_at(&subject, BEGIN);
	assert_true(!heap->is_bound);
	assert_true(heap->first.deadline == BEGIN);
	push_at(&subject, BEGIN - 1);
	assert_true(heap->first.deadline == BEGIN - 1);
	validate(&subject);
	subject_free(&subject);
}

/* A page fails while the far part begins: it has a table then, and no node. Its pages
 * go with the last node all the same.
 */
static void a_far_part_that_failed_to_begin_leaves_no_pages(void **state)
{
	struct subject subject;
	struct bheap *heap = &subject.heap;
	u32 k, tables = 0;
	int err = -EIO;

	(void)state;
	for (k = 1; err; k++) {
		struct bheap_node node = { .deadline = NOW };

		subject_init(&subject, 4 * NODES);
		while (heap->radix.near < NODES)
			push_at(&subject, NOW + subject.slots);
		test_pages_evict_all(&subject.run);
		subject.faults.fail_in = k;
		subject.faults.error = -EIO;
		err = bheap_push(heap, &node);
		assert_true(!err || err == -EIO);
		subject.faults.fail_in = 0;
		tables += err && heap->radix.tables;
		while (heap->nr) {
			steps_to_first(&subject);
			assert_int_equal(bheap_pop(heap), 0);
		}
		assert_int_equal(subject.run.pages.nr, 0);
		subject_free(&subject);
	}
	/* The test's own test. */
	assert_true(tables);
}

/* Takes all nodes, in order and each once. */
static void drain(struct subject *subject, bheap_review_t *review)
{
	struct bheap *heap = &subject->heap;
	u64 last = 0;
	u32 nr;

	for (nr = heap->nr; nr; nr--) {
		while (heap->is_bound) {
			assert_true(bheap_find_first(heap, review, ignore,
						     subject) >= 0);
			validate(subject);
		}
		assert_true(heap->first.deadline >= last);
		assert_int_equal(subject->live[heap->first.slot]++, 0);
		last = heap->first.deadline;
		assert_int_equal(bheap_pop(heap), 0);
	}
	assert_int_equal(heap->nr, 0);
}

/* One node makes a bucket so wide that sorting by places tells none of the others apart.
 * They come descending, ascending and at random.
 */
static void a_dense_bucket_is_sorted(void **state)
{
	struct subject subject;
	u64 random = test_seed, begin;
	u32 i, order;

	(void)state;
	for (order = 0; order < 20; order++) {
		begin_far_part(&subject, 4 * NODES);
		/* Every fourth time up to the last deadline of all. */
		begin = order % 4 ? BEGIN : ~0ULL - (NODES - 1);
		for (i = 1; i < NODES; i++)
			push_at(&subject, begin + (order == 0 ? NODES - i :
						   order == 1 ? i :
						   test_below(&random, NODES)));
		push_at(&subject, BEGIN + (1ULL << 58));
		drain(&subject, NULL);
		subject_free(&subject);
	}
}

/* Finds that every other node has moved, once. */
static bool every_other_moved(void *context, struct bheap_node *node)
{
	(void)context;
	if (node->slot % 2 && node->deadline >= BEGIN && node->deadline < BEGIN + 4096)
		node->deadline += 4096;
	return true;
}

/* Nodes of the bucket that is opened have moved, but not out of its range: they come
 * before the front, and wait in the near heap. Without its page they stay what they were.
 */
static void moved_nodes_of_a_bucket_stay_before_the_front(void **state)
{
	struct subject subject;
	struct bheap *heap = &subject.heap;
	u32 i, k, failed = 0;

	(void)state;
	for (k = 0; k < 24; k++) {
		begin_far_part(&subject, 4 * NODES);
		for (i = 0; i < NODES; i++)
			push_at(&subject, BEGIN + i % 4096);
		while (!heap->is_bound || heap->first.deadline < BEGIN) {
			steps_to_first(&subject);
			assert_int_equal(bheap_pop(heap), 0);
		}
		test_pages_trim(&subject.run);
		test_pages_evict_all(&subject.run);
		subject.faults.fail_in = k;
		subject.faults.for_good = true;
		subject.faults.error = -EIO;
		while (k && heap->is_bound &&
		       bheap_find_first(heap, every_other_moved, ignore, NULL) >= 0)
			;
		failed += k && !heap->radix.near && heap->is_bound;
		subject.faults.fail_in = 0;
		subject.faults.for_good = false;
		validate(&subject);
		drain(&subject, every_other_moved);
		subject_free(&subject);
	}
	assert_true(failed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layout(a_bound_is_the_least_of_its_bucket, radix),
		test_with_layout(small_buckets_are_opened_together, radix),
		test_with_layout(a_long_chain_is_spread_ahead_of_time, radix),
		test_with_layout(a_long_chain_is_noted_once, radix),
		test_with_layout(replaced_nodes_pay_for_it, radix),
		test_with_layout(each_node_is_prefetched_before_its_review, radix),
		test_with_layout(a_dense_bucket_is_sorted, radix),
		test_with_layout(moved_nodes_of_a_bucket_stay_before_the_front, radix),
		test_with_layout(the_far_part_ends_amid_a_sweep, radix),
		test_with_layout(a_near_heap_is_swept, radix),
		test_with_layout(a_far_part_that_failed_to_begin_leaves_no_pages, radix),
		test_with_layout(a_sweep_gives_tables_back, radix),
		test_with_layout(a_heap_that_a_sweep_emptied_begins_anew, radix),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
