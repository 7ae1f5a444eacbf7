// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The index when pages of its tables are not available: a call fails as a whole, and
 * what was delayed is caught up with.
 */
#include "support-index.h"

/* Every page of every operation fails once: nothing is lost. */
static void faults_change_nothing(void **state)
{
	struct subject subject;
	u32 i, k, table, nr, before, failures = 0;
	int err;

	(void)state;
	subject_init(&subject);
	for (i = 1; i < 600; i++) {
		before = subject.nr;
		for (k = 1;; k++) {
			for (table = 0; table < 2; table++) {
				test_pages_trim(&subject.table[table]);
				test_pages_evict_all(&subject.table[table]);
				subject.faults[table].fail_in = (k + 1) / 2;
				subject.faults[table].for_good = k % 2;
				subject.faults[table].error = -EIO;
			}
			if (i % 4) {
				err = subject_try_add(&subject, i,
						      index_hash(&subject.index, i));
			} else {
				nr = subject_any_slot(&subject);
				err = subject_try_remove(&subject, nr);
			}
			subject.faults[0].fail_in = 0;
			subject.faults[1].fail_in = 0;
			if (!err)
				break;
			/* -ENOMEM: earlier faults had delayed its growth. */
			assert_true(err == -EIO || err == -ENOMEM);
			assert_int_equal(subject.nr, before);
			failures++;
			if (i % 16 == 0)
				subject_find_all(&subject);
		}
		if (i % 16 == 0) {
			subject_find_all(&subject);
			subject_validate(&subject);
		}
	}
	assert_true(failures > 100);
	subject_free(&subject);
}

/* Removes slot @nr when no page is in memory and the k-th and later page-ins fail,
 * for every k: the removal is atomic.
 */
static void remove_at_last(struct subject *subject, u32 nr)
{
	u32 k = 0, table;
	int err;

	do {
		k++;
		for (table = 0; table < 2; table++) {
			test_pages_trim(&subject->table[table]);
			test_pages_evict_all(&subject->table[table]);
			subject->faults[table].fail_in = k;
			subject->faults[table].for_good = true;
			subject->faults[table].error = -EIO;
		}
		err = subject_try_remove(subject, nr);
		for (table = 0; table < 2; table++) {
			subject->faults[table].fail_in = 0;
			subject->faults[table].for_good = false;
		}
		assert_true(!err || err == -EIO);
	} while (err);
}

/* Runs that begin at the table's first and at its last entry, and cross pages:
 * what may move back is in memory before anything moves.
 */
static void removal_has_all_its_pages(void **state)
{
	const u32 hashes[] = { 0, ~0U };
	struct subject subject;
	u32 i, j, nr;
	u64 id;

	(void)state;
	for (j = 0; j < ARRAY_SIZE(hashes); j++) {
		subject_init(&subject);
		for (i = 1; i <= 60; i++) {
			subject_add(&subject, i, hashes[j]);
			for (nr = 1; nr <= i; nr++) {
				id = subject.ids[nr];
				remove_at_last(&subject, nr);
				subject_find(&subject, id, hashes[j], 0);
				subject_add(&subject, id, hashes[j]);
			}
			subject_find_all(&subject);
		}
		subject_free(&subject);
	}
}

/* A lookup's page fails: it returns that error rather than "not found". */
static void find_tells_a_fault_from_nothing(void **state)
{
	struct slot *slot;
	struct subject subject;
	u32 hash;

	(void)state;
	subject_init(&subject);
	subject_add_id(&subject, 77);
	hash = index_hash(&subject.index, 77);

	subject_evict(&subject, 0);
	test_pages_evict_all(&subject.table[subject.index.cur]);
	subject.faults[subject.index.cur].fail_in = 1;
	subject.faults[subject.index.cur].error = -EAGAIN;
	assert_int_equal(index_find(&subject.index, &subject.slots, 77, hash,
				    &slot), -EAGAIN);
	test_pages_evict_all(&subject.run);
	subject.faults[2].fail_in = 1;
	subject.faults[2].error = -EIO;
	assert_int_equal(index_find(&subject.index, &subject.slots, 77, hash,
				    &slot), -EIO);
	subject_find(&subject, 77, hash, 1);
	subject_free(&subject);
}

/* The old table is unreadable until the new one is full. Further entries are
 * refused. When the pages are back everything is found and growth continues,
 * after a few more refusals at most.
 */
static void moving_that_is_held_up(void **state)
{
	struct subject subject;
	u32 i = 0, old, cur, refused = 0, last;

	(void)state;
	subject_init(&subject);
	while (subject.index.phase != INDEX_MOVING || subject.nr < 40) {
		subject_evict(&subject, 0);
		subject_add_id(&subject, ++i);
		assert_true(i < LIMIT);
	}
	cur = subject.index.cur;
	old = !cur;
	while (!refused && subject.nr < LIMIT) {
		test_pages_evict_all(&subject.table[old]);
		subject.faults[old].for_good = true;
		subject.faults[old].fail_in = 1;
		subject.faults[old].error = -EAGAIN;
		i++;
		refused = !!subject_try_add(&subject, i,
					    index_hash(&subject.index, i));
		assert_int_equal(subject.index.cur, cur);
	}
	assert_true(refused);
	subject.faults[old].fail_in = 0;
	subject.faults[old].for_good = false;
	subject_find_all(&subject);
	subject_validate(&subject);
	last = i;
	while (subject_try_add(&subject, i, index_hash(&subject.index, i)))
		assert_true(++i < last + LIMIT);
	while (subject.nr < LIMIT)
		subject_add_id(&subject, ++i);
	subject_find_all(&subject);
	subject_validate(&subject);
	subject_free(&subject);
}

/* The new table's pages are not available: the error is theirs, so that the
 * caller knows whether to wait.
 */
static void clearing_that_is_held_up(void **state)
{
	const int errors[] = { -EAGAIN, -ENOMEM, -EIO };
	struct subject subject;
	u32 i, id, other;
	int err;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		subject_init(&subject);
		subject_add_id(&subject, 1);
		other = !subject.index.cur;
		subject.faults[other].for_good = true;
		subject.faults[other].fail_in = 1;
		subject.faults[other].error = errors[i];
		id = 2;
		do {
			err = subject_try_add(&subject, id,
					      index_hash(&subject.index, id));
			id++;
		} while (!err && subject.nr < LIMIT);
		assert_int_equal(err, errors[i]);
		subject_find_all(&subject);
		subject.faults[other].fail_in = 0;
		while (subject.nr < LIMIT)
			subject_add_id(&subject, id++);
		subject_find_all(&subject);
		subject_validate(&subject);
		subject_free(&subject);
	}
}

/* As soon as the pages are available there is room again, however much of the
 * new table was still missing.
 */
static void held_up_then_caught_up(void **state)
{
	struct subject subject;
	u32 id = 0, other;

	(void)state;
	subject_init(&subject);
	while (subject.nr < 40 || subject.index.phase != INDEX_STABLE)
		subject_add_id(&subject, ++id);
	other = !subject.index.cur;
	subject.faults[other].for_good = true;
	subject.faults[other].fail_in = 1;
	subject.faults[other].error = -EIO;
	do {
		id++;
		assert_true(id < LIMIT);
	} while (!subject_try_add(&subject, id,
				  index_hash(&subject.index, id)));
	subject.faults[other].fail_in = 0;
	subject.faults[other].for_good = false;
	subject_add_id(&subject, id);
	subject_find_all(&subject);
	subject_validate(&subject);
	subject_free(&subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_change_nothing),
		cmocka_unit_test(removal_has_all_its_pages),
		cmocka_unit_test(find_tells_a_fault_from_nothing),
		cmocka_unit_test(moving_that_is_held_up),
		cmocka_unit_test(clearing_that_is_held_up),
		cmocka_unit_test(held_up_then_caught_up),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
