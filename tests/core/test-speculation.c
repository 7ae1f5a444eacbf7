// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An index that a caller names is bounded in speculation, too, before anything is
 * read with it: core_nospec() stands between the check and the page.
 */
#define core_nospec(index, size)	bounded(index, size)

static unsigned int bounded(unsigned int index, unsigned int size);

#include "support.h"
#include "slots.h"

#define SLOTS	(3 * SLOTS_PER_PAGE)

static u32 calls, last_index, last_size;

/* Leads to slot 1, so that the result is seen to be used. */
static unsigned int bounded(unsigned int index, unsigned int size)
{
	calls++;
	last_index = index;
	last_size = size;
	return 0;
}

static void table_init(struct slots *slots, struct test_pages *run,
		       struct test_faults *faults)
{
	struct slot *slot;
	u32 i, nr;

	memset(faults, 0, sizeof(*faults));
	test_pages_init(run, slots_pages_max(SLOTS), faults, test_seed);
	slots_init(slots, &run->pages);
	for (i = 0; i < SLOTS; i++) {
		nr = slots_reserve(slots, &slot);
		assert_int_equal(nr, i + 1);
		slots_commit(slots, nr, slot);
	}
}

static void each_look_at_a_slot_is_bounded(void **state)
{
	struct test_faults faults;
	struct test_pages run;
	struct slots slots;
	struct slot *first;
	u32 nr;

	(void)state;
	table_init(&slots, &run, &faults);
	first = core_page(slots.pages, 0);
	for (nr = 1; nr <= SLOTS; nr += 7) {
		calls = 0;
		assert_ptr_equal(slots_get(&slots, nr), first);
		assert_ptr_equal(slots_peek(&slots, nr), first);
		slots_prefetch_dir(&slots, nr);
		assert_int_equal(calls, 3);
		assert_int_equal(last_index, nr - 1);
		assert_int_equal(last_size, SLOTS);
	}
	test_pages_free(&run);
}

static void numbers_out_of_range_are_refused_before(void **state)
{
	static const u32 numbers[] = { 0, SLOTS + 1, 0x7fffffff, 0xffffffff };
	struct test_faults faults;
	struct test_pages run;
	struct slots slots;
	u32 i;

	(void)state;
	table_init(&slots, &run, &faults);
	calls = 0;
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		assert_null(slots_get(&slots, numbers[i]));
		assert_null(slots_peek(&slots, numbers[i]));
		slots_prefetch_dir(&slots, numbers[i]);
	}
	assert_int_equal(calls, 0);
	test_pages_free(&run);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_look_at_a_slot_is_bounded),
		cmocka_unit_test(numbers_out_of_range_are_refused_before),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
