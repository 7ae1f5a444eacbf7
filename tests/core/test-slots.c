// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The slot table: numbers in use are never given twice, contents stay, and a
 * full table or a missing page is refused.
 */
#include <stdlib.h>

#include "support.h"

#define LIMIT	(8 * SLOTS_PER_PAGE + 3)

struct subject {
	struct slots slots;
	struct test_faults faults;
	struct test_pages run;
	u64 cookie[LIMIT + 1];	/* by number; 0 = free */
	u64 random;
};

static void subject_init(struct subject *subject)
{
	memset(subject, 0, sizeof(*subject));
	memset(&subject->slots, 0xa5, sizeof(subject->slots));
	subject->random = test_seed;
	test_pages_init(&subject->run, slots_pages_max(LIMIT),
			&subject->faults, test_seed);
	slots_init(&subject->slots, &subject->run.pages);
}

static u32 take(struct subject *subject)
{
	struct slot *slot = NULL;
	u32 nr = slots_reserve(&subject->slots, &slot);

	assert_in_range(nr, 1, LIMIT);
	assert_int_equal(subject->cookie[nr], 0);
	assert_non_null(slot);
	slots_commit(&subject->slots, nr, slot);
	subject->cookie[nr] = 1 + test_random(&subject->random) / 2;
	slot->cookie = subject->cookie[nr];
	slot->id = nr;
	return nr;
}

static void put(struct subject *subject, u32 nr)
{
	struct slot *slot = slots_get(&subject->slots, nr);

	assert_non_null(slot);
	assert_true(slot->cookie == subject->cookie[nr]);
	assert_true(slot->id == nr);
	slots_put(&subject->slots, nr, slot);
	subject->cookie[nr] = 0;
}

static u32 used(const struct subject *subject)
{
	u32 nr, count = 0;

	for (nr = 1; nr <= LIMIT; nr++)
		count += !!subject->cookie[nr];
	return count;
}

static void numbers_are_given_once(void **state)
{
	struct subject subject;
	u32 i, nr;

	(void)state;
	subject_init(&subject);
	for (i = 0; i < 4000; i++) {
		nr = 1 + test_below(&subject.random, LIMIT);
		if (subject.cookie[nr])
			put(&subject, nr);
		else
			take(&subject);
		assert_int_equal(subject.slots.used, used(&subject));
		assert_true(subject.run.pages.nr <= subject.run.pages.nr_max);
		test_pages_trim(&subject.run);
		test_pages_evict(&subject.run, 2);
	}
	test_pages_free(&subject.run);
}

/* A freed slot is used again before the table grows. */
static void free_slots_come_first(void **state)
{
	struct subject subject;
	u32 i;

	(void)state;
	subject_init(&subject);
	for (i = 0; i < LIMIT; i++)
		take(&subject);
	assert_int_equal(subject.slots.nr, LIMIT);
	for (i = 1; i <= LIMIT; i += 3)
		put(&subject, i);
	while (subject.slots.used < LIMIT)
		take(&subject);
	assert_int_equal(subject.slots.nr, LIMIT);
	assert_true(subject.run.pages.nr <= slots_pages_max(LIMIT));
	test_pages_free(&subject.run);
}

/* The slot freed last is used first, and the one freed before it next, however
 * many there are, with pages out of memory at any time.
 */
static void last_freed_first(void **state)
{
	static u32 stack[LIMIT];	/* too large for the kernel's */
	u32 nr = 0, i, slot;
	struct subject subject;

	(void)state;
	subject_init(&subject);
	for (i = 0; i < LIMIT; i++)
		take(&subject);
	for (i = 0; i < 8000; i++) {
		/* Deep and flat stacks in turn. */
		if (test_below(&subject.random, 8) < (i / 500 % 2 ? 3 : 5)) {
			slot = 1 + test_below(&subject.random, LIMIT);
			if (!subject.cookie[slot])
				continue;
			put(&subject, slot);
			stack[nr++] = slot;
		} else if (nr) {
			assert_int_equal(take(&subject), stack[--nr]);
		}
		assert_int_equal(subject.slots.used, LIMIT - nr);
		test_pages_evict(&subject.run, 2);
	}
	while (nr)
		assert_int_equal(take(&subject), stack[--nr]);
	test_pages_free(&subject.run);
}

static void the_free_one_says_so(void **state)
{
	struct subject subject;
	u32 nr;

	(void)state;
	subject_init(&subject);
	take(&subject);
	nr = take(&subject);
	put(&subject, nr);
	assert_true(!slots_get(&subject.slots, nr)->id);
	assert_false(slots_get(&subject.slots, nr)->tag & SLOT_STATE);
	test_pages_free(&subject.run);
}

static void numbers_out_of_range(void **state)
{
	const u32 numbers[] = { 0, 2, 3, LIMIT, LIMIT + 1, ~0U };
	struct subject subject;
	u32 i;

	(void)state;
	subject_init(&subject);
	take(&subject);
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		subject.run.pages.error = -EIO;
		assert_null(slots_get(&subject.slots, numbers[i]));
		assert_int_equal(subject.run.pages.error, 0);
		assert_null(slots_peek(&subject.slots, numbers[i]));
		slots_prefetch_dir(&subject.slots, numbers[i]);
	}
	assert_non_null(slots_get(&subject.slots, 1));
	test_pages_free(&subject.run);
}

static void beyond_the_pages(void **state)
{
	struct slot *slot;
	struct subject subject;
	u32 i, room;

	(void)state;
	subject_init(&subject);
	room = subject.run.pages.nr_max * SLOTS_PER_PAGE;
	for (i = 0; i < room; i++) {
		assert_int_equal(slots_reserve(&subject.slots, &slot), i + 1);
		slots_commit(&subject.slots, i + 1, slot);
	}
	assert_int_equal(slots_reserve(&subject.slots, &slot), 0);
	assert_int_equal(subject.run.pages.error, -ENOMEM);
	test_pages_free(&subject.run);
}

/* No page before the first slot on it. */
static void pages_as_many_as_needed(void **state)
{
	struct subject subject;
	struct slot *slot;
	u32 i, pages;

	(void)state;
	subject_init(&subject);
	for (i = 1; i <= 3 * SLOTS_PER_PAGE && i <= LIMIT; i++) {
		assert_int_equal(slots_reserve(&subject.slots, &slot), i);
		slots_commit(&subject.slots, i, slot);
		pages = 1 + (i - 1) / SLOTS_PER_PAGE;
		assert_int_equal(subject.run.pages.nr, pages);
		assert_true(slots_pages_max(i) >= pages);
	}
	slots_unlist(&subject.slots);
	while (--i) {
		slots_drop_last(&subject.slots);
		pages = (i - 1 + SLOTS_PER_PAGE - 1) / SLOTS_PER_PAGE;
		assert_int_equal(subject.run.pages.nr, pages);
	}
	test_pages_free(&subject.run);
}

static void peek_never_waits(void **state)
{
	struct subject subject;
	u64 before;

	(void)state;
	subject_init(&subject);
	take(&subject);
	assert_ptr_equal(slots_peek(&subject.slots, 1),
			 slots_get(&subject.slots, 1));
	test_pages_evict_all(&subject.run);
	before = subject.faults.ins;
	assert_null(slots_peek(&subject.slots, 1));
	assert_true(subject.faults.ins == before);
	test_pages_free(&subject.run);
}

static void faults_are_told(void **state)
{
	struct subject subject;
	struct slot *slot;
	u32 nr;

	(void)state;
	subject_init(&subject);
	subject.faults.error = -ENOMEM;
	subject.faults.fail_in = 1;
	assert_int_equal(slots_reserve(&subject.slots, &slot), 0);
	assert_int_equal(subject.run.pages.error, -ENOMEM);
	assert_int_equal(subject.slots.nr, 0);

	take(&subject);
	nr = take(&subject);
	put(&subject, nr);
	test_pages_evict_all(&subject.run);
	subject.faults.error = -EIO;
	subject.faults.fail_in = 1;
	assert_int_equal(slots_reserve(&subject.slots, &slot), 0);
	assert_int_equal(subject.run.pages.error, -EIO);
	subject.faults.fail_in = 1;
	assert_null(slots_get(&subject.slots, 1));
	assert_int_equal(subject.run.pages.error, -EIO);
	assert_int_equal(take(&subject), nr);
	put(&subject, 1);
	put(&subject, nr);
	test_pages_free(&subject.run);
}

static void reset_forgets_all(void **state)
{
	struct subject subject;
	u32 i, round;

	(void)state;
	subject_init(&subject);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < LIMIT; i++)
			take(&subject);
		put(&subject, 1 + test_below(&subject.random, LIMIT));
		if (round == 1)
			slots_unlist(&subject.slots);
		slots_reset(&subject.slots);
		assert_false(slots_is_compacting(&subject.slots));
		memset(subject.cookie, 0, sizeof(subject.cookie));
		assert_int_equal(subject.slots.used, 0);
		assert_int_equal(subject.run.pages.nr, 0);
		assert_null(slots_get(&subject.slots, 1));
		if (round)
			test_pages_trim(&subject.run);
	}
	test_pages_free(&subject.run);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_given_once),
		cmocka_unit_test(free_slots_come_first),
		cmocka_unit_test(last_freed_first),
		cmocka_unit_test(the_free_one_says_so),
		cmocka_unit_test(numbers_out_of_range),
		cmocka_unit_test(beyond_the_pages),
		cmocka_unit_test(pages_as_many_as_needed),
		cmocka_unit_test(peek_never_waits),
		cmocka_unit_test(faults_are_told),
		cmocka_unit_test(reset_forgets_all),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
