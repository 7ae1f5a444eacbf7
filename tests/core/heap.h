/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A heap against a count of keys: every node removed is the least present, and
 * each node is removed once.
 */
#ifndef TESTS_CORE_HEAP_H
#define TESTS_CORE_HEAP_H

#include <stdlib.h>

#include "support.h"

#define NODES	BHEAP_NODES_PER_PAGE
#define KEYS	1024U
#define STALE	0x80000000U	/* in a node's stamp: the sweep may have it */

/* Keys are few, so that there are many ties, and reach both ends. */
static inline u64 deadline_of(u32 key)
{
	return key * (~0ULL / (KEYS - 1));
}

static inline u32 key_of(u64 deadline)
{
	return deadline / (~0ULL / (KEYS - 1));
}

/**
 * struct subject - a heap, and its expected contents
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

static inline void subject_init(struct subject *subject, u32 max)
{
	memset(subject, 0, sizeof(*subject));
	subject->random = test_seed;
	subject->max = max;
	subject->live = calloc(max, sizeof(*subject->live));
	assert_non_null(subject->live);
	test_pages_init(&subject->run, bheap_pages_max(test_layout, max),
			&subject->faults, test_seed);
	/* Nothing is expected of the memory. */
	memset(&subject->heap, 0xa5, sizeof(subject->heap));
	bheap_init(&subject->heap, test_layout, &subject->run.pages);
}

static inline void subject_free(struct subject *subject)
{
	test_pages_free(&subject->run);
	free(subject->live);
}

/* Makes a node for @key with an unused slot. */
static inline struct bheap_node node_new(struct subject *subject, u32 key)
{
	struct bheap_node node = { .deadline = deadline_of(key) };

	do {
		node.slot = subject->slots++ % subject->max;
	} while (subject->live[node.slot]);
	node.stamp = node.slot ^ 0x2a2a2a;
	return node;
}

static inline void went_in(struct subject *subject, const struct bheap_node *node)
{
	u32 key = key_of(node->deadline);

	subject->live[node->slot] = key + 1;
	subject->count[key]++;
	subject->nr++;
}

static inline void went_out(struct subject *subject, const struct bheap_node *node)
{
	u32 key = key_of(node->deadline);

	assert_true(node->slot < subject->max);
	assert_int_equal(subject->live[node->slot], key + 1);
	assert_int_equal(node->stamp & ~STALE, node->slot ^ 0x2a2a2a);
	subject->live[node->slot] = 0;
	subject->count[key]--;
	subject->nr--;
}

static inline void push(struct subject *subject, u32 key)
{
	struct bheap_node node = node_new(subject, key);

	assert_int_equal(bheap_push(&subject->heap, &node), 0);
	went_in(subject, &node);
	assert_int_equal(subject->heap.nr, subject->nr);
}

/* Returns the most pages for what is in. Radix pages of chains that a drain has
 * not come to stay half empty: these have as many as for what may be in.
 */
static inline u32 pages_max(const struct subject *subject)
{
	return bheap_pages_max(test_layout, test_layout == &bheap_radix ?
					    subject->max : subject->nr);
}

static inline u32 least_key(const struct subject *subject)
{
	u32 key = 0;

	while (!subject->count[key])
		key++;
	return key;
}

/* Finds the first node, if the layout knows but a bound of it. */
static inline void find_first(struct subject *subject)
{
	u64 bound = subject->heap.first.deadline;
	u32 steps = 0;
	int ret;

	while (!(ret = bheap_find_first(&subject->heap, NULL, NULL, NULL))) {
		/* It never recedes, and no step goes in circles. */
		assert_true(subject->heap.first.deadline >= bound);
		bound = subject->heap.first.deadline;
		assert_true(steps++ < 64 * BHEAP_RADIX_LEVELS + subject->nr);
	}
	assert_int_equal(ret, 1);
	assert_true(!subject->nr || subject->heap.first.deadline >= bound ||
		    !steps);
}

/* The first is the least; pop and replace take it. */
static inline void pop(struct subject *subject)
{
	struct bheap_node node;

	find_first(subject);
	node = subject->heap.first;
	assert_true(node.deadline == deadline_of(least_key(subject)));
	assert_int_equal(bheap_pop(&subject->heap), 0);
	went_out(subject, &node);
	assert_int_equal(subject->heap.nr, subject->nr);
	assert_true(subject->run.pages.nr <= pages_max(subject));
}

static inline void replace(struct subject *subject, u32 key)
{
	struct bheap_node other = node_new(subject, key), node;

	find_first(subject);
	node = subject->heap.first;
	assert_true(node.deadline == deadline_of(least_key(subject)));
	assert_int_equal(bheap_replace(&subject->heap, &other), 0);
	went_out(subject, &node);
	went_in(subject, &other);
	assert_int_equal(subject->heap.nr, subject->nr);
}

static inline void validate(struct subject *subject)
{
	assert_int_equal(test_layout->validate(&subject->heap, NULL, NULL), 0);
}

/* Every node of a heap, where it is. */
struct nodes {
	struct bheap_node **node;
	u32 nr;
	u32 max;
};

static inline void nodes_add(void *context, const struct bheap_node *node)
{
	struct nodes *nodes = context;

	assert_true(nodes->nr < nodes->max);
	nodes->node[nodes->nr++] = (struct bheap_node *)node;
}

static inline struct nodes nodes_of(struct subject *subject)
{
	struct nodes nodes = { .max = subject->heap.nr };

	nodes.node = calloc(nodes.max + 1UL, sizeof(*nodes.node));
	assert_non_null(nodes.node);
	assert_int_equal(test_layout->validate(&subject->heap, nodes_add,
					       &nodes), 0);
	assert_int_equal(nodes.nr, nodes.max);
	return nodes;
}

static inline int compare_slots(const void *a, const void *b)
{
	const struct bheap_node *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* A copy of every node, by slot: an operation that failed removed none. */
static inline struct bheap_node *nodes_copy(struct subject *subject)
{
	struct bheap_node *copy = calloc(subject->nr + 1UL, sizeof(*copy));
	struct nodes nodes = nodes_of(subject);
	u32 i;

	assert_non_null(copy);
	assert_int_equal(nodes.nr, subject->nr);
	for (i = 0; i < nodes.nr; i++)
		copy[i] = *nodes.node[i];
	qsort(copy, nodes.nr, sizeof(*copy), compare_slots);
	free(nodes.node);
	return copy;
}

struct sweep_calls {
	const struct subject *subject;
	u32 stale;
	u32 ahead;
};

/* Checks that visited nodes are in, or were until the sweep removed them. */
static inline bool is_stale(void *context, const struct bheap_node *node)
{
	struct sweep_calls *calls = context;

	assert_true(node->slot < calls->subject->max);
	assert_int_equal(calls->subject->live[node->slot],
			 key_of(node->deadline) + 1);
	calls->stale++;
	return node->stamp & STALE;
}

/* Checks the same for prefetches. */
static inline void ahead(void *context, const struct bheap_node *node,
			 enum bheap_when when)
{
	struct sweep_calls *calls = context;

	assert_true(node->slot < calls->subject->max);
	assert_int_equal(calls->subject->live[node->slot],
			 key_of(node->deadline) + 1);
	calls->ahead += when == BHEAP_SOON;
}

#endif /* TESTS_CORE_HEAP_H */
