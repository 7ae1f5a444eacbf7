// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The index against a naive map: the id of each slot, looked up by all.
 */
#include <stdlib.h>

#include "support-index.h"

/* Fills the tables to less than three quarters, when one would grow. */
static void pages_for_a_limit(void **state)
{
	u64 full;
	u32 pages;

	(void)state;
	assert_int_equal(index_pages_max(1), 1);
	for (pages = 1; pages <= 1024; pages *= 2) {
		full = 3ULL * pages * INDEX_PER_PAGE / 4;
		assert_int_equal(index_pages_max(full - 1), pages);
		assert_int_equal(index_pages_max(full), 2 * pages);
	}
	/* No table has more entries than that. */
	assert_int_equal(index_pages_max(~0ULL), (1U << 31) / INDEX_PER_PAGE);
}

/**
 * struct pace - how large the table is to be, and what the next one waits for
 * @size: entries of the table that takes what is new
 * @next: of the one that is being cleared
 * @old: of the one that is being emptied
 * @done: pages cleared, entries passed
 */
struct pace {
	enum index_phase phase;
	u32 size, next, old, done;
};

/* Makes one change with @nr entries, at the pace that index.c describes. */
static void pace_change(struct pace *pace, u32 nr)
{
	switch (pace->phase) {
	case INDEX_STABLE:
		if (nr >= pace->size / 4 * 3)
			pace->next = 2 * pace->size;
		else if (pace->size > INDEX_PER_PAGE && nr < pace->size / 8)
			pace->next = pace->size / 2;
		else
			return;
		pace->phase = INDEX_CLEARING;
		pace->done = 0;
		fallthrough;
	case INDEX_CLEARING:
		pace->done += 2;
		if (pace->done < pace->next / INDEX_PER_PAGE)
			return;
		pace->old = pace->size;
		pace->size = pace->next;
		pace->phase = INDEX_MOVING;
		pace->done = 0;
		return;
	default:
		pace->done += 8;
		if (pace->done >= pace->old)
			pace->phase = INDEX_STABLE;
	}
}

/* Memory and the work of one change have bounds: the table is doubled at three
 * quarters, halved below an eighth, by two pages or eight entries a change.
 */
static void resizes_when_and_as_fast_as_it_says(void **state)
{
	struct pace pace = { INDEX_STABLE, .size = INDEX_PER_PAGE };
	struct subject subject;
	u32 i, turn, most[] = { LIMIT, LIMIT / 8, LIMIT / 2, LIMIT / 64, 20, 0 };

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
		assert_int_equal(subject.index.phase, pace.phase);
		assert_int_equal(1U << subject.index.table[subject.index.cur].bits,
				 pace.size);
	}
	subject_free(&subject);
}

/* A table that cannot grow is filled to fifteen sixteenths and one entry, in
 * which probing ends.
 */
static void refuses_what_would_crowd_it(void **state)
{
	const u32 size = 4 * INDEX_PER_PAGE, full = size - size / 16 - 1;
	struct subject subject;
	u32 i = 0;

	(void)state;
	subject_init(&subject);
	subject.table[0].pages.nr_max = 4;
	subject.table[1].pages.nr_max = 4;
	while (subject.nr < full)
		subject_add_id(&subject, ++i);
	assert_int_equal(subject_try_add(&subject, 1000000,
					 index_hash(&subject.index, 1000000)),
			 -ENOMEM);
	assert_int_equal(subject.nr, full);
	subject_find_all(&subject);
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
	assert_true(subject.moving > 0);
	assert_true(subject.index.table[subject.index.cur].pages->nr > 1);
	subject.moving = 0;
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
	assert_true(subject.moving > 0);

	/* Halving follows the removals gradually. */
	for (i = 1; i <= 2 * LIMIT; i++) {
		subject_add_id(&subject, i);
		assert_int_equal(subject_try_remove(&subject,
						    subject_any_slot(&subject)), 0);
	}
	assert_int_equal(subject.table[0].pages.nr + subject.table[1].pages.nr,
			 1);
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
	assert_true(subject.moving > 0 || most < INDEX_PER_PAGE);
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
	random_operations(3000, 10000, 0);
	random_operations(3000, 10000, 4);
}

/* Ids with the same home, or with homes at the table's end that wrap around to
 * its start. They are found by comparing ids, and removed without breaking the
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
		assert_int_equal(subject.table[0].pages.nr, 0);
		assert_int_equal(subject.table[1].pages.nr, 0);
		subject_find(&subject, 1, index_hash(&subject.index, 1), 0);
		subject_evict(&subject, 100);
	}
	subject_free(&subject);
}

/* A guess may be empty or wrong, and never reads a page that is out. */
static void guesses_are_harmless(void **state)
{
	struct subject subject;
	u32 i, right = 0;
	u64 before;

	(void)state;
	subject_init(&subject);
	index_prefetch(&subject.index, 1);
	assert_int_equal(index_guess(&subject.index, 1), 0);
	for (i = 1; i <= 1000; i++)
		subject_add_id(&subject, i);
	for (i = 1; i <= 1000; i++) {
		index_prefetch(&subject.index, subject.hashes[i]);
		right += index_guess(&subject.index, subject.hashes[i]) == i;
	}
	assert_true(right > 400);
	test_pages_evict_all(&subject.table[0]);
	test_pages_evict_all(&subject.table[1]);
	before = subject.faults[0].ins + subject.faults[1].ins;
	for (i = 1; i <= 1000; i++) {
		index_prefetch(&subject.index, subject.hashes[i]);
		assert_int_equal(index_guess(&subject.index,
					     subject.hashes[i]), 0);
	}
	assert_true(before == subject.faults[0].ins + subject.faults[1].ins);
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
		cmocka_unit_test(reset_forgets_all),
		cmocka_unit_test(guesses_are_harmless),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
