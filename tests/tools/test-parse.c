// SPDX-License-Identifier: LGPL-2.1-or-later
/* expiryctl's parsers: deadlines, numbers, lines; valid and invalid ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <linux/expiry.h>
#include "tools/input/lines.h"
#include "tools/input/parse-line.h"
#include "tools/input/parse-time.h"

#define S	1000000000ULL
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

static void deadlines_right(void **state)
{
	static const struct {
		const char *text;
		enum deadline_kind kind;
		uint64_t ns;
	} cases[] = {
		{ "+5s", DEADLINE_RELATIVE, 5 * S },
		{ "+0s", DEADLINE_RELATIVE, 0 },
		{ "+1h30m", DEADLINE_RELATIVE, 5400 * S },
		{ "+250ms", DEADLINE_RELATIVE, S / 4 },
		{ "+1.5h", DEADLINE_RELATIVE, 5400 * S },
		{ "+0.000000001s", DEADLINE_RELATIVE, 1 },
		{ "+0.5ns", DEADLINE_RELATIVE, 0 },
		{ "+1w2d3h4m5s6ms7us8ns", DEADLINE_RELATIVE,
		  (7 * 86400 + 2 * 86400 + 3 * 3600 + 4 * 60 + 5) * S +
		  6007008 },
		{ "+18446744073709551614ns", DEADLINE_RELATIVE,
		  EXPIRY_NEVER - 1 },
		{ "+1h 30min", DEADLINE_RELATIVE, 5400 * S },
		{ "+ 5 seconds ", DEADLINE_RELATIVE, 5 * S },
		{ "5min left", DEADLINE_RELATIVE, 300 * S },
		{ "1 h 2 s  left", DEADLINE_RELATIVE, 3602 * S },
		{ "5s\tleft", DEADLINE_RELATIVE, 5 * S },
		{ "now", DEADLINE_RELATIVE, 0 },
		{ "@0", DEADLINE_RAW, 0 },
		{ "@12.5", DEADLINE_RAW, 12 * S + S / 2 },
		{ "@1700000000.000000001", DEADLINE_RAW, 1700000000 * S + 1 },
		{ "@18446744073.709551614", DEADLINE_RAW, EXPIRY_NEVER - 1 },
		{ "never", DEADLINE_RAW, EXPIRY_NEVER },
		{ "1970-01-01T00:00:00Z", DEADLINE_CALENDAR, 0 },
		{ "1969-12-31T23:59:59Z", DEADLINE_CALENDAR, 0 },
		{ "0000-01-01T00:00:00Z", DEADLINE_CALENDAR, 0 },
		{ "1970-01-01T01:00:00+01:00", DEADLINE_CALENDAR, 0 },
		{ "1970-01-01T00:00:00.5Z", DEADLINE_CALENDAR, S / 2 },
		{ "1970-01-01T00:00:01.5Z", DEADLINE_CALENDAR, S + S / 2 },
		{ "1970-01-01t00:00:01z", DEADLINE_CALENDAR, S },
		{ "2000-02-29T00:00:00Z", DEADLINE_CALENDAR, 951782400 * S },
		{ "2027-01-31T12:00:00Z", DEADLINE_CALENDAR, 1801396800 * S },
		{ "2027-01-31 12:00:00Z", DEADLINE_CALENDAR, 1801396800 * S },
		{ "2027-01-31T12:00Z", DEADLINE_CALENDAR, 1801396800 * S },
		{ "2027-01-31  12:00:00 UTC", DEADLINE_CALENDAR,
		  1801396800 * S },
		{ "Sun, 2027-01-31 14:00 +02:00", DEADLINE_CALENDAR,
		  1801396800 * S },
		{ "2027-01-31T12:00:00-00:30", DEADLINE_CALENDAR,
		  1801398600 * S },
		{ "2016-12-31T23:59:60Z", DEADLINE_CALENDAR, 1483228800 * S },
		{ "2017-01-01T00:59:60.9+01:00", DEADLINE_CALENDAR,
		  1483228800 * S },
		{ "2554-07-21T23:34:33.709551614Z", DEADLINE_CALENDAR,
		  EXPIRY_NEVER - 1 },
	};
	struct deadline d;
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		why = cases[i].text;
		if (parse_deadline(cases[i].text, &d, &why))
			fail_msg("%s: %s", cases[i].text, why);
		if (d.kind != cases[i].kind || d.ns != cases[i].ns)
			fail_msg("%s: kind %d, %llu ns", cases[i].text, d.kind,
				 (unsigned long long)d.ns);
	}
}

static void deadlines_wrong(void **state)
{
	static const char *const cases[] = {
		"", " ", "+", "@", "-5s", "5s", "tomorrow", "never ", "Never",
		"+5", "+s", "+1h30", "+5x", "+5S", "+.5s", "+5.s", "+5 5s",
		"5s ago", "-5s left", "left", " left", "5sleft", "5 left",
		"now ", "+now", "today", "12:00", "Mon 12:00", "12:00Z",
		"Sun 2027-02-01T12:00:00Z", "2027-01-31T12:00:00",
		"2027-01-31 12:00:00 Europe/Berlin", "2027-01-31 UTC",
		"2027-01-31T 12:00:00Z", "2027-01-31TZ", "2027-01-31T",
		"2027-01-31T12:00:00UTC", "2027-01-31T12:00:00 UTC x",
		"+-5s", "++5s", "+5s-1s", "+1.5.5s", "+0x5s", "+1e3s",
		"+0.1234567890s", "+5sm", "+5s@",
		"+18446744073709551615ns", "+18446744073709551616ns",
		"+99999999999999999999999999s", "+585y", "+30501w",
		"+18446744073s18446744073s",
		"@-1", "@+1", "@1.", "@.5", "@1.1234567890", "@1s", "@1 ",
		"@0x10", "@18446744073.709551615", "@18446744074",
		"@99999999999999999999",
		"2027", "2027-01-31", "2027-01-31T12:00:00",
		"2027-01-31T12:00:00.Z", "2027-01-31T12:00:00.1234567890Z",
		"2027-01-31T12:00:00Zjunk", "2027-01-31T12:00:00+1:00",
		"2027-01-31T12:00:00+01", "2027-01-31T12:00:00+0100",
		"2027-01-31T12:00:00+24:00", "2027-01-31T12:00:00+01:60",
		"2027-1-31T12:00:00Z", "02027-01-31T12:00:00Z",
		"20270131T120000Z", "2027-01-31T12:00:00 +5:00",
		"2027-02-30T00:00:00Z", "2027-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z", "2027-00-10T00:00:00Z",
		"2027-13-10T00:00:00Z", "2027-01-00T00:00:00Z",
		"2027-01-32T00:00:00Z", "2027-04-31T00:00:00Z",
		"2027-01-31T24:00:00Z", "2027-01-31T12:60:00Z",
		"2027-01-31T12:00:61Z",
		/* no leap second at noon, in March, or in the zone's midnight */
		"2016-12-31T12:00:60Z", "2017-01-01T00:29:60Z",
		"2016-12-31T23:59:61Z", "2016-03-31T23:59:60Z",
		"2016-12-31T23:59:60+01:00", "1971-12-31T23:59:60Z",
		"2554-07-21T23:34:33.709551615Z", "2554-07-21T23:34:34Z",
		"9999-12-31T23:59:59Z",
	};
	const struct deadline before = { DEADLINE_RAW, 0x1234 };
	struct deadline d;
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		d = before;
		why = NULL;
		if (parse_deadline(cases[i], &d, &why) != -EINVAL)
			fail_msg("\"%s\" was taken for %llu ns", cases[i],
				 (unsigned long long)d.ns);
		assert_non_null(why);
		assert_true(d.kind == before.kind && d.ns == before.ns);
	}
}

/* A span with a word behind it has at most 127 bytes. */
static void longest_span_with_a_word(void **state)
{
	struct deadline d;
	const char *why;
	char text[160];

	(void)state;
	snprintf(text, sizeof(text), "%122ss left", "5");
	assert_int_equal(strlen(text), 128);
	assert_int_equal(parse_deadline(text, &d, &why), -EINVAL);
	assert_int_equal(parse_deadline(text + 1, &d, &why), 0);
	assert_true(d.ns == 5 * S);
}

/* A time of nearly every day until 2554 against the C library's calendar. */
static void dates_as_in_libc(void **state)
{
	struct deadline d;
	const char *why;
	char text[64];
	struct tm tm;
	time_t t;

	(void)state;
	for (t = 0; t < 18446744073; t += 86400 + 3607) {
		gmtime_r(&t, &tm);
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		assert_int_equal(parse_deadline(text, &d, &why), 0);
		assert_true(d.ns == (uint64_t)t * S);
	}
}

/* Every month has its last day, and no other behind it. */
static void months_end(void **state)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	struct deadline d;
	const char *why;
	char text[32];
	int month;

	(void)state;
	for (month = 1; month <= 12; month++) {
		snprintf(text, sizeof(text), "2027-%02d-%02dT00:00:00Z", month,
			 days[month - 1]);
		assert_int_equal(parse_deadline(text, &d, &why), 0);
		snprintf(text, sizeof(text), "2027-%02d-%02dT00:00:00Z", month,
			 days[month - 1] + 1);
		assert_int_equal(parse_deadline(text, &d, &why), -EINVAL);
	}
}

/* The last day of each month and the next, which is none; the leap second that
 * only June and December may have.
 */
static void ends_of_months(void **state)
{
	static const int days[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
	};
	int year, month, last;
	struct deadline d;
	uint64_t first_ns;
	const char *why;
	char text[64];

	(void)state;
	for (year = 1972; year <= 2500; year += 4) {
		for (month = 1; month <= 12; month++) {
			last = days[month - 1];
			if (month == 2 && (year % 100 || year % 400 == 0))
				last++;
			snprintf(text, sizeof(text), "%d-%02d-%02dT24:00:00Z",
				 year, month, last);
			assert_int_equal(parse_deadline(text, &d, &why),
					 -EINVAL);
			snprintf(text, sizeof(text), "%d-%02d-%02dT00:00:00Z",
				 year, month, last + 1);
			assert_int_equal(parse_deadline(text, &d, &why),
					 -EINVAL);
			snprintf(text, sizeof(text), "%d-%02d-%02dT23:59:59Z",
				 year, month, last);
			assert_int_equal(parse_deadline(text, &d, &why), 0);
			first_ns = d.ns + S;
			snprintf(text, sizeof(text), "%d-%02d-%02dT23:59:60Z",
				 year, month, last);
			if (month % 6) {
				assert_int_equal(parse_deadline(text, &d, &why),
						 -EINVAL);
				continue;
			}
			assert_int_equal(parse_deadline(text, &d, &why), 0);
			assert_true(d.ns == first_ns);
		}
	}
}

/* Hours and minutes, ahead of UTC and behind. */
static void every_zone(void **state)
{
	const uint64_t noon = 1801396800 * S;	/* 2027-01-31T12:00:00Z */
	int minutes, size;
	struct deadline d;
	const char *why;
	char text[64];

	(void)state;
	for (minutes = -1439; minutes <= 1439; minutes++) {
		size = abs(minutes);
		snprintf(text, sizeof(text), "2027-01-31T12:00:00%c%02d:%02d",
			 minutes < 0 ? '-' : '+', size / 60, size % 60);
		assert_int_equal(parse_deadline(text, &d, &why), 0);
		assert_true(d.ns == noon - minutes * 60LL * (int64_t)S);
	}
}

static void numbers(void **state)
{
	static const char *const wrong[] = {
		"", " 1", "1 ", "-1", "+1", "0x", "0xg", "1a", "x1", "1.0",
		"18446744073709551616", "0x10000000000000000",
		"99999999999999999999999",
	};
	uint64_t n = 5;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(parse_number(wrong[i], &n), -EINVAL);
		assert_true(n == 5);
	}
	assert_int_equal(parse_number("0", &n), 0);
	assert_true(n == 0);
	assert_int_equal(parse_number("18446744073709551615", &n), 0);
	assert_true(n == UINT64_MAX);
	assert_int_equal(parse_number("0xFFFFffffFFFFffff", &n), 0);
	assert_true(n == UINT64_MAX);
	assert_int_equal(parse_number("007", &n), 0);
	assert_true(n == 7);
	assert_int_equal(parse_number("9876543210", &n), 0);
	assert_true(n == 9876543210);
	assert_int_equal(parse_number("0X0123456789abcdef", &n), 0);
	assert_true(n == 0x0123456789abcdef);
	assert_int_equal(parse_number("0xFEDCBA9876543210", &n), 0);
	assert_true(n == 0xfedcba9876543210);
}

static int parse(const char *text, struct load_line *line)
{
	const char *why = NULL;
	int ret = parse_load_line(text, strlen(text), line, &why);

	if (ret < 0)
		assert_non_null(why);
	return ret;
}

static void load_lines(void **state)
{
	static const char *const blank[] = {
		"", " ", "\t \r", "# a comment", "  # +5s 1",
	};
	static const char *const wrong[] = {
		"+5s", "5s 1", "+5s x", "+5s -1", "+5s 1 0", "+5s 1 x",
		"+5s 1 2 3", "1 +5s", "+5s, 1", "+5s 1#", "\v+5s 1",
		"2027-01-31T12:00:00Z", "+5s 18446744073709551616",
		"2027-01-31 12:00:00Z 1", "\xff\xfe 1",
	};
	char text[2 * LOAD_LINE_MAX];
	struct load_line line;
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(blank); i++)
		assert_int_equal(parse(blank[i], &line), 0);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (parse(wrong[i], &line) != -EINVAL)
			fail_msg("\"%s\" was taken", wrong[i]);
	}

	assert_int_equal(parse("+5s 42", &line), 1);
	assert_true(line.deadline.ns == 5 * S && line.cookie == 42);
	assert_false(line.has_id);
	assert_int_equal(parse("\t@7.5  0x2a\t9 # late\r", &line), 1);
	assert_true(line.deadline.ns == 7 * S + S / 2 && line.cookie == 42);
	assert_true(line.has_id && line.id == 9);

	memcpy(text, "+5s 1\0" "2", 7);
	assert_int_equal(parse_load_line(text, 7, &line, &why), -EINVAL);
	memset(text, ' ', sizeof(text));
	assert_int_equal(parse_load_line(text, LOAD_LINE_MAX, &line, &why), 0);
	assert_int_equal(parse_load_line(text, LOAD_LINE_MAX + 1, &line, &why),
			 -EINVAL);
	memset(text, '9', sizeof(text));
	assert_int_equal(parse_load_line(text, LOAD_LINE_MAX, &line, &why),
			 -EINVAL);
}

/* Bytes without sense: no crash, and nothing taken that has no digit. */
static void load_lines_random(void **state)
{
	static const char alphabet[] = "+@-.:0123456789TZsmhdwun# \t\r\0\xff";
	unsigned int seed = 20270131;
	struct load_line line;
	const char *why;
	char text[64];
	size_t i, len;
	int round, ret;

	(void)state;
	for (round = 0; round < 100000; round++) {
		len = rand_r(&seed) % sizeof(text);
		for (i = 0; i < len; i++)
			text[i] = alphabet[rand_r(&seed) % sizeof(alphabet)];
		ret = parse_load_line(text, len, &line, &why);
		assert_true(ret == 0 || ret == 1 || ret == -EINVAL);
		if (ret == 1)
			assert_true(line.deadline.kind <= DEADLINE_CALENDAR);
	}
}

static void lines_of_a_file(void **state)
{
	static struct lines lines;
	static char long_line[200000];
	FILE *file = tmpfile();
	uint64_t size;
	const char *text;
	size_t len;

	(void)state;
	assert_non_null(file);
	memset(long_line, 'x', sizeof(long_line));
	fputs("one\n\nthree\n", file);
	fwrite(long_line, 1, sizeof(long_line), file);
	fputs("\nfive\n", file);
	fwrite(long_line, 1, sizeof(lines.buffer), file);
	fputs("\nseven without an end", file);
	fflush(file);
	size = lseek(fileno(file), 0, SEEK_END);
	assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);

	memset(&lines, 0xff, sizeof(lines));
	lines_init(&lines, fileno(file));
	assert_true(lines.number == 0 && lines.offset == 0);
	assert_int_equal(lines_next(&lines, &text, &len), 1);
	assert_true(len == 3 && memcmp(text, "one", 3) == 0);
	assert_int_equal(lines_next(&lines, &text, &len), 1);
	assert_int_equal(len, 0);
	assert_int_equal(lines_next(&lines, &text, &len), 1);
	assert_true(len == 5 && memcmp(text, "three", 5) == 0);
	assert_int_equal(lines_next(&lines, &text, &len), 1);
	assert_true(len > LOAD_LINE_MAX);
	assert_int_equal(lines_next(&lines, &text, &len), 1);
	assert_true(len == 4 && memcmp(text, "five", 4) == 0);
	assert_int_equal(lines.number, 5);
	assert_int_equal(lines_next(&lines, &text, &len), 1);
	assert_true(len > LOAD_LINE_MAX);
	assert_int_equal(lines_next(&lines, &text, &len), 1);
	assert_true(len == 20 && memcmp(text, "seven without an end", 20) == 0);
	assert_int_equal(lines_next(&lines, &text, &len), 0);
	assert_int_equal(lines_next(&lines, &text, &len), 0);
	assert_int_equal(lines.number, 7);
	assert_true(lines.offset == size);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deadlines_right),
		cmocka_unit_test(deadlines_wrong),
		cmocka_unit_test(longest_span_with_a_word),
		cmocka_unit_test(dates_as_in_libc),
		cmocka_unit_test(months_end),
		cmocka_unit_test(ends_of_months),
		cmocka_unit_test(every_zone),
		cmocka_unit_test(numbers),
		cmocka_unit_test(load_lines),
		cmocka_unit_test(load_lines_random),
		cmocka_unit_test(lines_of_a_file),
	};

	return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
