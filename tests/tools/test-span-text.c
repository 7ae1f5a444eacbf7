// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Lengths of time in words: short, in the right unit, and close to the number.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tools/input/parse-span.h"
#include "tools/output/span.h"

#define MS	1000000ULL
#define S	(1000 * MS)
#define M	(60 * S)
#define H	(60 * M)
#define D	(24 * H)

static void words(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} known[] = {
		{ 0, "0s" }, { 1, "1ns" }, { 999, "999ns" }, { 1000, "1us" },
		{ 1024, "1.02us" }, { 1500, "1.5us" }, { 3 * MS, "3ms" },
		{ 999 * MS + 499999, "999ms" }, { 999 * MS + 500000, "1s" },
		{ 1000 * MS, "1s" }, { 1500 * MS, "1.5s" },
		{ 9994999999, "9.99s" }, { 9995000000, "10s" },
		{ 59949999999, "59.9s" }, { 59950000000, "1m" },
		{ 60 * S, "1m" }, { 90 * S, "1.5m" }, { 119 * S, "1.98m" },
		{ 59 * M + 57 * S, "1h" }, { 60 * M, "1h" },
		{ 120 * M, "2h" }, { 150 * M, "2.5h" },
		{ 23 * H + 57 * M, "1d" }, { 24 * H, "1d" }, { 48 * H, "2d" },
		{ 999 * D, "999d" }, { 1234 * D, "1230d" },
		{ 23148 * D, "23100d" }, { UINT64_MAX, "214000d" },
	};
	char text[SPAN_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		assert_string_equal(span_text(text, known[i].ns),
				    known[i].text);
}

/* The figures of @text between the zeros at its ends. */
static int figures(const char *text)
{
	int nr = 0, zeros = 0;

	for (; isdigit(*text) || *text == '.'; text++) {
		if (*text == '.')
			continue;
		if (*text == '0') {
			zeros += nr > 0;
			continue;
		}
		nr += zeros + 1;
		zeros = 0;
	}
	return nr;
}

static void check(uint64_t ns)
{
	static const struct {
		const char *unit;
		unsigned int end;	/* the next unit begins there */
	} units[] = {
		{ "ns", 1000 }, { "us", 1000 }, { "ms", 1000 }, { "s", 60 },
		{ "m", 60 }, { "h", 24 }, { "d", 214001 },
	};
	uint64_t back, off;
	char text[SPAN_TEXT];
	const char *unit, *why;
	double number;
	size_t i = 0;

	span_text(text, ns);
	/* 2^64 ns are fewer than 214,000 days. */
	if (ns < 213500 * D) {
		assert_int_equal(parse_duration(text, &back, &why), 0);
		off = back > ns ? back - ns : ns - back;
		if (off > ns / 100)
			fail_msg("%llu is said to be %s",
				 (unsigned long long)ns, text);
	}
	if (figures(text) > 3)
		fail_msg("%s has more than three figures", text);
	number = strtod(text, (char **)&unit);
	while (strcmp(units[i].unit, unit))
		i++;
	if ((ns && number < 1) || number >= units[i].end)
		fail_msg("%s is not in the right unit", text);
	/* Nothing is gained by a zero at the end. */
	if (strchr(text, '.') && unit[-1] == '0')
		fail_msg("%s ends with a zero", text);
}

/* Around each power of ten and each unit, and at random in all sizes. */
static void close_to_the_number(void **state)
{
	static const uint64_t ends[] = { 1, 1000, MS, S, M, H, D };
	unsigned int seed = 13;
	uint64_t ns, factor;
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		for (factor = 1; factor <= 100000; factor *= 10) {
			for (n = -2000; n <= 2000; n++) {
				ns = ends[i] * factor;
				check(ns + n * (int64_t)(ns / 2000 + 1));
				check(ns + n);
			}
		}
	}
	for (n = 0; n < 1000000; n++) {
		ns = (uint64_t)rand_r(&seed) << 33 ^
		     (uint64_t)rand_r(&seed) << 11 ^ rand_r(&seed);
		check(ns >> (rand_r(&seed) % 64));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(close_to_the_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
