// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Spans of time: each unit by each of its names, and random ones as systemd reads
 * them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <linux/expiry.h>
#include "tools/input/parse-span.h"
#include "tools/input/parse-time.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

static void periods(void **state)
{
	const char *why;
	uint32_t ms = 7;

	(void)state;
	assert_int_equal(parse_period("1ms", &ms, &why), 0);
	assert_int_equal(ms, 1);
	assert_int_equal(parse_period("1m30s", &ms, &why), 0);
	assert_int_equal(ms, 90000);
	assert_int_equal(parse_period("4294967295ms", &ms, &why), 0);
	assert_int_equal(ms, UINT32_MAX);
	assert_int_equal(parse_period("4294967296ms", &ms, &why), -EINVAL);
	assert_int_equal(parse_period("0s", &ms, &why), -EINVAL);
	assert_int_equal(parse_period("1500us", &ms, &why), -EINVAL);
	assert_int_equal(parse_period("+5s", &ms, &why), -EINVAL);
	assert_int_equal(parse_period("", &ms, &why), -EINVAL);
	assert_int_equal(ms, UINT32_MAX);
}

/* Every unit, by itself and with every other one, to the nanosecond. */
static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 }, { "nsec", 1 },
	{ "us", 1000 }, { "usec", 1000 }, { "\302\265s", 1000 },
	{ "\316\274s", 1000 },
	{ "ms", 1000000 }, { "msec", 1000000 },
	{ "s", 1000000000 }, { "sec", 1000000000 },
	{ "second", 1000000000 }, { "seconds", 1000000000 },
	{ "m", 60000000000 }, { "min", 60000000000 },
	{ "minute", 60000000000 }, { "minutes", 60000000000 },
	{ "h", 3600000000000 }, { "hr", 3600000000000 },
	{ "hour", 3600000000000 }, { "hours", 3600000000000 },
	{ "d", 86400000000000 }, { "day", 86400000000000 },
	{ "days", 86400000000000 },
	{ "w", 604800000000000 }, { "week", 604800000000000 },
	{ "weeks", 604800000000000 },
	{ "M", 2629800000000000 }, { "month", 2629800000000000 },
	{ "months", 2629800000000000 },
	{ "y", 31557600000000000 }, { "year", 31557600000000000 },
	{ "years", 31557600000000000 },
};

__attribute__((format(printf, 2, 3)))
static void expect_duration(uint64_t expected, const char *format, ...)
{
	struct deadline d = { DEADLINE_RAW, 0 };
	uint64_t ns = 0x1234;
	const char *why = "";
	char text[128] = "+";
	va_list args;
	int ret;

	va_start(args, format);
	vsnprintf(text + 1, sizeof(text) - 1, format, args);
	va_end(args);
	ret = parse_duration(text + 1, &ns, &why);
	if (expected == EXPIRY_NEVER) {
		if (ret != -EINVAL || ns != 0x1234)
			fail_msg("%s: %d, %llu ns", text, ret,
				 (unsigned long long)ns);
		return;
	}
	if (ret || ns != expected)
		fail_msg("%s: %s, %llu ns", text, why, (unsigned long long)ns);
	assert_int_equal(parse_deadline(text, &d, &why), 0);
	assert_true(d.kind == DEADLINE_RELATIVE && d.ns == expected);
}

static void every_unit(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(units); i++) {
		const char *name = units[i].name;
		const uint64_t ns = units[i].ns;
		const uint64_t most = (EXPIRY_NEVER - 1) / ns;

		expect_duration(0, "0%s", name);
		expect_duration(ns, "1%s", name);
		expect_duration(7 * ns, "007%s", name);
		expect_duration(ns + ns / 2, "1.5%s", name);
		expect_duration(ns / 4, "0.25%s", name);
		expect_duration(3 * ns + ns / 1000000000, "3.000000001%s", name);
		expect_duration(most * ns, "%llu%s", (unsigned long long)most,
				name);
		expect_duration(EXPIRY_NEVER, "%llu%s",
				(unsigned long long)most + 1, name);
		expect_duration(EXPIRY_NEVER, "1%s1", name);
		expect_duration(ns, "1%s ", name);
		expect_duration(ns, " 1\t%s", name);
		expect_duration(EXPIRY_NEVER, "%s", name);
		for (k = 0; k < ARRAY_SIZE(units); k++)
			expect_duration(2 * ns + 3 * units[k].ns,
					k % 2 ? "2%s3%s" : "2 %s 3 %s", name,
					units[k].name);
	}
}

static void every_unit_as_period(void **state)
{
	static const struct {
		const char *text;
		uint32_t ms;
	} cases[] = {
		{ "1ms", 1 }, { "1000us", 1 }, { "1000000ns", 1 },
		{ "0.001s", 1 }, { "250ms", 250 }, { "1s", 1000 },
		{ "1.5s", 1500 }, { "1m", 60000 }, { "1h", 3600000 },
		{ "1d", 86400000 }, { "1w", 604800000 },
		{ "49d", 4233600000 }, { "1w2d3h4m5s6ms", 788645006 },
		{ "1 month", 2629800000 }, { "2h 30min", 9000000 },
	};
	const char *why;
	uint32_t ms;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ms = 0;
		if (parse_period(cases[i].text, &ms, &why) ||
		    ms != cases[i].ms)
			fail_msg("%s: %u ms", cases[i].text, ms);
	}
}

static const char *refusal(const char *text)
{
	const char *why = NULL;
	uint64_t ns;

	if (parse_duration(text, &ns, &why) != -EINVAL)
		fail_msg("\"%s\" was taken", text);
	return why;
}

static void refusals_name_what_is_missing(void **state)
{
	(void)state;
	assert_non_null(strstr(refusal("5"), "wants a unit"));
	assert_non_null(strstr(refusal("1h30"), "wants a unit"));
	assert_non_null(strstr(refusal("5 parsecs"), "wants a unit"));
	assert_non_null(strstr(refusal("5MIN"), "wants a unit"));
	assert_non_null(strstr(refusal("5.s"), "decimals"));
	assert_non_null(strstr(refusal(""), "expected a span"));
	assert_non_null(strstr(refusal("soon"), "expected a span"));
	assert_non_null(strstr(refusal("+5s"), "expected a span"));
	assert_non_null(strstr(refusal("600y"), "too large"));
}

#define EXPRESSIONS	400
#define EXPRESSION_MAX	128

/* Writes a span of whole microseconds in words that systemd knows. */
static void random_span(char *text, unsigned int *seed)
{
	static const int decimals[] = { 0, 5, 25, 125 };
	int parts = 1 + rand_r(seed) % 4, len = 0, decimal;
	size_t unit;

	while (parts--) {
		unit = rand_r(seed) % ARRAY_SIZE(units);
		decimal = decimals[rand_r(seed) % 4];
		if (units[unit].ns < 1000)
			continue;
		/* Less than a microsecond has no place in systemd's. */
		if (units[unit].ns < 1000000)
			decimal = 0;
		len += snprintf(text + len, EXPRESSION_MAX - len, "%d",
				rand_r(seed) % (units[unit].ns < 1000000000 ?
						2000 : 30));
		if (decimal)
			len += snprintf(text + len, EXPRESSION_MAX - len, ".%d",
					decimal);
		len += snprintf(text + len, EXPRESSION_MAX - len, "%s%s%s",
				rand_r(seed) % 2 ? " " : "", units[unit].name,
				rand_r(seed) % 2 ? " " : "");
	}
	if (!len)
		strcpy(text, "1min");
}

static void random_spans_as_systemd_reads_them(void **state)
{
	static char texts[EXPRESSIONS][EXPRESSION_MAX];
	static char command[EXPRESSIONS * (EXPRESSION_MAX + 3) + 128] =
		"LC_ALL=C.UTF-8 systemd-analyze timespan --";
	unsigned int seed = 20261122;
	unsigned long long usec;
	const char *why = "";
	char line[256];
	uint64_t ns;
	FILE *pipe;
	int i, seen = 0;

	(void)state;
	if (system("systemd-analyze --version >/dev/null 2>&1"))
		skip();
	for (i = 0; i < EXPRESSIONS; i++) {
		random_span(texts[i], &seed);
		sprintf(command + strlen(command), " '%s'", texts[i]);
	}
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		/* The line "μs: 300000000" below each expression. */
		if (sscanf(line, " \316\274s: %llu", &usec) != 1)
			continue;
		assert_true(seen < EXPRESSIONS);
		if (parse_duration(texts[seen], &ns, &why))
			fail_msg("%s: %s", texts[seen], why);
		if (ns != usec * 1000)
			fail_msg("%s: %llu ns, systemd says %llu us",
				 texts[seen], (unsigned long long)ns, usec);
		seen++;
	}
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(seen, EXPRESSIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periods),
		cmocka_unit_test(every_unit),
		cmocka_unit_test(every_unit_as_period),
		cmocka_unit_test(refusals_name_what_is_missing),
		cmocka_unit_test(random_spans_as_systemd_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
