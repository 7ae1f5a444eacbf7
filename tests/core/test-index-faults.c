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
	u32 i, k, nr, before, failures = 0;
	int err;

	(void)state;
	subject_init(&subject);
	for (i = 1; i < 600; i++) {
		before = subject.nr;
		for (k = 1;; k++) {
			test_pages_trim(&subject.table);
			test_pages_evict_all(&subject.table);
			subject.faults.fail_in = (k + 1) / 2;
			subject.faults.for_good = k % 2;
			subject.faults.error = -EIO;
			if (i % 4) {
				err = subject_try_add(&subject, i,
						      index_hash(&subject.index, i));
			} else {
				nr = subject_any_slot(&subject);
				err = subject_try_remove(&subject, nr);
			}
			subject.faults.fail_in = 0;
			if (!err)
				break;
			/* -ENOMEM: earlier faults had delayed its growth. */
			assert_true(err == -EIO || err == -ENOMEM);
			assert_int_equal(subject.nr, before);
			failures++;
			/* There is no table without its first page. */
			if (i == 1) {
				assert_int_equal(err, -EIO);
				assert_int_equal(subject.index.lines, 0);
				assert_int_equal(subject.table.pages.nr, 0);
			}
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
	u32 k = 0;
	int err;

	do {
		k++;
		test_pages_trim(&subject->table);
		test_pages_evict_all(&subject->table);
		subject->faults.fail_in = k;
		subject->faults.for_good = true;
		subject->faults.error = -EIO;
		err = subject_try_remove(subject, nr);
		subject->faults.fail_in = 0;
		subject->faults.for_good = false;
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
		for (i = 1; i <= TEST_ROUNDS(60); i++) {
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

/* Any page of a reserved table fails: it is empty, and grows as usual. */
static void reserves_all_or_nothing(void **state)
{
	struct subject subject;
	u32 i, k = 0;
	int err;

	(void)state;
	subject_init(&subject);
	do {
		k++;
		subject.faults.fail_in = k;
		subject.faults.error = -ENOMEM;
		err = index_reserve(&subject.index, LIMIT / 2);
		subject.faults.fail_in = 0;
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
		assert_int_equal(subject.table.pages.nr, 0);
		assert_int_equal(subject.index.lines, 0);
		test_pages_trim(&subject.table);
		if (k == 1)
			subject_find(&subject, 1,
				     index_hash(&subject.index, 1), 0);
	} while (k < LIMIT);
	assert_true(k > 1);
	assert_int_equal(k, subject.table.pages.nr + 1);
	subject_free(&subject);

	subject_init(&subject);
	subject.faults.fail_in = 1;
	subject.faults.error = -ENOMEM;
	assert_int_equal(index_reserve(&subject.index, LIMIT / 2), -ENOMEM);
	subject.faults.fail_in = 0;
	for (i = 1; i <= LIMIT; i++)
		subject_add_id(&subject, i);
	subject_find_all(&subject);
	subject_validate(&subject);
	subject_free(&subject);
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
	test_pages_evict_all(&subject.table);
	subject.faults.fail_in = 1;
	subject.faults.error = -EAGAIN;
	assert_int_equal(index_find(&subject.index, &subject.slots, 77, hash,
				    &slot), -EAGAIN);
	test_pages_evict_all(&subject.run);
	subject.slot_faults.fail_in = 1;
	subject.slot_faults.error = -EIO;
	assert_int_equal(index_find(&subject.index, &subject.slots, 77, hash,
				    &slot), -EIO);
	subject_find(&subject, 77, hash, 1);
	subject_free(&subject);
}

static void hold_up(struct subject *subject, int error)
{
	subject->faults.for_good = true;
	subject->faults.fail_in = 1;
	subject->faults.error = error;
}

static void let_go(struct subject *subject)
{
	subject->faults.for_good = false;
	subject->faults.fail_in = 0;
}

static int try_add_id(struct subject *subject, u64 id)
{
	return subject_try_add(subject, id, index_hash(&subject->index, id));
}

/* There are no pages for a larger table. Entries are taken up to fifteen
 * sixteenths, then refused with the error of the pages, so that the caller knows
 * whether to wait. As soon as there are pages an addition moves lines for 64
 * steps, and the table has room again after a few.
 */
static void growth_that_is_held_up(void **state)
{
	const int errors[] = { -EAGAIN, -ENOMEM, -EIO };
	struct subject subject;
	u32 i, refused, full;
	u64 id;
	int err;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		subject_init(&subject);
		for (id = 1; subject.nr < 40 || subject_is_resizing(&subject);
		     id++)
			subject_add_id(&subject, id);
		hold_up(&subject, errors[i]);
		do {
			err = try_add_id(&subject, ++id);
		} while (!err && subject.nr < LIMIT);
		full = FULL(subject.index.lines);
		assert_int_equal(err, errors[i]);
		/* The last lines need another page sooner. */
		assert_in_range(subject.nr, full / 2, full);
		subject_find_all(&subject);
		subject_validate(&subject);
		let_go(&subject);
		refused = 0;
		while (try_add_id(&subject, id))
			refused++;
		assert_in_range(refused, 0,
				subject.index.lines / 64 + 1);
		while (subject.nr < LIMIT)
			subject_add_id(&subject, ++id);
		subject_find_all(&subject);
		subject_validate(&subject);
		subject_free(&subject);
	}
}

/* The page of the line to be moved next cannot be read. The table stays between
 * its sizes, takes what has a place elsewhere, and refuses the rest.
 */
static void moving_that_is_held_up(void **state)
{
	struct subject subject;
	u32 turn, moved, next, refused, last;
	u64 id = 0;
	int err;

	(void)state;
	for (turn = 0; turn < 2; turn++) {
		subject_init(&subject);
		while (subject.nr < LIMIT / 2)
			subject_add_id(&subject, ++id);
		/* Half way through growing, or shrinking. */
		while (!subject_is_resizing(&subject) ||
		       (subject.index.to > subject.index.lines) != !turn ||
		       subject.index.moved / (subject.index.lines / 2 + 1) ==
		       !turn) {
			if (turn)
				assert_int_equal(subject_try_remove(&subject,
								    subject_any_slot(&subject)), 0);
			else
				subject_add_id(&subject, ++id);
		}
		moved = subject.index.moved;
		next = (moved - !turn) / INDEX_LINES_PER_PAGE;
		for (refused = 0, last = id + 2000; id < last &&
						    subject.nr < LIMIT;) {
			hold_up(&subject, -EAGAIN);
			test_pages_evict_one(&subject.table, next);
			refused += !!try_add_id(&subject, ++id);
			let_go(&subject);
			subject_find(&subject, id + 1,
				     index_hash(&subject.index, id + 1), 0);
			assert_int_equal(subject.index.moved, moved);
		}
		assert_true(refused > 0);
		subject_find_all(&subject);
		subject_validate(&subject);
		/* It may have been filled meanwhile, and has to catch up. */
		while ((err = try_add_id(&subject, ++id)) != 0) {
			assert_int_equal(err, -ENOMEM);
			assert_in_range(id, last - 2000, last + LIMIT);
		}
		while (subject.nr < LIMIT)
			subject_add_id(&subject, ++id);
		while (subject.nr > 10)
			assert_int_equal(subject_try_remove(&subject,
							    subject_any_slot(&subject)), 0);
		subject_find_all(&subject);
		subject_validate(&subject);
		subject_free(&subject);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_change_nothing),
		cmocka_unit_test(removal_has_all_its_pages),
		cmocka_unit_test(reserves_all_or_nothing),
		cmocka_unit_test(find_tells_a_fault_from_nothing),
		cmocka_unit_test(growth_that_is_held_up),
		cmocka_unit_test(moving_that_is_held_up),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
