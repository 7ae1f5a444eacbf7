// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The index against a naive map: the id of each slot, looked up by all.
 */
#include <stdlib.h>

#include "support-index.h"

static u32 lines_of(u32 pages)
{
	return pages * INDEX_LINES_PER_PAGE - (INDEX_LINES_PER_PAGE > 1);
}

static u32 next_size(u32 pages)
{
	return pages == 1 ? 2 : pages + pages / 2;
}

/* Five entries a line at most when the table grows by half, and eight lines for
 * what has no place before the table's end.
 */
static void pages_for_a_limit(void **state)
{
	const u32 beyond = INDEX_LINES_PER_PAGE > 8 ?
			   1 : 8 / INDEX_LINES_PER_PAGE;
	u32 pages, full;

	(void)state;
	assert_int_equal(index_pages_max(1), 1 + beyond);
	for (pages = 1; pages <= 1024; pages = next_size(pages)) {
		full = 5 * lines_of(pages);
		assert_int_equal(index_pages_max(full), pages + beyond);
		assert_int_equal(index_pages_max(full + 1ULL),
				 next_size(pages) + beyond);
	}
	/* The entries of the largest table can still be counted. */
	assert_in_range(index_pages_max(TIMERS_MAX),
			TIMERS_MAX / 5 / INDEX_LINES_PER_PAGE,
			~0U / INDEX_PER_PAGE);
}

/**
 * struct pace - how large the table is to be
 * @pages: home to entries; @to: what it becomes, or 0
 * @made: pages in use; @done: lines moved
 */
struct pace {
	u32 pages, to, made, done;
};

/* Returns the size three before @pages, or 1. */
static u32 former_size(u32 pages)
{
	u32 former = 1;

	while (next_size(next_size(next_size(former))) < pages)
		former = next_size(former);
	return former;
}

/* Makes one change with @nr entries, at the pace that index.c describes. */
static void pace_change(struct pace *pace, u32 nr)
{
	if (!pace->to) {
		if (nr >= 5 * lines_of(pace->pages))
			pace->to = next_size(pace->pages);
		else if (pace->pages > 1 && nr < 5 * lines_of(pace->pages) / 8)
			pace->to = former_size(pace->pages);
		else
			return;
		pace->done = 0;
	}
	if (pace->made < pace->to) {
		pace->made++;
		return;
	}
	pace->done += pace->to > pace->pages ? 2 : 8;
	if (pace->done < lines_of(pace->pages))
		return;
	pace->pages = pace->to;
	pace->to = 0;
}

/* Memory and the work of one change have bounds: the table grows by half at five
 * entries a line, and shrinks by three sizes at an eighth of that, by a page or two
 * lines a change, or eight where it shrinks.
 */
static void resizes_when_and_as_fast_as_it_says(void **state)
{
	struct pace pace = { .pages = 1, .made = 1 };
	struct subject subject;
	u32 i, turn, most[] = {
		5 * lines_of(1) + 10, 0, LIMIT, LIMIT / 16, LIMIT / 2,
		LIMIT / 64, 20, 0
	};

	(void)state;
	subject_init(&subject);
	for (turn = 0, i = 0; turn < ARRAY_SIZE(most);) {
		if (subject.nr < most[turn] && turn % 2 == 0) {
			pace_change(&pace, subject.nr);
			subject_add_id(&subject, ++i);
		} else if (subject.nr > most[turn]) {
			assert_int_equal(subject_try_remove(&subject,
							    subject_any_slot(&subject)), 0);
			pace_change(&pace, subject.nr);
		} else {
			turn++;
		}
		/* Lines beyond the table's end may need another page. */
		pace.made = subject.index.pages->nr;
		assert_in_range(pace.made, pace.pages, 3 * pace.pages / 2 + 8);
		assert_int_equal(subject.index.lines, lines_of(pace.pages));
		assert_int_equal(subject.index.to,
				 lines_of(pace.to ? pace.to : pace.pages));
	}
	subject_free(&subject);
}

/* A table that cannot grow is filled to fifteen sixteenths. */
static void refuses_what_would_crowd_it(void **state)
{
	struct subject subject;
	u32 i = 0, full, pages = 4, beyond = index_pages_max(1) - 1;

	(void)state;
	subject_init(&subject);
	while (lines_of(pages) < 100)
		pages = next_size(pages);
	subject.table.pages.nr_max = pages + beyond;
	full = FULL(lines_of(pages));
	while (subject.nr < full)
		subject_add_id(&subject, ++i);
	/* Also where the line of its home has room. */
	for (i = 1000000; i < 1000100; i++)
		assert_int_equal(subject_try_add(&subject, i,
						 index_hash(&subject.index, i)),
				 -ENOMEM);
	assert_int_equal(subject.nr, full);
	subject_find_all(&subject);
	subject_validate(&subject);
	assert_int_equal(subject_try_remove(&subject,
					    subject_any_slot(&subject)), 0);
	subject_add_id(&subject, 1000000);
	subject_find_all(&subject);
	subject_free(&subject);
}

static void grows_and_shrinks(void **state)
{
	struct subject subject;
	u32 i;

	(void)state;
	subject_init(&subject);
	subject_find(&subject, 1, index_hash(&subject.index, 1), 0);
	for (i = 1; i <= LIMIT; i++) {
		subject_add_id(&subject, i);
		subject_find(&subject, i, index_hash(&subject.index, i), i);
		subject_find(&subject, i + 1, index_hash(&subject.index, i + 1),
			     0);
		if (i < 100 || i % 256 == 0) {
			subject_validate(&subject);
			subject_find_all(&subject);
		}
	}
	assert_true(subject.resizing > 0);
	assert_true(subject.table.pages.nr > 1);
	subject.resizing = 0;
	while (subject.nr) {
		i = subject_any_slot(&subject);
		subject_find(&subject, subject.ids[i], subject.hashes[i], i);
		assert_int_equal(subject_try_remove(&subject, i), 0);
		subject_find(&subject, i, index_hash(&subject.index, i), 0);
		if (subject.nr < 100 || subject.nr % 256 == 0) {
			subject_validate(&subject);
			subject_find_all(&subject);
		}
	}
	assert_true(subject.resizing > 0);

	/* The table follows the removals gradually. */
	for (i = 1; i <= 2 * LIMIT; i++) {
		subject_add_id(&subject, i);
		assert_int_equal(subject_try_remove(&subject,
						    subject_any_slot(&subject)), 0);
	}
	assert_int_equal(subject.index.lines, lines_of(1));
	assert_in_range(subject.table.pages.nr, 1, index_pages_max(1));
	subject_free(&subject);
}

static void random_operations(u32 most, u32 rounds, u32 evictions)
{
	struct subject subject;
	u32 i, grow = 1;
	u64 id;

	subject_init(&subject);
	for (i = 0; i < rounds; i++) {
		if (subject.nr >= most)
			grow = 0;
		if (!subject.nr)
			grow = 1;
		id = test_random(&subject.random) | 1;
		if (test_below(&subject.random, 4) < (grow ? 3 : 1)) {
			subject_add_id(&subject, id);
		} else if (subject.nr) {
			assert_int_equal(subject_try_remove(&subject,
							    subject_any_slot(&subject)), 0);
			subject_find(&subject, id,
				     index_hash(&subject.index, id), 0);
		}
		if (i % 64 == 0)
			subject_find_all(&subject);
		if (i % 512 == 0)
			subject_validate(&subject);
		subject_evict(&subject, evictions);
	}
	subject_find_all(&subject);
	assert_true(subject.resizing > 0 || most < INDEX_PER_PAGE);
	subject_free(&subject);
}

static void random_operations_small(void **state)
{
	(void)state;
	random_operations(40, 4000, 0);
	random_operations(40, 4000, 2);
}

static void random_operations_large(void **state)
{
	(void)state;
	random_operations(3000, TEST_ROUNDS(10000), 0);
	random_operations(3000, TEST_ROUNDS(10000), 4);
}

/* Ids with the same home, or with homes at the table's end that lie beyond it. They are found by comparing ids, and removed without breaking the
 * run.
 */
static void hashes_that_collide(void **state)
{
	const u32 hashes[] = { 0, 0x80000000U, ~0U };
	struct subject subject;
	u32 i, j;

	(void)state;
	for (j = 0; j < ARRAY_SIZE(hashes); j++) {
		subject_init(&subject);
		for (i = 1; i <= 300; i++) {
			subject_add(&subject, i,
				    hashes[j] - (j == 2 && i % 3 == 0));
			if (i % 10 == 0)
				subject_find_all(&subject);
		}
		subject_find(&subject, 1000, hashes[j], 0);
		while (subject.nr) {
			i = subject_any_slot(&subject);
			assert_int_equal(subject_try_remove(&subject, i), 0);
			subject_find_all(&subject);
		}
		subject_free(&subject);
	}
}

/* Hashes close together, so that runs of displaced entries join and part. */
static void hashes_that_crowd(void **state)
{
	struct subject subject;
	u32 i, hash;

	(void)state;
	subject_init(&subject);
	for (i = 1; i < 6000; i++) {
		hash = (test_below(&subject.random, 24) - 12) << 20;
		if (subject.nr < 200 && !test_one_in(&subject.random, 3)) {
			subject_add(&subject, i, hash);
		} else if (subject.nr) {
			assert_int_equal(subject_try_remove(&subject,
							    subject_any_slot(&subject)), 0);
		}
		if (i % 8 == 0)
			subject_find_all(&subject);
		subject_evict(&subject, 1);
	}
	subject_free(&subject);
}

/* A timer that moves to another slot is found there, in its home line and behind it, on
 * either side of a table that grows or shrinks.
 */
static void moved_to_another_slot(void **state)
{
	u32 i, most, hash, moved = 0;
	struct subject subject;

	(void)state;
	subject_init(&subject);
	for (i = 1; i < 12000; i++) {
		hash = test_below(&subject.random, 24) << 27;
		most = i / 3000 % 2 ? 20 : 400;
		if (subject.nr && test_one_in(&subject.random, 3)) {
			moved += subject_is_resizing(&subject);
			assert_int_equal(subject_try_move(&subject,
							  subject_any_slot(&subject)), 0);
		} else if (subject.nr < most) {
			subject_add(&subject, i, hash);
		} else {
			assert_int_equal(subject_try_remove(&subject,
							    subject_any_slot(&subject)), 0);
		}
		if (i % 8 == 0)
			subject_find_all(&subject);
		subject_evict(&subject, 1);
	}
	subject_find_all(&subject);
	assert_true(moved > 0);
	subject_free(&subject);
}

/* A client that knows one half of the seed cannot choose ids with one home. Nothing else
 * counts: not what was in the memory before.
 */
static void each_half_of_the_seed_counts(void **state)
{
	static const u64 seeds[4][2] = { { 1, 2 }, { 1, 2 }, { 3, 2 }, { 1, 3 } };
	u32 i, hash, same[ARRAY_SIZE(seeds)] = {0};
	struct index index[ARRAY_SIZE(seeds)];
	struct subject subject;
	u64 id;

	(void)state;
	subject_init(&subject);
	for (i = 0; i < ARRAY_SIZE(seeds); i++) {
		memset(&index[i], i ? 0xff : 0, sizeof(index[i]));
		index_init(&index[i], &subject.table.pages, seeds[i]);
		assert_int_equal(index[i].nr, 0);
		assert_int_equal(index[i].lines, 0);
	}
	for (id = 1; id <= 1000; id++) {
		hash = index_hash(&index[0], id);
		for (i = 0; i < ARRAY_SIZE(seeds); i++)
			same[i] += hash == index_hash(&index[i], id);
	}
	assert_int_equal(same[1], 1000);
	assert_int_equal(same[2], 0);
	assert_int_equal(same[3], 0);
	subject_free(&subject);
}

static void reset_forgets_all(void **state)
{
	struct subject subject;
	u32 nr, round;

	(void)state;
	subject_init(&subject);
	for (round = 1; round < 200; round += 7) {
		for (nr = 1; nr <= round; nr++)
			subject_add_id(&subject, nr);
		index_reset(&subject.index);
		slots_reset(&subject.slots);
		memset(subject.ids, 0, sizeof(subject.ids));
		subject.nr = 0;
		assert_int_equal(subject.table.pages.nr, 0);
		subject_find(&subject, 1, index_hash(&subject.index, 1), 0);
		subject_evict(&subject, 100);
	}
	subject_free(&subject);
}

static void reserve_for(u32 nr)
{
	struct subject subject;
	u32 i, pages, lines;

	subject_init(&subject);
	assert_int_equal(index_reserve(&subject.index, nr), 0);
	pages = subject.table.pages.nr;
	lines = subject.index.lines;
	assert_int_equal(lines, lines_of(pages));
	/* No smaller one would do. */
	for (i = 1; next_size(i) < pages; i = next_size(i))
		;
	assert_true(pages == 1 || 5 * lines_of(i) <= nr);
	for (i = 1; i <= nr; i++) {
		subject_add_id(&subject, i);
		assert_int_equal(subject.index.lines, lines);
	}
	assert_int_equal(subject.resizing, 0);
	/* It has its size. */
	assert_int_equal(index_reserve(&subject.index, LIMIT), 0);
	assert_int_equal(subject.index.lines, lines);
	subject_find_all(&subject);
	subject_validate(&subject);
	assert_int_equal(index_reserve(&subject.index, 0), 0);
	subject_find_all(&subject);
	for (; i <= LIMIT; i++)
		subject_add_id(&subject, i);
	subject_find_all(&subject);
	subject_validate(&subject);
	subject_free(&subject);
}

/* A table has its size from the first entry on, and grows as usual behind that. */
static void reserves_its_size(void **state)
{
	(void)state;
	reserve_for(1);
	reserve_for(5 * lines_of(1) - 1);
	reserve_for(5 * lines_of(1));
	reserve_for(LIMIT / 3);
	reserve_for(LIMIT);
}

/* It does not shrink before all is said to be there, and does so from then on. */
static void reserved_shrinks_in_the_end(void **state)
{
	struct subject subject;
	u32 i, lines;

	(void)state;
	subject_init(&subject);
	assert_int_equal(index_reserve(&subject.index, LIMIT), 0);
	lines = subject.index.lines;
	for (i = 1; i <= 20; i++)
		subject_add_id(&subject, i);
	assert_int_equal(subject_try_remove(&subject,
					    subject_any_slot(&subject)), 0);
	assert_int_equal(subject.index.lines, lines);
	assert_int_equal(subject.resizing, 0);
	assert_int_equal(index_reserve(&subject.index, 0), 0);
	assert_int_equal(subject.index.lines, lines);
	for (i = 1; i <= 2 * LIMIT; i++) {
		subject_add_id(&subject, 1000 + i);
		assert_int_equal(subject_try_remove(&subject,
						    subject_any_slot(&subject)), 0);
	}
	assert_true(subject.resizing > 0);
	assert_true(subject.index.lines < lines);
	subject_find_all(&subject);
	subject_validate(&subject);
	subject_free(&subject);
}

/* Its end does not disturb a change of size. */
static void reserve_ends_while_it_grows(void **state)
{
	struct subject subject;
	u32 i, changes = 0;

	(void)state;
	subject_init(&subject);
	for (i = 1; i <= LIMIT; i++) {
		subject_add_id(&subject, i);
		changes += subject_is_resizing(&subject);
		assert_int_equal(index_reserve(&subject.index, 0), 0);
	}
	assert_true(changes > 0);
	assert_int_equal(subject.resizing, changes);
	subject_find_all(&subject);
	subject_validate(&subject);
	subject_free(&subject);
}

/* A guess may be empty or wrong, and never reads a page that is out. */
static void guesses_are_harmless(void **state)
{
	struct subject subject;
	const struct index_line *line;
	u32 i, right = 0;
	u64 before;

	(void)state;
	subject_init(&subject);
	assert_null(index_prefetch(&subject.index, 1));
	assert_int_equal(index_guess(NULL, 1), 0);
	for (i = 1; i <= 1000; i++)
		subject_add_id(&subject, i);
	for (i = 1; i <= 1000; i++) {
		line = index_prefetch(&subject.index, subject.hashes[i]);
		right += index_guess(line, subject.hashes[i]) == i;
	}
	assert_true(right > 800);
	test_pages_evict_all(&subject.table);
	before = subject.faults.ins;
	for (i = 1; i <= 1000; i++) {
		assert_null(index_prefetch(&subject.index, subject.hashes[i]));
	}
	assert_true(before == subject.faults.ins);
	subject_free(&subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_for_a_limit),
		cmocka_unit_test(resizes_when_and_as_fast_as_it_says),
		cmocka_unit_test(refuses_what_would_crowd_it),
		cmocka_unit_test(grows_and_shrinks),
		cmocka_unit_test(random_operations_small),
		cmocka_unit_test(random_operations_large),
		cmocka_unit_test(hashes_that_collide),
		cmocka_unit_test(hashes_that_crowd),
		cmocka_unit_test(moved_to_another_slot),
		cmocka_unit_test(each_half_of_the_seed_counts),
		cmocka_unit_test(reset_forgets_all),
		cmocka_unit_test(reserves_its_size),
		cmocka_unit_test(reserved_shrinks_in_the_end),
		cmocka_unit_test(reserve_ends_while_it_grows),
		cmocka_unit_test(guesses_are_harmless),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
