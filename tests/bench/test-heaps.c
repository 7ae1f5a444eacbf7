// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The basis of bench/heap's figures: every heap returns all its nodes, once, in
 * order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "bench/heap/heap.h"
#include "bench/heap/increments.h"
#include "bench/heap/tally.h"

#define NODES_MAX	20000U

/* ------------------------------------------------------------------------
 * The naive heap: what is in it, by slot
 */

static struct {
	struct heap_node nodes[NODES_MAX];
	bool there[NODES_MAX];
	uint32_t nr;
} naive;

static void put(const struct heap_kind *kind, void *heap, uint32_t slot,
		uint64_t deadline)
{
	struct heap_node node = {
		.deadline = deadline,
		.slot = slot,
		.stamp = ~slot,
	};

	assert_false(naive.there[slot]);
	naive.nodes[slot] = node;
	naive.there[slot] = true;
	naive.nr++;
	kind->push(heap, &node);
}

/* Checks that the node is an unchanged one, and none of the first @slots is
 * less.
 */
static uint32_t take(const struct heap_kind *kind, void *heap, uint32_t slots)
{
	struct heap_node node = kind->pop(heap);
	uint32_t i;

	assert_in_range(node.slot, 0, NODES_MAX - 1);
	assert_true(naive.there[node.slot]);
	assert_memory_equal(&node, &naive.nodes[node.slot], sizeof(node));
	naive.there[node.slot] = false;
	naive.nr--;
	for (i = 0; i < slots; i++)
		assert_false(naive.there[i] &&
			     naive.nodes[i].deadline < node.deadline);
	return node.slot;
}

/* The same without the walk over all nodes. */
static void drain(const struct heap_kind *kind, void *heap)
{
	uint64_t last = 0;
	uint32_t slot;

	while (naive.nr) {
		slot = take(kind, heap, 0);
		assert_true(naive.nodes[slot].deadline >= last);
		last = naive.nodes[slot].deadline;
	}
}

/* ------------------------------------------------------------------------ */

enum order { RANDOM, FEW, EQUAL, ASCENDING, DESCENDING, SAWTOOTH, ORDERS };

static uint64_t key(enum order order, uint32_t i, uint64_t *random)
{
	switch (order) {
	case RANDOM:
		return bench_random(random);
	case FEW:
		return bench_below(random, 5);
	case EQUAL:
		return 7;
	case ASCENDING:
		return i;
	case DESCENDING:
		return NODES_MAX - i;
	default:
		return i % 100;
	}
}

static void what_is_put_in_comes_out_in_order(void **state)
{
	static const uint32_t sizes[] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 63, 64, 65, 255, 256,
		257, 258, 511, 512, 513, 514, 1000, 5000, NODES_MAX,
	};
	const struct heap_kind *const *kind;
	uint64_t random = 1;
	uint32_t order, i, size;
	void *heap;

	(void)state;
	for (kind = heap_kinds; *kind; kind++) {
		heap = (*kind)->create(NODES_MAX);
		for (order = 0; order < ORDERS; order++) {
			for (size = 0; size < sizeof(sizes) / sizeof(*sizes);
			     size++) {
				for (i = 0; i < sizes[size]; i++)
					put(*kind, heap, i,
					    key(order, i, &random));
				drain(*kind, heap);
			}
		}
		(*kind)->destroy(heap);
	}
}

static void what_is_held_comes_out_in_order(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 5, 10, 100, 300, 1000, 3000 };
	const struct heap_kind *const *kind;
	struct increments increments;
	uint64_t random = 2;
	uint32_t i, size, slot;
	void *heap;

	(void)state;
	increments_init(&increments);
	for (kind = heap_kinds; *kind; kind++) {
		for (size = 0; size < sizeof(sizes) / sizeof(*sizes); size++) {
			heap = (*kind)->create(sizes[size]);
			for (i = 0; i < sizes[size]; i++)
				put(*kind, heap, i,
				    increments_next(&increments, &random));
			for (i = 0; i < 3 * sizes[size]; i++) {
				slot = take(*kind, heap, sizes[size]);
				put(*kind, heap, slot,
				    naive.nodes[slot].deadline +
				    increments_next(&increments, &random));
			}
			drain(*kind, heap);
			(*kind)->destroy(heap);
		}
	}
}

/* Mean and deciles of a million of them. */
static void increments_are_exponential(void **state)
{
	uint32_t below[10] = { 0 }, i, j, nr = 1000000;
	struct increments increments;
	uint64_t random = 3, value;
	double mean = 0;

	(void)state;
	increments_init(&increments);
	for (i = 0; i < nr; i++) {
		value = increments_next(&increments, &random);
		mean += value / INCREMENTS_MEAN / nr;
		for (j = 1; j < 10; j++)
			below[j] += value < -log1p(-0.1 * j) * INCREMENTS_MEAN;
	}
	assert_in_range(mean * 1000, 990, 1010);
	for (j = 1; j < 10; j++)
		assert_in_range(below[j], (j * 0.1 - 0.003) * nr,
				(j * 0.1 + 0.003) * nr);
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Against the sorted values themselves, of all sizes. */
static void a_tally_knows_percentiles(void **state)
{
	static const double parts[] = { 0, 0.5, 0.9, 0.99, 0.9999 };
	uint32_t nr = 100000, i;
	uint32_t *values = test_malloc(nr * sizeof(*values));
	struct tally *tally = test_calloc(1, sizeof(*tally));
	uint64_t random = 4, truth;

	(void)state;
	for (i = 0; i < nr; i++) {
		values[i] = bench_random(&random) >>
			    (32 + bench_below(&random, 32));
		tally_add(tally, values[i]);
	}
	tally_add(tally, ~0U);
	assert_int_equal(tally->max, ~0U);
	qsort(values, nr, sizeof(*values), compare_u32);
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		truth = values[(uint32_t)(parts[i] * nr)];
		assert_in_range(tally_at(tally, parts[i]), truth,
				truth + truth / 32);
	}
	assert_int_equal(tally_at(tally, 1), ~0U);
	test_free(values);
	test_free(tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_in_comes_out_in_order),
		cmocka_unit_test(what_is_held_comes_out_in_order),
		cmocka_unit_test(increments_are_exponential),
		cmocka_unit_test(a_tally_knows_percentiles),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
