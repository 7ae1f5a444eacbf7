// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Radix pages whose deadlines come in order, as those of one time to live do: a
 * chain is then taken page by page, and is not spread. And those that come in no order,
 * in clusters of any width, which are sorted in different ways.
 */
#include "heap.h"

/* So that all are in a few buckets, of any layout of digits. */
#define BEGIN	(3ULL << 60)

/* A page of them is less than the millisecond to which the front goes back. */
#define STEP	(1000000U / NODES < 1000U ? 1000000U / NODES : 1000U)

/* Far more than what is spread when in no order. */
#define PAGES	40U

static u64 deadline_at(u32 i)
{
	return BEGIN + (u64)i * STEP;
}

static void push_at(struct bheap *heap, u64 deadline, u32 slot)
{
	const struct bheap_node node = { .deadline = deadline, .slot = slot };

	assert_int_equal(bheap_push(heap, &node), 0);
}

static bool spreads(const struct bheap *heap)
{
	return heap->radix.hints ||
	       heap->radix.spread[BHEAP_RADIX_BACKGROUND].head;
}

/* Fills a heap with @n nodes in order. */
static void fill_in_order(struct subject *subject, u32 n)
{
	u32 i;

	subject_init(subject, 2 * n);
	for (i = 0; i < n; i++) {
		push_at(&subject->heap, deadline_at(i), i);
		/* The front is behind the first page of them. */
		subject->heap.now = deadline_at(i);
	}
	assert_int_equal(subject->heap.radix.near, 0);
}

/* Finds the first node. Returns the steps that this took. */
static u32 steps_to_first(struct bheap *heap)
{
	u32 steps = 0;

	while (heap->is_bound) {
		assert_true(bheap_find_first(heap, NULL, NULL, NULL) >= 0);
		steps++;
	}
	return steps;
}

/* Takes all nodes, in order of deadline. Returns the steps to the first ones. */
static u32 drain(struct subject *subject, u32 n)
{
	struct bheap *heap = &subject->heap;
	u32 steps = 0;
	u64 before = 0;

	for (; n; n--) {
		steps += steps_to_first(heap);
		assert_true(heap->nr && heap->first.deadline >= before);
		before = heap->first.deadline;
		assert_int_equal(bheap_pop(heap), 0);
		if (n % NODES == 1)
			validate(subject);
	}
	assert_int_equal(heap->nr, 0);
	return steps;
}

static void a_chain_in_order_is_not_spread(void **state)
{
	u32 n = PAGES * NODES, steps;
	struct subject subject;
	u32 tables;

	(void)state;
	fill_in_order(&subject, n);
	validate(&subject);
	assert_true(!spreads(&subject.heap));
	tables = subject.heap.radix.tables;
	steps = drain(&subject, n);
	/* A step for each page, and some between buckets. */
	assert_in_range(steps, PAGES / 2, 2 * PAGES + 8 * BHEAP_RADIX_LEVELS);
	assert_true(tables <= 2 * BHEAP_RADIX_LEVELS);
	subject_free(&subject);
}

/* Later nodes go behind those that are left of a chain, earlier ones to the near
 * heap.
 */
static void a_chain_in_order_grows_while_it_is_taken(void **state)
{
	u32 n = PAGES * NODES, i;
	struct subject subject;
	struct bheap *heap = &subject.heap;
	u64 before = 0;

	(void)state;
	fill_in_order(&subject, n);
	for (i = 0; i < 3 * n; i++) {
		steps_to_first(heap);
		assert_true(heap->first.deadline >= before);
		before = heap->first.deadline;
		assert_int_equal(bheap_pop(heap), 0);
		push_at(heap, deadline_at(n + i), n + i);
		heap->now = before;
		if (i % (NODES / 2) == 0)
			push_at(heap, before, i);
		if (i % NODES == 0)
			validate(&subject);
	}
	assert_true(!spreads(heap));
	subject_free(&subject);
}

/* A node out of order makes a long chain one to be spread, in the same call: no
 * other node may come. In one of the sixteen parts is a long chain.
 */
static void one_out_of_order_is_noticed(void **state)
{
	u32 n = 4 * PAGES * NODES, k, noticed = 0;
	struct subject subject;
	struct bheap *heap = &subject.heap;

	(void)state;
	for (k = 1; k < 16; k++) {
		fill_in_order(&subject, n);
		assert_true(!spreads(heap));
		push_at(heap, deadline_at(n / 16 * k) + 1, n);
		noticed += spreads(heap);
		validate(&subject);
		subject_free(&subject);
	}
	assert_true(noticed);
	fill_in_order(&subject, n);
	for (k = 1; k < 16; k++)
		push_at(heap, deadline_at(n / 16 * k) + 1, n);
	drain(&subject, heap->nr);
	subject_free(&subject);
}

/* Takes a chain in order while any page of it may fail: no node is lost, nor comes
 * twice or too early.
 */
static void faults_while_a_chain_in_order_is_taken(void **state)
{
	u32 n = PAGES * NODES, k, i, failed = 0;
	struct subject subject;
	struct bheap *heap = &subject.heap;

	(void)state;
	for (k = 1; k <= 12; k++) {
		fill_in_order(&subject, n);
		for (i = 0; i < n; i++) {
			if (heap->is_bound) {
				test_pages_evict_all(&subject.run);
				subject.faults.fail_in = k;
				subject.faults.for_good = i % 2;
				subject.faults.error = -EIO;
				failed += bheap_find_first(heap, NULL, NULL,
							   NULL) < 0;
				subject.faults.fail_in = 0;
				validate(&subject);
			}
			steps_to_first(heap);
			assert_true(heap->first.deadline == deadline_at(i));
			assert_int_equal(bheap_pop(heap), 0);
		}
		assert_int_equal(heap->nr, 0);
		subject_free(&subject);
	}
	/* The test's own test. */
	assert_true(failed > 50);
}

/* Returns the page that has the node of @slot. */
static u32 page_of(struct subject *subject, u32 slot)
{
	struct nodes nodes = nodes_of(subject);
	struct core_pages *pages = &subject->run.pages;
	u32 i, page;

	for (i = 0; i < nodes.nr && nodes.node[i]->slot != slot; i++)
		;
	assert_true(i < nodes.nr);
	for (page = 0; page < subject->run.high; page++) {
		const struct bheap_node *begin = core_page_peek(pages, page);

		if (begin && nodes.node[i] >= begin &&
		    nodes.node[i] < begin + NODES)
			break;
	}
	free(nodes.node);
	assert_true(page < subject->run.high);
	return page;
}

/* The first page of a chain in order is opened without the last one, which need not
 * be in memory.
 */
static void a_chain_in_order_is_opened_without_its_last_page(void **state)
{
	u32 n = PAGES * NODES, i, last, opened = 0;
	struct subject subject;
	struct bheap *heap = &subject.heap;

	(void)state;
	fill_in_order(&subject, n);
	for (i = 0; i + 3 * NODES < n; i++) {
		if (heap->is_bound) {
			last = page_of(&subject, n - 1);
			test_pages_evict_all(&subject.run);
			steps_to_first(heap);
			assert_null(core_page_peek(&subject.run.pages, last));
			opened++;
		}
		assert_true(heap->first.deadline == deadline_at(i));
		assert_int_equal(bheap_pop(heap), 0);
	}
	assert_true(opened > PAGES / 2);
	subject_free(&subject);
}

static bool drop(void *context, struct bheap_node *node)
{
	(void)node;
	++*(u32 *)context;
	return false;
}

static void ahead_of_none(void *context, const struct bheap_node *node,
			  enum bheap_when when)
{
	(void)context;
	(void)node;
	(void)when;
}

/* Where all that is left is stale, the search ends without a first node. */
static void a_search_that_drops_all_ends(void **state)
{
	u32 n = PAGES * NODES, i, dropped = 0;
	struct subject subject;
	struct bheap *heap = &subject.heap;
	int ret;

	(void)state;
	fill_in_order(&subject, n);
	for (i = 0; i < n && !heap->is_bound; i++)
		assert_int_equal(bheap_pop(heap), 0);
	assert_true(heap->nr);
	while (!(ret = bheap_find_first(heap, drop, ahead_of_none, &dropped)))
		assert_true(heap->nr);
	assert_int_equal(ret, 1);
	assert_true(!heap->is_bound);
	assert_int_equal(heap->nr, 0);
	assert_int_equal(dropped, n - i);
	validate(&subject);
	subject_free(&subject);
}

/* The sweep of nodes that are not in a model. */
static bool has_mark(void *context, const struct bheap_node *node)
{
	(void)context;
	return node->stamp & STALE;
}

static void ignore(void *context, const struct bheap_node *node,
		   enum bheap_when when)
{
	(void)context;
	(void)node;
	(void)when;
}

/* A chain that begins anew is in order, also where a sweep has taken a later node out
 * of its bucket.
 */
static void an_emptied_bucket_begins_in_order(void **state)
{
	const u64 bucket = BEGIN + (1ULL << 56);
	struct bheap_node stale = { .deadline = bucket + (1ULL << 40), .stamp = STALE };
	u32 n = PAGES * NODES, i;
	struct subject subject;
	struct bheap *heap = &subject.heap;

	(void)state;
	fill_in_order(&subject, 2 * n);
	assert_int_equal(bheap_push(heap, &stale), 0);
	/* The table of the bucket remains in use. */
	push_at(heap, BEGIN + (1ULL << 57), 0);
	while (test_layout->sweep(heap, 64, has_mark, ignore, NULL))
		;
	assert_int_equal(heap->nr, 2 * n + 1);
	for (i = 0; i < n; i++)
		push_at(heap, bucket + (u64)i * STEP, i);
	validate(&subject);
	assert_true(!spreads(heap));
	subject_free(&subject);
}

/* Makes @of in 100 nodes stale, but for the first. */
static void mark_some(struct subject *subject, u32 of)
{
	struct nodes nodes = nodes_of(subject);
	u32 i;

	for (i = 0; i < nodes.nr; i++)
		if (test_below(&subject->random, 100) < of &&
		    nodes.node[i] != &subject->heap.first)
			nodes.node[i]->stamp |= STALE;
	free(nodes.node);
}

/* Returns how many nodes are stale. */
static u32 count_marked(struct subject *subject)
{
	struct nodes nodes = nodes_of(subject);
	u32 i, nr = 0;

	for (i = 0; i < nodes.nr; i++)
		nr += !!(nodes.node[i]->stamp & STALE);
	free(nodes.node);
	return nr;
}

static void sweep_to_end(struct subject *subject)
{
	while (test_layout->sweep(&subject->heap, NODES / 2 + 3, has_mark, ignore, NULL))
		validate(subject);
}

/* A sweep leaves pages of a chain in order less than half full, and moves what is in them
 * to its end. The chain is in no order then, and its nodes come in order all the same.
 */
static void a_chain_in_order_is_swept(void **state)
{
	struct subject subject;
	u32 of;

	(void)state;
	for (of = 10; of <= 100; of += 30) {
		fill_in_order(&subject, PAGES * NODES);
		mark_some(&subject, of);
		sweep_to_end(&subject);
		assert_int_equal(count_marked(&subject), 0);
		drain(&subject, subject.heap.nr);
		subject_free(&subject);
	}
}

/* The first pages of the chain where the sweep is are opened. It goes on with the rest of
 * this chain, and not behind it.
 */
static void a_chain_opened_amid_a_sweep_is_swept(void **state)
{
	struct subject subject;
	struct bheap *heap = &subject.heap;
	u32 steps;
	u64 begin;

	(void)state;
	for (steps = NODES; steps < 8 * NODES; steps += 2 * NODES) {
		fill_in_order(&subject, 2 * PAGES * NODES);
		test_layout->sweep(heap, steps, has_mark, ignore, NULL);
		assert_true(heap->sweep);
		begin = heap->first.deadline;
		while (heap->is_bound || heap->radix.hand >= heap->radix.front ||
		       heap->first.deadline < begin + 4 * NODES * STEP) {
			steps_to_first(heap);
			assert_int_equal(bheap_pop(heap), 0);
		}
		mark_some(&subject, 50);
		sweep_to_end(&subject);
		assert_int_equal(count_marked(&subject), 0);
		drain(&subject, heap->nr);
		subject_free(&subject);
	}
}

/* A chain is being spread since the sweep began. The sweep misses none of the nodes that
 * do not move meanwhile.
 */
static void a_sweep_amid_a_spread_misses_none(void **state)
{
	u32 n = 2 * PAGES * NODES, steps, i;
	struct subject subject;
	struct bheap *heap = &subject.heap;
	bool was_spread;

	(void)state;
	for (steps = 1; steps < n; steps += steps) {
		subject_init(&subject, 4 * n);
		heap->now = BEGIN;
		for (i = 0; i < n; i++)
			push_at(heap, BEGIN + (test_random(&subject.random) >> 12), i);
		while (spreads(heap))
			push_at(heap, BEGIN + (test_random(&subject.random) >> 12), i++);
		mark_some(&subject, 50);
		for (i = 0; i < steps; i++)
			test_layout->sweep(heap, 1, has_mark, ignore, NULL);
		for (i = 0; !heap->radix.spread[BHEAP_RADIX_BACKGROUND].head; i++)
			push_at(heap, 2 * BEGIN + (test_random(&subject.random) >> 12), i);
		was_spread = heap->sweep;
		sweep_to_end(&subject);
		assert_true(!was_spread || !count_marked(&subject));
		drain(&subject, heap->nr);
		subject_free(&subject);
	}
}

/* One chain is being spread when two others become long: both are noted, and remain so
 * when their tables are missing.
 */
static void each_long_chain_is_noted(void **state)
{
	const u64 begin[] = { BEGIN, 4ULL << 60, 8ULL << 60 };
	u32 full = 33 * NODES, i, k;
	struct subject subject;
	struct bheap *heap = &subject.heap;
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node node = { .deadline = ~0ULL };

	(void)state;
	subject_init(&subject, 4 * full);
	heap->now = 1ULL << 40;
	while (!s->tables)
		push_at(heap, heap->now + heap->nr, 0);
	for (k = 1; k < ARRAY_SIZE(begin); k++)
		for (i = 0; i < full; i++)
			push_at(heap, begin[k] + (i ^ 1), i);
	assert_true(!spreads(heap));
	for (i = 0; !s->spread[BHEAP_RADIX_BACKGROUND].head; i++)
		push_at(heap, begin[0] + (i ^ 1), i);
	for (k = 1; k < ARRAY_SIZE(begin); k++)
		push_at(heap, begin[k] + full, full);
	assert_int_equal(s->hints, 2);
	while (s->spread[BHEAP_RADIX_BACKGROUND].head)
		push_at(heap, heap->now + heap->nr, 0);
	for (i = 0, k = 0; !k; i++) {
		test_pages_evict_all(&subject.run);
		subject.faults.fail_in = 1;
		subject.faults.error = -EIO;
		k = bheap_push(heap, &node) == -EIO && s->work % (NODES / 8 ?: 1U) == 0;
		subject.faults.fail_in = 0;
		assert_in_range(i, 0, NODES);
	}
	assert_int_equal(s->hints, 2);
	validate(&subject);
	drain(&subject, heap->nr);
	subject_free(&subject);
}

/* Equal deadlines are in order. */
static void equal_deadlines_are_in_order(void **state)
{
	u32 n = PAGES * NODES, i;
	struct subject subject;

	(void)state;
	subject_init(&subject, n + 1);
	for (i = 0; i < n; i++)
		push_at(&subject.heap, deadline_at(i / (n / 2)), i);
	assert_true(!spreads(&subject.heap));
	assert_in_range(drain(&subject, n), PAGES / 2,
			2 * PAGES + 8 * BHEAP_RADIX_LEVELS);
	subject_free(&subject);
}

/* A bucket that is opened has a few clusters far apart. Sorted by distance from the
 * least, most nodes have one place.
 */
static void clusters_are_sorted(void **state)
{
	u64 random = test_seed, cluster[32];
	u32 n = 8 * NODES, width, i;
	struct subject subject;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cluster); i++)
		cluster[i] = BEGIN + (test_random(&random) >> 12);
	for (width = 0; width <= 48; width += 4) {
		subject_init(&subject, n + 1);
		for (i = 0; i < n; i++)
			push_at(&subject.heap,
				cluster[test_below(&random, ARRAY_SIZE(cluster))] +
				(test_random(&random) & ((1ULL << width) - 1)), i);
		drain(&subject, n);
		subject_free(&subject);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layout(a_chain_in_order_is_not_spread, radix),
		test_with_layout(a_chain_in_order_grows_while_it_is_taken, radix),
		test_with_layout(one_out_of_order_is_noticed, radix),
		test_with_layout(faults_while_a_chain_in_order_is_taken, radix),
		test_with_layout(a_chain_in_order_is_opened_without_its_last_page,
				 radix),
		test_with_layout(a_search_that_drops_all_ends, radix),
		test_with_layout(an_emptied_bucket_begins_in_order, radix),
		test_with_layout(a_chain_in_order_is_swept, radix),
		test_with_layout(a_chain_opened_amid_a_sweep_is_swept, radix),
		test_with_layout(a_sweep_amid_a_spread_misses_none, radix),
		test_with_layout(each_long_chain_is_noted, radix),
		test_with_layout(equal_deadlines_are_in_order, radix),
		test_with_layout(clusters_are_sorted, radix),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
