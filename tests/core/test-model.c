// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * struct timers against its naive twin, with random sequences of all requests.
 *
 *	test-model [SEED [ROUNDS]]
 *
 * Round n has seed SEED + n; a failure prints it, so that the round can run
 * alone: test-model THAT 1.
 */
#include "twins.h"

/* Pages that leave and return slowly. */
#define LARGE	(CORE_PAGE_SIZE > 4096)

static void sequence(u64 seed, u32 mode, u32 limit, u32 steps, u32 thorough)
{
	struct twins twins = { .seed = seed, .random = seed };

	twins.now = SECOND + twins_chance(&twins, SECOND);
	twins.evict = twins_chance(&twins, 2) ? 1 + twins_chance(&twins, 6) : 0;
	twins.faults = twins_chance(&twins, 3) ?
		       2 + twins_chance(&twins, 20) : 0;
	twins.thorough = thorough;
	/* Where a walk is long, pages are large and crossed rarely. */
	twins.walk = CORE_PAGE_SIZE == 64;
	twins_init(&twins, mode, limit, seed);

	while (twins.step < steps)
		twins_step(&twins);
	twins_compare(&twins);
	twins_compare_counters(&twins);
	twins_drain(&twins);
	twins_free(&twins);
}

static void many_short(u32 mode)
{
	u64 seed, random;

	for (seed = test_seed; seed < test_seed + test_rounds; seed++) {
		random = ~seed;
		sequence(seed, mode, 1 + test_below(&random, 60),
			 20 + test_below(&random, 400), 1);
	}
}

static void few_long(u32 mode)
{
	u64 seed, rounds = test_rounds / 100 + 1;

	for (seed = test_seed; seed < test_seed + rounds; seed++)
		sequence(seed, mode, 1500, LARGE ? 800 : TEST_ROUNDS(8000), 200);
}

static void plain(void **state)
{
	(void)state;
	many_short(0);
}

static void keyed(void **state)
{
	(void)state;
	many_short(EXPIRY_MODE_KEYED);
}

static void acking(void **state)
{
	(void)state;
	many_short(EXPIRY_MODE_ACK);
}

static void keyed_acking(void **state)
{
	(void)state;
	many_short(EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK);
}

static void long_plain(void **state)
{
	(void)state;
	few_long(0);
}

static void long_keyed_acking(void **state)
{
	(void)state;
	few_long(EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(plain),
		test_with_layouts(keyed),
		test_with_layouts(acking),
		test_with_layouts(keyed_acking),
		test_with_layouts(long_plain),
		test_with_layouts(long_keyed_acking),
	};

	test_arguments(argc, argv, LARGE ? 20 : 200);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
