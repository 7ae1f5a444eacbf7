// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The B-heap against a count of keys: whatever comes out is the least that is
 * in, each node comes out once, and the layout's own law holds in between.
 */
#include <stdlib.h>

#include "support.h"

#define NODES	BHEAP_NODES_PER_PAGE
#define KEYS	1024U
#define STALE	0x80000000U	/* in a node's stamp: the sweep may have it */

/* Keys are few, so that there are many ties, and reach both ends. */
static u64 deadline_of(u32 key)
{
	return key * (~0ULL / (KEYS - 1));
}

static u32 key_of(u64 deadline)
{
	return deadline / (~0ULL / (KEYS - 1));
}

/**
 * struct subject - a heap, and what should be in it
 * @live: by slot, the key + 1 of a node that is in, 0 if none
 * @slots: next slot
 * @count: nodes in, by key
 * @nr: all of them
 */
struct subject {
	struct bheap heap;
	struct test_faults faults;
	struct test_pages run;
	u32 *live;
	u32 max, slots;
	u32 count[KEYS];
	u32 nr;
	u64 random;
};

static void subject_init(struct subject *subject, u32 max)
{
	memset(subject, 0, sizeof(*subject));
	subject->random = test_seed;
	subject->max = max;
	subject->live = calloc(max, sizeof(*subject->live));
	assert_non_null(subject->live);
	test_pages_init(&subject->run, max / NODES + 1, &subject->faults,
			test_seed);
	bheap_init(&subject->heap, &bheap_subtree, &subject->run.pages);
}

static void subject_free(struct subject *subject)
{
	test_pages_free(&subject->run);
	free(subject->live);
}

/* A node for @key with a slot that is not in use. */
static struct bheap_node node_new(struct subject *subject, u32 key)
{
	struct bheap_node node = { .deadline = deadline_of(key) };

	do {
		node.slot = subject->slots++ % subject->max;
	} while (subject->live[node.slot]);
	node.stamp = node.slot ^ 0x2a2a2a;
	return node;
}

static void went_in(struct subject *subject, const struct bheap_node *node)
{
	u32 key = key_of(node->deadline);

	subject->live[node->slot] = key + 1;
	subject->count[key]++;
	subject->nr++;
}

static void went_out(struct subject *subject, const struct bheap_node *node)
{
	u32 key = key_of(node->deadline);

	assert_true(node->slot < subject->max);
	assert_int_equal(subject->live[node->slot], key + 1);
	assert_int_equal(node->stamp & ~STALE, node->slot ^ 0x2a2a2a);
	subject->live[node->slot] = 0;
	subject->count[key]--;
	subject->nr--;
}

static void push(struct subject *subject, u32 key)
{
	struct bheap_node node = node_new(subject, key);

	assert_int_equal(bheap_push(&subject->heap, &node), 0);
	went_in(subject, &node);
	assert_int_equal(subject->heap.nr, subject->nr);
}

static u32 least_key(const struct subject *subject)
{
	u32 key = 0;

	while (!subject->count[key])
		key++;
	return key;
}

/* The first is the least, and is what pop or replace takes. */
static void pop(struct subject *subject)
{
	struct bheap_node node = subject->heap.first;

	assert_true(node.deadline == deadline_of(least_key(subject)));
	assert_int_equal(bheap_pop(&subject->heap), 0);
	went_out(subject, &node);
	assert_int_equal(subject->heap.nr, subject->nr);
}

static void replace(struct subject *subject, u32 key)
{
	struct bheap_node node = subject->heap.first;
	struct bheap_node other = node_new(subject, key);

	assert_true(node.deadline == deadline_of(least_key(subject)));
	assert_int_equal(bheap_replace(&subject->heap, &other), 0);
	went_out(subject, &node);
	went_in(subject, &other);
	assert_int_equal(subject->heap.nr, subject->nr);
}

static void validate(struct subject *subject)
{
	assert_int_equal(bheap_subtree.validate(&subject->heap), 0);
}

/* The shapes that deadlines come in: the i-th of n keys. */
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
		assert_true(test_pages_count(&subject.run) <= n / NODES + 1);
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

/* A page full, and its neighbours; the first page below which others hang. */
static void fill_and_drain_around_pages(void **state)
{
	const u32 outer = NODES - (NODES / 4 - 1);
	const u32 pages[] = { 1, 2, 3, outer, outer + 1, outer + 2 };
	u32 i, around;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		for (around = 0; around < 4; around++)
			fill_and_drain(pages[i] * NODES + around - 1);
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

/* Copies every node with its place: an operation that failed moved none. */
static struct bheap_node *nodes_copy(struct subject *subject)
{
	struct bheap_node *copy = calloc(subject->nr + 1UL, sizeof(*copy));
	struct bheap_node *page;
	u32 pos;

	assert_non_null(copy);
	copy[0] = subject->heap.first;
	for (pos = 0; pos + 1 < subject->nr; pos++) {
		page = core_page(&subject->run.pages, pos / NODES);
		assert_non_null(page);
		copy[pos + 1] = page[pos % NODES];
	}
	return copy;
}

static int try(struct subject *subject, u32 op, struct bheap_node *node)
{
	if (op == 0)
		return bheap_push(&subject->heap, node);
	if (op == 1)
		return bheap_replace(&subject->heap, node);
	return bheap_pop(&subject->heap);
}

/* Fail the first page, then the second ... until the operation succeeds. */
static void fault_everywhere(struct subject *subject, u32 op, u32 key)
{
	const int errors[] = { -ENOMEM, -EIO, -EAGAIN };
	struct bheap_node first = subject->heap.first;
	struct bheap_node node = node_new(subject, key);
	struct bheap_node *before, *after;
	u32 k, nr = subject->nr;
	int err;

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
	u32 i, n = 5 * NODES + 200;

	(void)state;
	subject_init(&subject, 2 * n);
	for (i = 0; i < n; i++)
		push(&subject, test_below(&subject.random, KEYS));
	for (i = 0; i < 150; i++)
		fault_everywhere(&subject, i % 3,
				 test_below(&subject.random, KEYS));
	assert_true(subject.faults.failed > 150);
	while (subject.nr)
		pop(&subject);
	subject_free(&subject);
}

/* Pages from the top to page @page; how an operation's cost is bounded. */
static u32 depth_of(u32 page)
{
	const u32 outer = NODES - (NODES / 4 - 1);
	u32 depth = 1;

	while (page) {
		page = (page - 1) / outer;
		depth++;
	}
	return depth;
}

/* What the B-heap is for: a path crosses few pages. */
static void pages_touched_are_few(void **state)
{
	struct subject subject;
	u32 i, n = 40000, op, depth;
	u64 before;

	(void)state;
	subject_init(&subject, 2 * n);
	for (i = 0; i < n; i++)
		push(&subject, test_below(&subject.random, KEYS));
	depth = depth_of(n / NODES + 1);
	for (i = 0; i < 300; i++) {
		test_pages_evict_all(&subject.run);
		before = subject.faults.ins;
		op = i % 3;
		if (op == 0)
			push(&subject, test_below(&subject.random, KEYS));
		else if (op == 1)
			replace(&subject, test_below(&subject.random, KEYS));
		else
			pop(&subject);
		/* Pop brings in the last page besides its path. */
		assert_true(subject.faults.ins - before <= depth + (op == 2));
	}
	subject_free(&subject);
}

struct sweep_calls {
	u32 stale;
	u32 ahead;
};

static bool is_stale(void *context, const struct bheap_node *node)
{
	struct sweep_calls *calls = context;

	calls->stale++;
	return node->stamp & STALE;
}

static void ahead(void *context, const struct bheap_node *node)
{
	struct sweep_calls *calls = context;

	(void)node;
	calls->ahead++;
}

/* Make about @of in 100 nodes stale, the first excepted; returns how many. */
static u32 make_stale(struct subject *subject, u32 of)
{
	struct bheap_node *page;
	u32 pos, stale = 0;

	for (pos = 0; pos + 1 < subject->nr; pos++) {
		page = core_page(&subject->run.pages, pos / NODES);
		assert_non_null(page);
		if (test_below(&subject->random, 100) < of)
			page[pos % NODES].stamp |= STALE;
		stale += !!(page[pos % NODES].stamp & STALE);
	}
	return stale;
}

/* Bring the books up to date after a sweep, which does not say what it took. */
static void recount(struct subject *subject, u32 *stalep)
{
	u32 *live = calloc(subject->max, sizeof(*live));
	struct bheap_node *nodes;
	u32 i;

	assert_non_null(live);
	subject->nr = subject->heap.nr;
	nodes = nodes_copy(subject);
	*stalep = 0;
	memset(subject->count, 0, sizeof(subject->count));
	for (i = 0; i < subject->nr; i++) {
		u32 key = key_of(nodes[i].deadline);

		assert_int_equal(subject->live[nodes[i].slot], key + 1);
		assert_int_equal(live[nodes[i].slot], 0);
		live[nodes[i].slot] = key + 1;
		subject->count[key]++;
		*stalep += !!(nodes[i].stamp & STALE);
	}
	free(nodes);
	free(subject->live);
	subject->live = live;
}

static void sweep_takes_the_stale(void **state)
{
	const u32 shares[] = { 0, 1, 50, 99, 100 };
	struct sweep_calls calls = { 0 };
	struct subject subject;
	u32 i, n, nr, left, stale, rounds;
	bool more;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		n = 3000 + test_seed % 100;
		subject_init(&subject, n + 1);
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		stale = make_stale(&subject, shares[i]);
		nr = subject.nr;
		rounds = 0;
		do {
			calls.stale = 0;
			more = bheap_subtree.sweep(&subject.heap, 16, is_stale,
						   ahead, &calls);
			assert_in_range(calls.stale, 0, 16);
			if (rounds % 16 == 0)
				validate(&subject);
			assert_true(rounds++ < n);
			test_pages_trim(&subject.run);
			test_pages_evict(&subject.run, 2);
		} while (more);
		validate(&subject);

		/* Nothing moved but by the sweep itself: one is enough. */
		recount(&subject, &left);
		assert_int_equal(left, 0);
		assert_int_equal(subject.nr, nr - stale);
		while (subject.nr)
			pop(&subject);
		subject_free(&subject);
	}
	if (NODES > 8)
		assert_true(calls.ahead > 0);
}

/* In between, timers come and go; a sweep may miss what moved, not take what
 * lives, and the next ones find it.
 */
static void sweep_among_operations(void **state)
{
	struct sweep_calls calls = { 0 };
	struct subject subject;
	u32 i, n = 2000, left, live;

	(void)state;
	subject_init(&subject, 4 * n);
	while (subject.nr < n)
		push(&subject, test_below(&subject.random, KEYS));
	live = subject.nr - make_stale(&subject, 90);

	for (i = 0; i < 4000; i++) {
		bheap_subtree.sweep(&subject.heap, 4, is_stale, ahead, &calls);
		subject.nr = subject.heap.nr;
		if (i % 16 == 0) {
			recount(&subject, &left);
			assert_int_equal(subject.nr - left, live);
			validate(&subject);
		}
		push(&subject, test_below(&subject.random, KEYS));
		if (i % 16 == 15)
			recount(&subject, &left);
		if (i % 16 == 15 && !(subject.heap.first.stamp & STALE)) {
			pop(&subject);
			live--;
		}
		live++;
	}
	for (i = 0; i < 2; i++)
		while (bheap_subtree.sweep(&subject.heap, 64, is_stale, ahead,
					   &calls))
			;
	recount(&subject, &left);
	assert_in_range(left, 0, 1);	/* the first is not the sweep's */
	assert_int_equal(subject.nr - left, live);
	subject_free(&subject);
}

static void sweep_with_faults(void **state)
{
	struct sweep_calls calls = { 0 };
	struct subject subject;
	u32 i, n = 2000, left, live, seen = 0;

	(void)state;
	subject_init(&subject, n + 1);
	while (subject.nr < n)
		push(&subject, test_below(&subject.random, KEYS));
	live = subject.nr - make_stale(&subject, 80);
	for (i = 0; i < 2000; i++) {
		test_pages_trim(&subject.run);
		test_pages_evict_all(&subject.run);
		subject.faults.fail_in = 1 + i % 5;
		subject.faults.error = -EAGAIN;
		bheap_subtree.sweep(&subject.heap, 8, is_stale, ahead, &calls);
		subject.faults.fail_in = 0;
		if (i % 50 == 0)
			validate(&subject);
		if (subject.nr != subject.heap.nr)
			seen++;
		recount(&subject, &left);
		assert_int_equal(subject.nr - left, live);
	}
	assert_true(seen > 10);
	for (i = 0; i < 2; i++)
		while (bheap_subtree.sweep(&subject.heap, 64, is_stale, ahead,
					   &calls))
			;
	recount(&subject, &left);
	assert_int_equal(left, 0);
	assert_int_equal(subject.nr, live);
	subject_free(&subject);
}

/* The test's own test: validate sees a node out of order, wherever it is. */
static void validate_sees_disorder(void **state)
{
	struct bheap_node *page;
	struct subject subject;
	u32 pos, n = 2 * NODES + 30;
	u64 kept;

	(void)state;
	subject_init(&subject, n + 1);
	while (subject.nr < n)
		push(&subject, 1 + test_below(&subject.random, KEYS - 1));
	for (pos = 0; pos + 1 < n; pos++) {
		page = core_page(&subject.run.pages, pos / NODES);
		assert_non_null(page);
		kept = page[pos % NODES].deadline;
		page[pos % NODES].deadline = 0;
		assert_int_equal(bheap_subtree.validate(&subject.heap), -EIO);
		page[pos % NODES].deadline = kept;
		assert_int_equal(bheap_subtree.validate(&subject.heap), 0);
	}
	subject_free(&subject);
}

static void top_names_the_next(void **state)
{
	struct sweep_calls calls = { 0 };
	struct subject subject;
	u64 before;
	u32 n;

	(void)state;
	subject_init(&subject, 100);
	for (n = 0; n < 50; n++) {
		calls.ahead = 0;
		validate(&subject);	/* brings all pages in */
		bheap_subtree.top(&subject.heap, ahead, &calls);
		assert_true(calls.ahead <= n && (n < 2 || calls.ahead));
		test_pages_evict_all(&subject.run);
		before = subject.faults.ins;
		bheap_subtree.top(&subject.heap, ahead, &calls);
		assert_true(subject.faults.ins == before);
		push(&subject, test_below(&subject.random, KEYS));
	}
	subject_free(&subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fill_and_drain_every_small_size),
		cmocka_unit_test(fill_and_drain_around_pages),
		cmocka_unit_test(random_operations_small),
		cmocka_unit_test(random_operations_large),
		cmocka_unit_test(random_operations_with_evictions),
		cmocka_unit_test(faults_change_nothing),
		cmocka_unit_test(pages_touched_are_few),
		cmocka_unit_test(sweep_takes_the_stale),
		cmocka_unit_test(sweep_among_operations),
		cmocka_unit_test(sweep_with_faults),
		cmocka_unit_test(validate_sees_disorder),
		cmocka_unit_test(top_names_the_next),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
