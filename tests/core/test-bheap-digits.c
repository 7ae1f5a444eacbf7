// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The digits of deadlines in radix pages, against arithmetic without shifts: all pairs
 * of digits at each level, with what is above and below at its least, its most and
 * at random, and the boundaries of 64 bits.
 */
#include "support.h"
#include "bheap_radix_pages.h"

/* FAN to the power of @level: 0 is 2^64. */
static u64 span(u32 level)
{
	u64 span = 1;

	while (level--)
		span *= FAN;
	return span;
}

static u32 digit(u64 deadline, u32 level)
{
	while (level--)
		deadline /= FAN;
	return deadline % FAN;
}

/* Digits of the highest level may have fewer bits than the others. */
static u32 digits(u32 level)
{
	return digit(~0ULL, level) + 1;
}

static u32 highest_difference(u64 a, u64 b)
{
	u32 level = LEVELS - 1;

	while (level && digit(a, level) == digit(b, level))
		level--;
	return level;
}

static void check_one(u64 deadline)
{
	u64 begin, last;
	u32 level;

	for (level = 0; level < LEVELS; level++) {
		assert_int_equal(radix_digit(deadline, level),
				 digit(deadline, level));
		begin = deadline - deadline % span(level);
		last = begin + (span(level) - 1);
		assert_true(radix_floor(deadline, level) == begin);
		assert_true(radix_last(begin, level) == last);
		assert_true(begin <= deadline && deadline <= last);
	}
	assert_true(radix_floor(deadline, LEVELS) == 0);

	for (level = LEVELS - 1; deadline % span(level); level--)
		;
	assert_int_equal(radix_level_at(deadline), level);
}

static void check_two(u64 a, u64 b)
{
	u32 level = highest_difference(a, b), at;
	struct bheap_radix_state s = { .front = a };

	assert_int_equal(radix_level_of(a ^ b), level);
	for (at = 0; at < LEVELS; at++) {
		s.level = at;
		assert_int_equal(radix_level(&s, b), at > level ? at : level);
	}
	/* Within a table of that level, and in different buckets of it. */
	assert_true(radix_floor(a, level + 1) == radix_floor(b, level + 1));
	if (a != b)
		assert_true((a < b) == (radix_digit(a, level) <
					radix_digit(b, level)));
}

static void every_pair_of_digits(void **state)
{
	u64 random = test_seed, above, low[3], high[3];
	u32 level, a, b, i, k;

	(void)state;
	for (level = 0; level < LEVELS; level++) {
		u64 one = span(level), over = one * FAN;

		for (a = 0; a < digits(level); a++) {
			for (b = 0; b < digits(level); b++) {
				above = test_random(&random);
				above = level + 1 < LEVELS ?
					above - above % over : 0;
				for (i = 0; i < 3; i++) {
					u64 below = i == 2 ? test_random(&random) % one :
						    i * (one - 1);

					low[i] = above + a * one + below;
					high[i] = above + b * one + below;
					check_one(low[i]);
				}
				for (i = 0; i < 3; i++)
					for (k = 0; k < 3; k++)
						check_two(low[i], high[k]);
			}
		}
	}
}

static void the_boundaries_of_64_bits(void **state)
{
	u64 edge[3 * 65], nr = 0, power = 1;
	u32 i, k;

	(void)state;
	for (i = 0; i < 65; i++, power *= 2) {
		edge[nr++] = power - 1;
		edge[nr++] = power;
		edge[nr++] = power + 1;
	}
	for (i = 0; i < nr; i++) {
		check_one(edge[i]);
		for (k = 0; k < nr; k++)
			check_two(edge[i], edge[k]);
	}
	assert_true(radix_last(radix_floor(~0ULL, LEVELS - 1), LEVELS - 1) ==
		    ~0ULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_digits),
		cmocka_unit_test(the_boundaries_of_64_bits),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
