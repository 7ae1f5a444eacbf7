// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Radix pages against a table of their nodes, with deadlines of all scales: from
 * nanoseconds to centuries apart, equal, in order, before the front. Nodes become
 * stale and move, the heap is swept, pages fail and leave memory. The whole heap is
 * compared after each step.
 */
#include <stdlib.h>

#include "support.h"
#include "bheap_radix_pages.h"

/* Chains become long with these nodes, at any page size to 4 KiB. */
#define MOST	(NODES > 256 ? 1000U : NODES > 32 ? 6000U : 160 * NODES)

#define FEW	(4 * NODES < MOST / 2 ? 4 * NODES : MOST / 2)

#define RUNS	(NODES < 16 ? 40U : 4U)

/**
 * struct entry - what is expected of a slot
 * @deadline: its node's
 * @later: what a review reports, if that is later
 * @is_in: the heap has its node
 * @is_stale: a review or a sweep may take the node
 * @is_moved: a review has reported @later in this step
 * @seen: the walk that met it last
 */
struct entry {
	u64 deadline;
	u64 later;
	bool is_in;
	bool is_stale;
	bool is_moved;
	u32 seen;
};

/**
 * struct counts - steps of all runs
 * @moved: nodes that a review moved
 * @dropped: nodes that a review dropped
 * @swept: nodes that a sweep removed
 * @failed: calls that failed
 */
struct counts {
	u32 moved;
	u32 dropped;
	u32 swept;
	u32 failed;
};

/**
 * struct model - a heap and its nodes
 * @entry: by slot
 * @nr: nodes in the heap
 * @free: the slot where the search for a free one begins
 * @walks: comparisons until now
 * @last: the deadline of the last push
 * @base: where clusters are
 * @crowd: all but one of this number of pushes go to the first cluster
 * @is_faulty: pages are missing in this call
 * @turn: the page that failed in the call before; 0 = none did
 * @failed: pages that have failed until now
 * @counts: for the test's own test
 */
struct model {
	struct bheap heap;
	struct test_faults faults;
	struct test_pages run;
	struct entry *entry;
	u32 nr;
	u32 free;
	u32 walks;
	u64 last;
	u64 base[4];
	u32 crowd;
	u64 random;
	bool is_faulty;
	u32 turn;
	u64 failed;
	struct counts *counts;
};

static struct model *model_new(u64 seed, struct counts *counts)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	model->random = seed;
	model->counts = counts;
	model->entry = calloc(MOST, sizeof(*model->entry));
	assert_non_null(model->entry);
	test_pages_init(&model->run, bheap_pages_max(test_layout, MOST),
			&model->faults, seed);
	bheap_init(&model->heap, test_layout, &model->run.pages);
	return model;
}

static void model_free(struct model *model)
{
	test_pages_free(&model->run);
	free(model->entry);
	free(model);
}

/* ------------------------------------------------------------------------
 * Comparison
 */

static void visit(void *context, const struct bheap_node *node)
{
	struct model *model = context;
	struct entry *entry = &model->entry[node->slot];

	assert_true(node->slot < MOST);
	assert_int_equal(node->stamp, node->slot ^ 0x2a2a2a);
	assert_true(entry->is_in);
	assert_true(entry->seen != model->walks);
	entry->seen = model->walks;
	if (node->deadline == entry->deadline && !entry->is_moved)
		return;
	/* It has moved, or there was no room for it. */
	if (node->deadline == entry->deadline)
		assert_true(model->is_faulty ||
			    model->heap.radix.near + 1 >= NODES);
	else
		assert_true(entry->is_moved && node->deadline == entry->later);
	model->counts->moved += node->deadline == entry->later;
	entry->deadline = node->deadline;
	entry->is_moved = false;
}

/* The heap is valid, and has the model's nodes: each of them once. */
static void compare(struct model *model)
{
	const struct bheap_radix_state *s = &model->heap.radix;

	assert_int_equal(model->heap.nr, model->nr);
	model->walks++;
	assert_int_equal(test_layout->validate(&model->heap, visit, model), 0);
	assert_true(s->tables <= radix_tables_max(MOST));
	assert_true(s->tables || !s->pages_end);
	if (!model->nr)
		assert_int_equal(model->heap.pages->nr, 0);
}

static u64 least(const struct model *model)
{
	u64 least = ~0ULL;
	u32 i;

	for (i = 0; i < MOST; i++)
		if (model->entry[i].is_in && model->entry[i].deadline < least)
			least = model->entry[i].deadline;
	return least;
}

/* ------------------------------------------------------------------------
 * Steps
 */

static bool review(void *context, struct bheap_node *node)
{
	struct model *model = context;
	struct entry *entry = &model->entry[node->slot];

	assert_true(entry->is_in && entry->deadline == node->deadline);
	if (entry->is_stale) {
		entry->is_in = false;
		model->nr--;
		model->counts->dropped++;
		return false;
	}
	if (entry->later > node->deadline) {
		entry->is_moved = true;
		node->deadline = entry->later;
	}
	return true;
}

static bool stale(void *context, const struct bheap_node *node)
{
	struct model *model = context;
	struct entry *entry = &model->entry[node->slot];

	assert_true(entry->is_in && entry->deadline == node->deadline);
	if (!entry->is_stale)
		return false;
	entry->is_in = false;
	model->nr--;
	model->counts->swept++;
	return true;
}

static void ahead(void *context, const struct bheap_node *node,
		  enum bheap_when when)
{
	struct model *model = context;

	(void)when;
	assert_true(model->entry[node->slot].is_in);
}

/* Lets a page fail in some of the calls. After that, often the next page fails in the
 * next call, and so on until one succeeds: steps of a kind follow each other.
 */
static void begin_call(struct model *model, u32 faults)
{
	u32 most;

	test_pages_trim(&model->run);
	model->is_faulty = model->turn ||
			   (faults && test_one_in(&model->random, faults));
	if (!model->is_faulty)
		return;
	test_pages_evict_all(&model->run);
	model->faults.error = -EIO;
	model->faults.for_good = test_one_in(&model->random, 2);
	if (model->turn || test_one_in(&model->random, 2)) {
		model->faults.fail_in = ++model->turn;
		return;
	}
	most = test_one_in(&model->random, 8) ? 512 : 16;
	model->faults.fail_in = 1 + test_below(&model->random, most);
}

static int end_call(struct model *model, int ret)
{
	if (model->faults.failed == model->failed)
		model->turn = 0;
	model->failed = model->faults.failed;
	model->faults.fail_in = 0;
	assert_true(ret >= 0 || (model->is_faulty && ret == -EIO));
	model->counts->failed += ret < 0;
	return ret;
}

/* Returns a deadline: mostly within a distance of any magnitude behind @from. */
static u64 some_deadline(struct model *model, u64 from)
{
	u32 shift = test_below(&model->random, 64);
	u64 distance = test_random(&model->random) >> shift;
	u64 base = model->base[test_below(&model->random, 4)];

	if (!test_one_in(&model->random, model->crowd))
		return model->base[0] + (distance >> 40);
	switch (test_below(&model->random, 8)) {
	case 0:
		return model->last;
	case 1:
		return model->last + (model->last < ~0ULL);
	case 2:
	case 3:
		return base + (distance >> 44);
	case 4:
		return base - (distance >> 52);
	case 5:
		return test_one_in(&model->random, 16) ? ~0ULL - (distance >> 60) :
							 from;
	default:
		return from + distance < from ? ~0ULL : from + distance;
	}
}

static struct bheap_node make_node(struct model *model, u64 deadline)
{
	while (model->entry[model->free].is_in)
		model->free = (model->free + 1) % MOST;
	model->last = deadline;
	return (struct bheap_node) {
		.deadline = deadline,
		.slot = model->free,
		.stamp = model->free ^ 0x2a2a2a,
	};
}

static void node_in(struct model *model, const struct bheap_node *node)
{
	model->entry[node->slot] = (struct entry) {
		.deadline = node->deadline,
		.is_in = true,
	};
	model->nr++;
}

static void node_out(struct model *model, const struct bheap_node *node)
{
	struct entry *entry = &model->entry[node->slot];

	assert_true(entry->is_in && entry->deadline == node->deadline);
	entry->is_in = false;
	model->nr--;
}

static void push(struct model *model, u32 faults)
{
	struct bheap_node node = make_node(model,
					   some_deadline(model, model->heap.now));

	begin_call(model, faults);
	if (!end_call(model, bheap_push(&model->heap, &node)))
		node_in(model, &node);
}

/* Finds the first node, unless all are dropped. */
static void find_first(struct model *model, u32 faults)
{
	u32 steps = 0;
	u64 bound = model->heap.first.deadline;
	int ret;

	while (model->heap.is_bound) {
		begin_call(model, faults);
		ret = end_call(model, bheap_find_first(&model->heap, review, ahead,
						       model));
		compare(model);
		if (!model->nr)
			return;
		assert_true(ret == (ret < 0 ? ret : !model->heap.is_bound));
		assert_true(model->heap.first.deadline >= bound);
		/* Others come between the steps. */
		if (model->nr < MOST - 1 && test_one_in(&model->random, 32)) {
			push(model, faults);
			compare(model);
		}
		bound = model->heap.first.deadline;
		steps += ret >= 0;
		assert_true(steps < 64 * BHEAP_RADIX_LEVELS + MOST);
	}
	assert_true(model->heap.first.deadline == least(model));
	if (model->heap.first.deadline > model->heap.now)
		model->heap.now = model->heap.first.deadline;
}

/* Takes the first node and some that follow it. */
static void take_some(struct model *model, u32 faults)
{
	struct bheap_node first = model->heap.first, next[8];
	const struct bheap_node *nodes = NULL;
	u32 nr = bheap_next(&model->heap, ~0ULL, ARRAY_SIZE(next), &nodes);
	int ret, i;

	assert_true(nr <= ARRAY_SIZE(next) && nr < model->nr);
	if (nr)
		memcpy(next, nodes, nr * sizeof(*next));
	begin_call(model, faults);
	ret = end_call(model, bheap_take(&model->heap, nr + 1));
	assert_true(ret <= (int)nr + 1);
	if (ret > 0)
		node_out(model, &first);
	for (i = 1; i < ret; i++) {
		assert_true(next[i - 1].deadline == least(model));
		node_out(model, &next[i - 1]);
	}
}

/* Finds the first node, and pops or replaces it. */
static void take(struct model *model, u32 faults, bool replaces)
{
	struct bheap_node first, node;
	int ret;

	find_first(model, faults);
	if (!model->nr)
		return;
	if (test_one_in(&model->random, 4)) {
		take_some(model, faults);
		return;
	}
	first = model->heap.first;
	node = make_node(model, some_deadline(model, model->heap.now));
	begin_call(model, faults);
	ret = replaces ? bheap_replace(&model->heap, &node) :
			 bheap_pop(&model->heap);
	if (end_call(model, ret))
		return;
	node_out(model, &first);
	if (replaces)
		node_in(model, &node);
}

/* Makes some nodes stale or later. */
static void change(struct model *model)
{
	struct entry *entry;
	u32 i;

	for (i = 0; i < MOST / 256; i++) {
		entry = &model->entry[test_below(&model->random, MOST)];
		if (test_one_in(&model->random, 2))
			entry->is_stale = entry->is_in;
		else
			entry->later = some_deadline(model, entry->deadline);
	}
}

static void sweep(struct model *model, u32 steps, u32 faults)
{
	begin_call(model, faults);
	test_layout->sweep(&model->heap, steps, stale, ahead, model);
	end_call(model, 0);
}

/* Sweeps from begin to end, after which no node is stale but for the first, and no more
 * pages are free than are soon taken.
 */
static void sweep_all(struct model *model, u32 faults)
{
	u32 i, left = 0;

	for (i = 0; i < 2; i++) {
		do {
			sweep(model, 1 + test_below(&model->random, 4 * NODES),
			      faults);
			compare(model);
		} while (model->heap.sweep);
	}
	for (i = 0; i < MOST; i++)
		left += model->entry[i].is_in && model->entry[i].is_stale;
	assert_true(left <= 1);
	assert_true(!radix_has_surplus(&model->heap.radix));
	assert_true(!left || (!model->heap.is_bound &&
			      model->entry[model->heap.first.slot].is_stale));
}

/* Does @rounds steps around @steady nodes. */
static void steps(struct model *model, u32 rounds, u32 steady, u32 faults)
{
	u32 i, what;

	for (i = 0; i < rounds; i++) {
		what = test_below(&model->random, 16);
		if (model->nr < steady ? what < 8 : what < 4) {
			if (model->nr < MOST - 1)
				push(model, faults);
		} else if (model->nr && what < 12) {
			take(model, faults, model->nr < MOST - 1 && what % 2);
		} else if (what < 15) {
			change(model);
			continue;
		} else {
			sweep(model, 1 + test_below(&model->random, 2 * NODES),
			      faults);
		}
		compare(model);
	}
}

static void run(u64 seed, u32 faults, struct counts *counts)
{
	struct model *model = model_new(seed, counts);
	u32 i, k, most;

	for (i = 0; i < 3; i++) {
		for (k = 0; k < ARRAY_SIZE(model->base); k++) {
			most = 2 + test_below(&model->random, 40);
			model->base[k] = model->heap.now +
					 (test_random(&model->random) >> most);
		}
		/* Few nodes, or enough for long chains. */
		model->crowd = i == 1 ? test_below(&model->random, 8) + 1 : 1;
		most = 1 + test_below(&model->random, i == 1 ? MOST * 7 / 8 : FEW);
		while (model->nr < most)
			push(model, 0);
		compare(model);
		steps(model, 300, most, faults);
		for (k = 0; k < MOST && i; k++)
			model->entry[k].is_stale |= !test_one_in(&model->random, 16);
		if (i)
			sweep_all(model, NODES < 16 ? 2 * faults : 0);
		steps(model, 75, FEW / 4, faults);
		if (test_one_in(&model->random, 2))
			model->heap.now = test_random(&model->random) >> 20;
	}
	while (model->nr)
		take(model, 0, false);
	compare(model);
	model_free(model);
}

static void all_scales_at_once(void **state)
{
	struct counts counts = { 0 };
	u32 i;

	(void)state;
	for (i = 0; i < test_rounds; i++)
		run(test_seed + i, 0, &counts);
	/* The test's own test. In large pages all nodes are near. */
	assert_true(counts.swept && (NODES > 256 || (counts.moved && counts.dropped)));
	assert_int_equal(counts.failed, 0);
}

static void all_scales_with_faults(void **state)
{
	u64 rounds = TEST_ROUNDS(test_rounds);
	struct counts counts = { 0 };
	u32 i;

	(void)state;
	for (i = 0; i < rounds; i++)
		run(~test_seed + i, 1 + i % 4, &counts);
	assert_true(counts.failed && counts.swept);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layout(all_scales_at_once, radix),
		test_with_layout(all_scales_with_faults, radix),
	};

	test_arguments(argc, argv, RUNS);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
