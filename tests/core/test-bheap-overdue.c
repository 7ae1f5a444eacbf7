// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Timers that are overdue when they are armed, each lot of them earlier than the one
 * before: an import in descending order, or a client that wants to harm. All that the
 * heap's pages are for get in, whatever their distances, and come out in order.
 */
#include <stdlib.h>

#include "support.h"
#include "bheap_radix_pages.h"

#define MOST	(NODES < 64 ? 4000U : 16000U)

/**
 * struct lots - how they come
 * @eighths: nodes of a lot, in eighths of a page; 0 = one node
 * @within: its deadlines are that near to each other, in bits of nanoseconds
 * @apart: lots are that far from each other; no less than @within
 * @popped: eighths of a lot that are popped before the next one
 * @at_all_scales: from a nanosecond to @within, instead of evenly
 */
struct lots {
	u32 eighths;
	u32 within;
	u32 apart;
	u32 popped;
	bool at_all_scales;
};

/**
 * struct overdue - a heap and the deadlines in it
 * @deadline: those of earlier lots, then those of the last lot, in order
 * @nr: how many
 * @pushed: nodes until now
 * @faults_in: pages fail in one of that many moves of the front; 0 = in none
 * @stopped: folds that a page has stopped
 */
struct overdue {
	struct bheap heap;
	struct test_faults faults;
	struct test_pages run;
	u64 deadline[MOST];
	u32 nr;
	u32 pushed;
	u32 faults_in;
	u32 stopped;
	u64 random;
};

static int compare_deadlines(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Returns how many tables the next push keeps: a fold of few would be work for nothing. */
static u32 kept_tables(const struct overdue *o)
{
	const struct bheap_radix_state *s = &o->heap.radix;

	return s->fold_level || s->tables + LEVELS > radix_tables_few(o->nr) ?
	       0 : s->tables;
}

static void push(struct overdue *o, u64 deadline)
{
	const struct bheap_node node = { .deadline = deadline, .slot = o->pushed++ };
	const struct bheap_radix_state *s = &o->heap.radix;
	bool is_radix = test_layout == &bheap_radix;
	u32 kept = is_radix ? kept_tables(o) : 0;
	u32 k = 0;
	int err;

	/* Where the front moves back, each page that it asks for fails in turn. */
	if (o->faults_in && s->near == NODES &&
	    test_one_in(&o->random, o->faults_in))
		k = 1;
	do {
		if (k) {
			test_pages_evict_all(&o->run);
			o->faults.fail_in = k++;
		}
		err = bheap_push(&o->heap, &node);
		o->faults.fail_in = 0;
		if (!err)
			break;
		assert_int_equal(test_layout->validate(&o->heap, NULL, NULL), 0);
		o->stopped += s->fold_level != 0;
	} while (k && err == -EIO);
	if (err)
		fail_msg("%d after %u nodes of %u", err, o->nr, MOST);
	if (is_radix)
		assert_true(s->tables >= kept);
	/* Only a missing page leaves something to fold. */
	if (is_radix && !o->faults_in)
		assert_int_equal(s->fold_level, 0);
	o->deadline[o->nr++] = deadline;
}

static void push_lot(struct overdue *o, const struct lots *lots, u64 base)
{
	u32 i, size = NODES * lots->eighths / 8 ?: 1, begin = o->nr, scale;

	for (i = 0; i < size && o->nr < MOST; i++) {
		scale = lots->at_all_scales ?
			1 + test_below(&o->random, lots->within) : lots->within;
		push(o, base + (test_random(&o->random) >> (64 - scale)));
	}
	qsort(o->deadline + begin, o->nr - begin, sizeof(*o->deadline),
	      compare_deadlines);
}

static void pop(struct overdue *o, u64 deadline)
{
	int ret;

	do {
		ret = bheap_find_first(&o->heap, NULL, NULL, NULL);
		assert_true(ret >= 0);
	} while (!ret);
	assert_true(o->heap.first.deadline == deadline);
	assert_int_equal(bheap_pop(&o->heap), 0);
}

/* Pops the first @nr of the deadlines from @from on. */
static void pop_some(struct overdue *o, u32 from, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		pop(o, o->deadline[from + i]);
	o->nr -= nr;
	memmove(o->deadline + from, o->deadline + from + nr,
		(o->nr - from) * sizeof(*o->deadline));
}

/* Few tables, if the layout has any: so are the pages of chains. */
static void check_tables(const struct overdue *o)
{
	if (test_layout == &bheap_radix)
		assert_true(o->heap.radix.tables <=
			    radix_tables_max(o->nr));
}

/* Returns how many folds a page has stopped. The most bytes of a node of a full heap go
 * to *@bytes.
 */
static u32 run(const struct lots *lots, u32 faults_in, u32 *bytes)
{
	struct overdue *o = calloc(1, sizeof(*o));
	u64 base = 1ULL << 61, least = 1ULL << 50;
	u32 from, popped, stopped, size;

	assert_non_null(o);
	o->random = test_seed;
	o->faults_in = faults_in;
	o->faults.error = -EIO;
	test_pages_init(&o->run, bheap_pages_max(test_layout, MOST), &o->faults,
			test_seed);
	bheap_init(&o->heap, test_layout, &o->run.pages);
	o->heap.now = 1ULL << 62;
	while (o->nr < MOST && o->pushed < 4 * MOST) {
		from = o->nr;
		push_lot(o, lots, base);
		check_tables(o);
		size = (u64)o->heap.pages->nr * CORE_PAGE_SIZE / o->nr;
		if (o->nr == MOST && size > *bytes)
			*bytes = size;
		popped = (o->nr - from) * lots->popped / 8;
		pop_some(o, from, popped);
		base -= 1ULL << lots->apart | test_random(&o->random) >> (66 - lots->apart);
		/* From the beginning. */
		if (base < least)
			break;
	}
	assert_int_equal(test_layout->validate(&o->heap, NULL, NULL), 0);
	qsort(o->deadline, o->nr, sizeof(*o->deadline), compare_deadlines);
	pop_some(o, 0, o->nr);
	assert_int_equal(o->heap.pages->nr, 0);
	stopped = o->stopped;
	test_pages_free(&o->run);
	free(o);
	return stopped;
}

static u32 run_all(u32 faults_in)
{
	static const u32 eighths[] = { 0, 4, 8, 10, 32 }, within[] = { 1, 10, 20, 36 },
			 apart[] = { 20, 36, 42 };
	const u32 all = 5 * 4 * 3, step = all / TEST_ROUNDS(all);
	struct lots lots;
	u32 i, k, stopped = 0, bytes = 0;

	for (i = 0; i < all; i += step)
		for (k = 0; k < 4; k++) {
			lots = (struct lots) {
				.eighths = eighths[i % 5],
				.within = within[i / 5 % 4],
				.apart = apart[i / 20],
				.popped = k % 2 ? 6 : 0,
				.at_all_scales = k / 2,
			};
			if (lots.within <= lots.apart)
				stopped += run(&lots, faults_in, &bytes);
		}
	print_message("# %s: %u nodes take at most %u bytes each\n",
		      test_layout->name, MOST, bytes);
	return stopped;
}

static void each_lot_is_earlier(void **state)
{
	(void)state;
	run_all(0);
}

static void each_lot_is_earlier_with_faults(void **state)
{
	(void)state;
	/* With larger pages it takes minutes. */
	if (NODES > 64)
		skip();
	assert_true(run_all(NODES < 8 ? 400 : NODES < 16 ? 60 : 10) > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(each_lot_is_earlier),
		test_with_layout(each_lot_is_earlier_with_faults, radix),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
