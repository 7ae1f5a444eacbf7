// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Several nodes taken at once, in each layout: as by pops one after another, in
 * order, pages and work, also where a page fails.
 */
#include "heap.h"

#define MOST	40U

/**
 * struct pair - two heaps with the same history
 * @take: takes several nodes at once
 * @pop: pops as many
 * @random: for both
 * @batches: takes of several nodes
 * @stopped: takes that a fault ended
 */
struct pair {
	struct subject take;
	struct subject pop;
	u64 random;
	u32 batches;
	u32 stopped;
};

/* Not on the stack: the kernel's is small. */
static struct pair *pair_new(u32 max, u64 seed)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	assert_non_null(pair);
	pair->random = ~seed;
	subject_init(&pair->take, max);
	subject_init(&pair->pop, max);
	return pair;
}

static void pair_free(struct pair *pair)
{
	subject_free(&pair->take);
	subject_free(&pair->pop);
	free(pair);
}

/* Compares what is outside the pages, and how many pages there are. */
static void compare(struct pair *pair)
{
	struct bheap take = pair->take.heap, pop = pair->pop.heap;

	assert_int_equal(take.pages->nr, pop.pages->nr);
	take.pages = NULL;
	pop.pages = NULL;
	if (!take.nr) {
		memset(&take.first, 0, sizeof(take.first));
		memset(&pop.first, 0, sizeof(pop.first));
	}
	assert_memory_equal(&take, &pop, sizeof(take));
}

static void push_both(struct pair *pair, u32 key)
{
	push(&pair->take, key);
	push(&pair->pop, key);
}

/* Pops a node, which is @node. */
static void pop_this(struct subject *subject, const struct bheap_node *node)
{
	assert_int_equal(bheap_find_first(&subject->heap, NULL, NULL, NULL), 1);
	assert_memory_equal(&subject->heap.first, node, sizeof(*node));
	assert_int_equal(bheap_pop(&subject->heap), 0);
	went_out(subject, node);
}

/* Copies the first node and those that follow it, up to @max in all. */
static u32 copy_next(struct subject *subject, struct bheap_node *nodes, u32 max)
{
	u64 last = test_one_in(&subject->random, 3) ?
		   deadline_of(test_below(&subject->random, KEYS)) : ~0ULL;
	const struct bheap_node *behind = NULL;
	u64 ins = subject->faults.ins;
	u32 nr, i;

	nodes[0] = subject->heap.first;
	nr = bheap_next(&subject->heap, last, max - 1, &behind);
	assert_true(nr <= max - 1 && nr < subject->nr);
	assert_true(subject->faults.ins == ins);
	for (i = 0; i < nr; i++) {
		assert_true(behind[i].deadline <= last);
		nodes[i + 1] = behind[i];
	}
	return nr + 1;
}

/* Takes some of the next nodes of one heap, and pops as many of the other. */
static void take_some(struct pair *pair)
{
	struct bheap_node nodes[MOST];
	u32 nr, i;

	if (!pair->take.nr)
		return;
	find_first(&pair->take);
	find_first(&pair->pop);
	nr = copy_next(&pair->take, nodes, 1 + test_below(&pair->random, MOST));
	/* Fewer may be used than were known. */
	if (test_one_in(&pair->random, 3))
		nr = 1 + test_below(&pair->random, nr);
	assert_int_equal(bheap_take(&pair->take.heap, nr), nr);
	for (i = 0; i < nr; i++) {
		went_out(&pair->take, &nodes[i]);
		pop_this(&pair->pop, &nodes[i]);
	}
	pair->batches += nr > 1;
	compare(pair);
}

static u32 some_key(struct pair *pair, u32 step)
{
	/* Times to live of all lengths; then many of one deadline. */
	u32 now = step / 20 % (KEYS / 2);

	if (step / 5000 % 2)
		return now + 1;
	return now + test_below(&pair->random, KEYS / 2);
}

/* Returns how many batches of several nodes there were. */
static u32 mixed_steps(u32 steady, u32 steps)
{
	struct pair *pair = pair_new(2 * steady, test_seed);
	u32 i, key, batches;

	for (i = 0; i < steps; i++) {
		key = some_key(pair, i);
		if (pair->take.nr < steady ||
		    (pair->take.nr < 2 * steady - MOST &&
		     !test_one_in(&pair->random, MOST / 2)))
			push_both(pair, key);
		else
			take_some(pair);
		if (test_one_in(&pair->random, 16)) {
			/* Another time of day: the front has a present. */
			pair->take.heap.now = deadline_of(i / 20 % KEYS);
			pair->pop.heap.now = pair->take.heap.now;
		}
		if (test_one_in(&pair->random, 500)) {
			validate(&pair->take);
			validate(&pair->pop);
		}
	}
	while (pair->take.nr)
		take_some(pair);
	assert_int_equal(pair->pop.nr, 0);
	batches = pair->batches;
	pair_free(pair);
	return batches;
}

/* Chains, holes and free pages that a take leaves behind show as pages or as a
 * state that differ.
 */
static void one_is_taken_as_by_a_pop(void **state)
{
	u32 batches;

	(void)state;
	batches = mixed_steps(30, 5000);
	batches += mixed_steps(5 * NODES, 20000);
	batches += mixed_steps(CORE_PAGE_SIZE > 4096 ? 5000 : 40 * NODES, 60000);
	/* The test's own test: several nodes were known. */
	assert_true(batches > 500 || !test_layout->next);
}

/* Takes nodes while all pages from the k-th on fail: those taken are the first. */
static void take_with_a_fault(struct pair *pair, u32 k)
{
	struct bheap_node nodes[MOST];
	int ret;
	u32 nr, i;

	find_first(&pair->take);
	find_first(&pair->pop);
	nr = copy_next(&pair->take, nodes, MOST);
	test_pages_evict_all(&pair->take.run);
	pair->take.faults.fail_in = k;
	pair->take.faults.for_good = true;
	pair->take.faults.error = -EIO;
	ret = bheap_take(&pair->take.heap, nr);
	assert_true(ret == -EIO || (ret > 0 && ret <= (int)nr));
	pair->stopped += ret > 0 && ret < (int)nr;
	pair->take.faults.fail_in = 0;
	pair->take.faults.for_good = false;
	for (i = 0; (int)i < ret; i++) {
		went_out(&pair->take, &nodes[i]);
		pop_this(&pair->pop, &nodes[i]);
	}
	assert_int_equal(pair->take.heap.nr, pair->pop.heap.nr);
	if (!pair->take.heap.is_bound && pair->take.nr)
		assert_true(pair->take.heap.first.deadline ==
			    deadline_of(least_key(&pair->take)));
	validate(&pair->take);
}

/* Returns how many takes a fault ended. */
static u32 drain_with_faults(u32 n, u64 seed)
{
	struct pair *pair = pair_new(n + 1, seed);
	u32 k = 0, i, stopped;

	while (pair->take.nr < n)
		push_both(pair, test_below(&pair->random, KEYS));
	while (pair->take.nr) {
		take_with_a_fault(pair, k++ % 12 + 1);
		/* Pages return, and work continues. */
		for (i = 0; i < 8 && pair->take.nr; i++)
			pop(&pair->take);
		while (pair->pop.nr > pair->take.nr)
			pop(&pair->pop);
		if (k < 2 * n / MOST)
			push_both(pair, KEYS / 2 +
				  test_below(&pair->random, KEYS / 2));
	}
	stopped = pair->stopped;
	pair_free(pair);
	return stopped;
}

static void faults_end_a_take(void **state)
{
	u32 n = CORE_PAGE_SIZE > 4096 ? 5000 : 60 * NODES, stopped = 0, i;

	(void)state;
	for (i = 0; i < (NODES > 16 ? 1 : 40); i++)
		stopped += drain_with_faults(n, test_seed + i);
	/* The test's own test: small pages have holes and chains enough. */
	assert_true(stopped || NODES > 16 || !test_layout->next);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(one_is_taken_as_by_a_pop),
		test_with_layouts(faults_end_a_take),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
