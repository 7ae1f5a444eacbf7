// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The B-heap's sweep, in each of its layouts: it removes stale nodes and only
 * those, whatever happens meanwhile.
 */
#include <stdlib.h>

#include "heap.h"

/* Makes about @of in 100 nodes stale, the first excepted; returns how many. */
static u32 make_stale(struct subject *subject, u32 of)
{
	struct nodes nodes = nodes_of(subject);
	u32 i, stale = 0;

	for (i = 0; i < nodes.nr; i++) {
		if (nodes.node[i] != &subject->heap.first &&
		    test_below(&subject->random, 100) < of)
			nodes.node[i]->stamp |= STALE;
		stale += !!(nodes.node[i]->stamp & STALE);
	}
	free(nodes.node);
	return stale;
}

/* Updates the model after a sweep, which does not report its nodes. */
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

/* Sweeps that find all stale nodes without other operations: a node that fills
 * a hole was checked before, but a rising page carries some others past the
 * sweep.
 */
static u32 sweeps_max(void)
{
	return test_layout == &bheap_sorted ? 8 : 1;
}

/* Returns the most nodes that one call may check: a page, when steps have
 * summed up to one.
 */
static u32 looks_max(u32 steps)
{
	return test_layout != &bheap_subtree ? steps + NODES : steps;
}

/* Sweeps until @most nodes are stale; returns how many are. */
static u32 sweep_to_end(struct subject *subject, u32 sweeps, u32 most)
{
	struct sweep_calls calls = { .subject = subject };
	u32 left = ~0U;

	while (sweeps-- && left > most) {
		while (test_layout->sweep(&subject->heap, 64, is_stale, ahead,
					  &calls))
			;
		/* Nothing is left where only a sweep puts it. */
		if (test_layout != &bheap_radix)
			assert_int_equal(subject->heap.sorted.run, 0);
		recount(subject, &left);
	}
	return left;
}

static void sweep_takes_the_stale(void **state)
{
	const u32 shares[] = { 0, 1, 50, 99, 100 };
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 i, n, nr, left, stale, rounds, looks, aheads = 0;
	bool more;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		n = 3000 + test_seed % 100;
		subject_init(&subject, n + 1);
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		stale = make_stale(&subject, shares[i]);
		nr = subject.nr;
		rounds = looks = 0;
		do {
			calls.stale = 0;
			calls.ahead = 0;
			more = test_layout->sweep(&subject.heap, 13, is_stale,
						  ahead, &calls);
			assert_in_range(calls.stale, 0, looks_max(13));
			assert_in_range(calls.ahead, 0, 13);
			aheads += calls.ahead;
			looks += calls.stale;
			if (rounds % 16 == 0)
				validate(&subject);
			assert_true(rounds++ < n);
			test_pages_trim(&subject.run);
			test_pages_evict(&subject.run, 2);
		} while (more);
		validate(&subject);
		assert_in_range(looks, n / 2, 2 * n);

		recount(&subject, &left);
		/* One finds most. */
		assert_true(left <= stale / 6 + 1);
		left = sweep_to_end(&subject, sweeps_max() - 1, 0);
		assert_true(left == 0 || left == ~0U);
		recount(&subject, &left);
		assert_int_equal(left, 0);
		assert_int_equal(subject.nr, nr - stale);
		assert_true(subject.run.pages.nr <= pages_max(&subject));
		while (subject.nr)
			pop(&subject);
		subject_free(&subject);
	}
	if (NODES > 8)
		assert_true(aheads > 0);
}

/* Stale nodes of one page leave it in one sweep. */
static void sweep_of_a_page(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 i, left;

	(void)state;
	for (i = 0; i < 100; i++) {
		subject_init(&subject, 2 * NODES);
		subject.random += i;
		while (subject.nr <= NODES)
			push(&subject, test_below(&subject.random, KEYS));
		make_stale(&subject, i);
		while (test_layout->sweep(&subject.heap, 1 + i, is_stale,
					  ahead, &calls))
			;
		recount(&subject, &left);
		assert_int_equal(left, 0);
		subject_free(&subject);
	}
}

/* The node it was about to check is popped; it continues with the rest. */
static void nodes_gone_amid_a_sweep(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 n = 4 * NODES, few, left;

	(void)state;
	for (few = 1; few < NODES; few += 1 + NODES / 16) {
		subject_init(&subject, 2 * n);
		subject.random += few;
		while (subject.nr <= n)
			push(&subject, KEYS / 2 + test_below(&subject.random,
							     KEYS / 2));
		while (subject.nr <= n + few)
			push(&subject, test_below(&subject.random, KEYS / 2));
		left = make_stale(&subject, 50);
		assert_true(left > 0);
		assert_true(test_layout->sweep(&subject.heap, 1, is_stale,
					       ahead, &calls));
		recount(&subject, &left);
		while (subject.nr > n)
			pop(&subject);
		recount(&subject, &left);
		if (test_layout == &bheap_sorted) {
			assert_true(left > n / 4);
			left = sweep_to_end(&subject, 1, 0);
			assert_in_range(left, 0, n / 8);
		}
		while (subject.nr)
			pop(&subject);
		subject_free(&subject);
	}
}

/* Pages disappear before the sweep is there: it continues with the last one
 * left.
 */
static void pages_gone_amid_a_sweep(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 n = 8 * NODES, gone, left, all = 0;

	(void)state;
	for (gone = NODES; gone < 6 * NODES; gone += 1 + NODES / 5) {
		subject_init(&subject, 2 * n);
		subject.random += gone;
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		assert_true(test_layout->sweep(&subject.heap, 1, is_stale,
					       ahead, &calls));
		while (subject.nr > n - gone)
			pop(&subject);
		make_stale(&subject, 100);
		while (test_layout->sweep(&subject.heap, 8, is_stale, ahead,
					  &calls))
			;
		recount(&subject, &left);
		all += left;
		subject_free(&subject);
	}
	/* Up to 25 rounds: almost none, not a page in each. */
	assert_in_range(all, 0, 5 * NODES);
}

/* At any position of a sweep, all remaining nodes come out in order, and the
 * sweep checks only nodes that are in.
 */
static void draining_amid_a_sweep(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 steps, left, n = 40 * NODES;

	(void)state;
	if (n > 2000)
		n = 2000;
	for (steps = 0; steps < 2 * n; steps += 1 + n / 61) {
		subject_init(&subject, n + 1);
		subject.random += steps;
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		make_stale(&subject, 30);
		test_layout->sweep(&subject.heap, steps, is_stale, ahead,
				   &calls);
		recount(&subject, &left);
		while (subject.nr > n / 3)
			pop(&subject);
		test_pages_trim(&subject.run);
		/* It continues with the remaining ones. */
		if (test_one_in(&subject.random, 2)) {
			left = sweep_to_end(&subject, 1, 0);
			assert_in_range(left, 0, n / 6);
		}
		while (subject.nr < n / 2)
			push(&subject, test_below(&subject.random, KEYS));
		while (subject.nr)
			pop(&subject);
		subject_free(&subject);
	}
}

/* Sorted pages: live nodes of the first pages come first. Their last node is
 * popped while the page that follows still waits for a sinking hole.
 */
static void surplus_comes_after_the_run(void **state)
{
	const u32 n = 40 * NODES, rounds = NODES < 16 ? 300 : 10;
	struct bheap_sorted_state *s;
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 i, left, seen = 0;

	(void)state;
	if (test_layout != &bheap_sorted)
		return;
	for (i = 0; i < rounds; i++) {
		subject_init(&subject, n + 1);
		subject.random += i;
		s = &subject.heap.sorted;
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		make_stale(&subject, 40);
		do {
			if (!test_layout->sweep(&subject.heap, 1, is_stale,
						ahead, &calls))
				break;
		} while (s->hole != 1 || s->run <= NODES);
		validate(&subject);
		recount(&subject, &left);
		while (subject.nr && s->run > NODES) {
			seen += s->run == NODES + 1 && s->hole;
			pop(&subject);
			seen -= s->run == NODES + 1 && s->hole;
		}
		while (subject.nr)
			pop(&subject);
		subject_free(&subject);
	}
	if (NODES < 16)
		assert_true(seen > 0);
}

/* Sorted pages: one node of the tree's first page is left when the sweep makes a
 * hole right below. The hole is filled before that node is taken.
 */
static void the_last_node_waits_for_the_hole(void **state)
{
	const u32 n = 40 * NODES;
	struct bheap_sorted_state *s;
	struct bheap_node **page;
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 i, left;

	(void)state;
	if (test_layout != &bheap_sorted)
		return;
	subject_init(&subject, n + 1);
	s = &subject.heap.sorted;
	for (i = 0; i < n; i++)
		push(&subject, i * (KEYS - 1ULL) / n);
	while (s->head != NODES - 1 || s->hole)
		pop(&subject);
	/* Pages 0 to 3 are not the tree's, page 4 is its first. */
	page = (struct bheap_node **)subject.run.pages.dir[0];
	page[5]->stamp |= STALE;
	while (!s->hole)
		assert_true(test_layout->sweep(&subject.heap, 1, is_stale,
					       ahead, &calls));
	assert_int_equal(s->head, NODES - 1);
	assert_int_equal(s->hole, 2);
	recount(&subject, &left);
	assert_int_equal(left, 0);
	pop(&subject);
	validate(&subject);
	while (subject.nr)
		pop(&subject);
	subject_free(&subject);
}

/* Pops remove nodes that the sweep was about to check. */
static void pops_amid_a_sweep(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 n, max = 20 * NODES < 600 ? 20 * NODES : 600;

	(void)state;
	for (n = 1; n < max; n += 1 + n / 50) {
		subject_init(&subject, n + 1);
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		while (subject.nr) {
			test_layout->sweep(&subject.heap, 1, is_stale, ahead,
					   &calls);
			if (test_one_in(&subject.random, 3))
				pop(&subject);
		}
		subject_free(&subject);
	}
}

/* Meanwhile timers come and go. A sweep may miss moved nodes but removes no
 * live one, and the next sweeps find the rest.
 */
static void sweep_among_operations(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 i, n = 2000, left, live;

	(void)state;
	subject_init(&subject, 4 * n);
	while (subject.nr < n)
		push(&subject, test_below(&subject.random, KEYS));
	live = subject.nr - make_stale(&subject, 90);

	for (i = 0; i < 4000; i++) {
		test_layout->sweep(&subject.heap, 4, is_stale, ahead, &calls);
		subject.nr = subject.heap.nr;
		if (i % 16 == 0) {
			recount(&subject, &left);
			assert_int_equal(subject.nr - left, live);
			validate(&subject);
		}
		push(&subject, test_below(&subject.random, KEYS));
		if (i % 16 == 15) {
			recount(&subject, &left);
			find_first(&subject);
		}
		if (i % 16 == 15 && !(subject.heap.first.stamp & STALE)) {
			pop(&subject);
			live--;
		}
		live++;
	}
	/* The first is not the sweep's. */
	left = sweep_to_end(&subject, sweeps_max() + 1, 1);
	assert_in_range(left, 0, 1);
	assert_int_equal(subject.nr - left, live);
	subject_free(&subject);
}

static void sweep_with_faults(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	u32 i, n = TEST_ROUNDS(2000), left, live, seen = 0;
	bool goes_on;

	(void)state;
	subject_init(&subject, n + 1);
	while (subject.nr < n)
		push(&subject, test_below(&subject.random, KEYS));
	live = subject.nr - make_stale(&subject, 80);
	for (i = 0; i < n; i++) {
		test_pages_trim(&subject.run);
		test_pages_evict_all(&subject.run);
		subject.faults.fail_in = 1 + i % 40;
		subject.faults.error = -EAGAIN;
		goes_on = test_layout->sweep(&subject.heap, 8, is_stale, ahead, &calls);
		assert_int_equal(goes_on, subject.heap.sweep != 0);
		subject.faults.fail_in = 0;
		if (i % 50 == 0)
			validate(&subject);
		if (subject.nr != subject.heap.nr)
			seen++;
		recount(&subject, &left);
		assert_int_equal(subject.nr - left, live);
	}
	/* Radix pages check a page of nodes at once. */
	assert_true(seen > (test_layout == &bheap_radix && NODES > 1000 ? 0 : 10));
	assert_int_equal(sweep_to_end(&subject, sweeps_max() + 1, 0), 0);
	assert_int_equal(subject.nr, live);
	subject_free(&subject);
}

/* At a sweep's end the run goes to the insertion heap. If that is full and its
 * page is missing, the run waits.
 */
static void the_run_waits_for_a_page(void **state)
{
	struct subject subject;
	struct sweep_calls calls = { .subject = &subject };
	struct bheap_sorted_state *s = &subject.heap.sorted;
	u32 n = 40 * NODES, k, waited = 0;

	(void)state;
	if (test_layout != &bheap_sorted)
		return;
	for (k = 1; k < 8; k++) {
		subject_init(&subject, n + 1);
		subject.random += k;
		while (subject.nr < n)
			push(&subject, test_below(&subject.random, KEYS));
		make_stale(&subject, 40);
		while (test_layout->sweep(&subject.heap, 1, is_stale, ahead,
					  &calls)) {
			if (!s->run || s->inserted < NODES)
				continue;
			test_pages_trim(&subject.run);
			test_pages_evict_all(&subject.run);
			subject.faults.fail_in = k;
			subject.faults.error = -EAGAIN;
			test_layout->sweep(&subject.heap, 1, is_stale, ahead,
					   &calls);
			waited += !subject.faults.fail_in;
			subject.faults.fail_in = 0;
			validate(&subject);
		}
		subject_free(&subject);
	}
	assert_true(waited > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(sweep_takes_the_stale),
		test_with_layouts(sweep_of_a_page),
		test_with_layouts(nodes_gone_amid_a_sweep),
		test_with_layouts(pages_gone_amid_a_sweep),
		test_with_layouts(draining_amid_a_sweep),
		test_with_layouts(surplus_comes_after_the_run),
		test_with_layouts(the_last_node_waits_for_the_hole),
		test_with_layouts(pops_amid_a_sweep),
		test_with_layouts(sweep_among_operations),
		test_with_layouts(sweep_with_faults),
		test_with_layouts(the_run_waits_for_a_page),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
