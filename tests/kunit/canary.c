// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cases that fail, each in a way of its own: tests/kunit/selftest requires that
 * every one is noticed.
 */
#include <stdlib.h>

#include "support.h"

static void passes(void **state)
{
	(void)state;
	assert_int_equal(test_seed, 1);
}

static void compares_what_differs(void **state)
{
	(void)state;
	assert_int_equal(test_seed, 2);
}

static void wants_what_is_not(void **state)
{
	(void)state;
	assert_true(test_seed == 2);
}

static void is_skipped(void **state)
{
	(void)state;
	skip();
}

static void passes_after_that(void **state)
{
	(void)state;
	assert_true(test_seed == 1);
}

/* Only the kernel notices this. */
static void uses_a_page_that_is_gone(void **state)
{
	struct test_faults faults = { };
	struct test_pages run;
	u8 *page;

	(void)state;
	test_pages_init(&run, 1, &faults, test_seed);
	page = core_page(&run.pages, 0);
	assert_non_null(page);
	test_pages_evict_all(&run);
	WRITE_ONCE(page[8], 0);
	test_pages_free(&run);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes),
		cmocka_unit_test(compares_what_differs),
		cmocka_unit_test(wants_what_is_not),
		cmocka_unit_test(is_skipped),
		cmocka_unit_test(passes_after_that),
		cmocka_unit_test(uses_a_page_that_is_gone),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
