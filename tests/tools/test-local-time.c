// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Times of day in the zone of the machine: today or tomorrow, summer and winter,
 * hours that are left out and hours that come twice.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tools/input/local-time.h"

/* Middle Europe, by its rule: no zone files are needed. */
#define ZONE	"CET-1CEST,M3.5.0,M10.5.0/3"

/* 2026-11-21T11:00:00Z, noon in that zone. */
#define NOON	1795258800

static int zone(void **arg)
{
	(void)arg;
	setenv("TZ", ZONE, 1);
	tzset();
	return 0;
}

static int64_t when(const char *text, time_t now)
{
	struct deadline deadline;
	const char *why;

	if (parse_local_deadline(text, now, &deadline, &why))
		return -1;
	assert_int_equal(deadline.kind, DEADLINE_CALENDAR);
	assert_int_equal(deadline.ns % 1000000000, 0);
	return deadline.ns / 1000000000;
}

static const char *refusal(const char *text)
{
	struct deadline deadline;
	const char *why = NULL;

	assert_true(parse_local_deadline(text, NOON, &deadline, &why) < 0);
	assert_non_null(why);
	return why;
}

static void test_time_of_day_is_the_next(void **arg)
{
	(void)arg;
	assert_int_equal(when("12:01", NOON), NOON + 60);
	assert_int_equal(when("12:00:01", NOON), NOON + 1);
	assert_int_equal(when("12:00", NOON), NOON + 86400);
	assert_int_equal(when("11:59", NOON), NOON + 86340);
	assert_int_equal(when("00:00", NOON), NOON + 43200);
}

static void test_dates(void **arg)
{
	(void)arg;
	assert_int_equal(when("2026-11-21T12:00", 0), NOON);
	assert_int_equal(when("2026-11-21 12:00:05", 0), NOON + 5);
	/* Summer: two hours before UTC. 2026-07-01T10:00:00Z */
	assert_int_equal(when("2026-07-01 12:00", 0), 1782900000);
	assert_int_equal(when("1969-01-01 00:00", 0), 0);
	/* With a zone it is what it says. */
	assert_int_equal(when("2026-11-21T11:00:00Z", 0), NOON);
	assert_int_equal(when("2026-11-21T11:00:00+00:00", 0), NOON);
}

/* In the words of systemd.time(7). It is noon on Saturday. */
static void test_words(void **arg)
{
	const int64_t midnight = NOON - 43200;

	(void)arg;
	assert_int_equal(when("tomorrow", NOON), midnight + 86400);
	assert_int_equal(when("tomorrow 09:00", NOON), NOON + 21 * 3600);
	assert_int_equal(when("Tomorrow 9:00", NOON), NOON + 21 * 3600);
	assert_int_equal(when("today 18:00", NOON), NOON + 6 * 3600);
	assert_int_equal(when("2026-11-22", NOON), midnight + 86400);
	assert_int_equal(when("2026-11-20", NOON), midnight - 86400);
	/* The next Saturday is today only for what is still to come. */
	assert_int_equal(when("Sat 12:01", NOON), NOON + 60);
	assert_int_equal(when("Sat 12:00", NOON), NOON + 7 * 86400);
	assert_int_equal(when("Sat", NOON), midnight + 7 * 86400);
	assert_int_equal(when("Sun 12:01", NOON), NOON + 86460);
	assert_int_equal(when("sunday", NOON), midnight + 86400);
	assert_int_equal(when("Mon 09:00", NOON), NOON + 45 * 3600);
	assert_int_equal(when("FRIDAY, 12:00", NOON), NOON + 6 * 86400);
	assert_int_equal(when("Mon 2026-11-23 12:00", NOON), NOON + 2 * 86400);
	assert_int_equal(when("Mon, 2026-11-23", NOON), midnight + 2 * 86400);
}

static void test_other_zones(void **arg)
{
	int fd;

	(void)arg;
	/* It is 11:00 there. */
	assert_int_equal(when("11:00 UTC", NOON), NOON + 86400);
	assert_int_equal(when("11:01 utc", NOON), NOON + 60);
	assert_int_equal(when(" \t11:01  UTC ", NOON), NOON + 60);
	assert_int_equal(when("11:01Z", NOON), NOON + 60);
	assert_int_equal(when("2026-11-21 UTC", NOON), NOON - 11 * 3600);
	assert_int_equal(when("tomorrow UTC", NOON), NOON + 13 * 3600);
	assert_int_equal(when("2026-11-21T13:00 +02:00", NOON), NOON);
	/* The date is another one where it is past midnight. */
	assert_int_equal(when("tomorrow +13:00", NOON), NOON + 86400);
	assert_int_equal(when("Sun 00:30 +13:00", NOON), NOON + 1800);
	if (access("/usr/share/zoneinfo/Asia/Tokyo", R_OK))
		skip();
	fd = dup(0);
	close(fd);
	/* Tokyo has 20:00. */
	assert_int_equal(when("20:01 Asia/Tokyo", NOON), NOON + 60);
	assert_int_equal(when("tomorrow Asia/Tokyo", NOON), NOON + 4 * 3600);
	/* The zone here is what it was. */
	assert_string_equal(getenv("TZ"), ZONE);
	assert_int_equal(when("12:01", NOON), NOON + 60);
	unsetenv("TZ");
	tzset();
	assert_int_equal(when("20:01 Asia/Tokyo", NOON), NOON + 60);
	assert_null(getenv("TZ"));
	assert_int_equal(zone(NULL), 0);
	/* No file is left open. */
	assert_int_equal(dup(0), fd);
	close(fd);
}

static void test_fractions(void **arg)
{
	struct deadline deadline;
	const char *why;

	(void)arg;
	assert_int_equal(parse_local_deadline("12:00:01.25", NOON, &deadline,
					      &why), 0);
	assert_int_equal(deadline.ns, (NOON + 1) * 1000000000ULL + 250000000);
}

/* A date that has passed is due at once; what can only have passed is a mistake. */
static void test_what_has_passed(void **arg)
{
	(void)arg;
	assert_non_null(strstr(refusal("today"), "passed"));
	assert_non_null(strstr(refusal("today 12:00"), "passed"));
	assert_non_null(strstr(refusal("yesterday"), "passed"));
	assert_non_null(strstr(refusal("yesterday 18:00"), "passed"));
	assert_non_null(strstr(refusal("-5s"), "in the past"));
	assert_non_null(strstr(refusal("5 min ago"), "in the past"));
	assert_non_null(strstr(refusal("5s"), "begins with +"));
	assert_true(when("2020-01-01", NOON) > 0);
}

/* Each form, to the nanosecond, by a calendar of its own: the C library's. */
static void test_every_form(void **arg)
{
	static const struct {
		const char *text;
		int year, month, day, hour, minute, second;
	} cases[] = {
		{ "13:14", 2026, 11, 21, 13, 14, 0 },
		{ "13:14:15", 2026, 11, 21, 13, 14, 15 },
		{ "11:59:59", 2026, 11, 22, 11, 59, 59 },
		{ "23:59:59", 2026, 11, 21, 23, 59, 59 },
		{ "00:00", 2026, 11, 22, 0, 0, 0 },
		{ "2027-02-03T04:05", 2027, 2, 3, 4, 5, 0 },
		{ "2027-02-03T04:05:06", 2027, 2, 3, 4, 5, 6 },
		{ "2027-02-03 04:05", 2027, 2, 3, 4, 5, 0 },
		{ "2027-02-03 04:05:06", 2027, 2, 3, 4, 5, 6 },
		{ "2028-02-29 23:59:59", 2028, 2, 29, 23, 59, 59 },
		{ "2027-07-08 09:10:11", 2027, 7, 8, 9, 10, 11 },
		{ "2026-12-31 23:59", 2026, 12, 31, 23, 59, 0 },
		{ "2500-12-31 23:59:59", 2500, 12, 31, 23, 59, 59 },
	};
	struct tm tm;
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		tm = (struct tm){
			.tm_year = cases[i].year - 1900,
			.tm_mon = cases[i].month - 1,
			.tm_mday = cases[i].day,
			/* Winter is an hour ahead of UTC, summer two. */
			.tm_hour = cases[i].hour - (cases[i].month == 7 ? 2 : 1),
			.tm_min = cases[i].minute,
			.tm_sec = cases[i].second,
		};
		if (when(cases[i].text, NOON) != timegm(&tm))
			fail_msg("%s: %lld, not %lld", cases[i].text,
				 (long long)when(cases[i].text, NOON),
				 (long long)timegm(&tm));
	}
}

static void test_last_time_of_all(void **arg)
{
	(void)arg;
	/* 2^64 nanoseconds end in the year 2554, on July 21st. */
	assert_int_equal(when("2554-07-22 01:34:33", 0), 18446744073);
	assert_non_null(strstr(refusal("2554-07-22 01:34:34"), "too large"));
	assert_non_null(strstr(refusal("9999-12-31 23:59"), "too large"));
}

static void test_day_with_another_number_of_hours(void **arg)
{
	(void)arg;
	/* 2026-10-24T10:00:00Z is noon; the next one is 25 hours away. */
	assert_int_equal(when("12:00", 1792836000), 1792836000 + 90000);
	/* 2026-03-28T11:00:00Z is noon; the next one is 23 hours away. */
	assert_int_equal(when("12:00", 1774695600), 1774695600 + 82800);
}

static void test_hour_that_comes_twice(void **arg)
{
	/* 2026-10-25T00:30:00Z, still summer; an hour later winter has come. */
	const int64_t first = 1792888200;

	(void)arg;
	assert_int_equal(when("2026-10-25 02:30", 0), first);
	assert_int_equal(when("2026-10-25 02:30", first + 10000), first);
	assert_int_equal(when("02:30", first - 60), first);
	assert_int_equal(when("02:30", first), first + 3600);
	assert_int_equal(when("02:30", first + 3599), first + 3600);
	assert_int_equal(when("02:30", first + 3600), first + 90000);
	assert_int_equal(when("today 02:30", first + 60), first + 3600);
	assert_int_equal(when("Sun 02:30", first + 60), first + 3600);
}

static void test_hour_that_is_left_out(void **arg)
{
	/* 2026-03-29T01:00:00Z is 03:00. */
	const int64_t three = 1774746000;
	struct deadline deadline;
	const char *why = "";

	(void)arg;
	assert_non_null(strstr(refusal("2026-03-29 02:30"), "forward"));
	assert_int_equal(when("2026-03-29 03:00", 0), three);
	assert_int_equal(parse_local_deadline("02:30", three - 3600, &deadline,
					      &why), -EINVAL);
	assert_non_null(strstr(why, "forward"));
	assert_int_equal(parse_local_deadline("tomorrow 02:30", three - 86400,
					      &deadline, &why), -EINVAL);
	assert_int_equal(when("03:30", three + 1740), three + 1800);
	assert_int_equal(when("03:30", three + 1860), three + 1800 + 86400);
	assert_int_equal(when("today 03:30", three + 1740), three + 1800);
	assert_int_equal(parse_local_deadline("today 03:30", three + 1860,
					      &deadline, &why), -EINVAL);
	assert_non_null(strstr(why, "passed"));
	/* Later that day it is tomorrow's. */
	assert_int_equal(when("02:30", three + 3600), three + 23 * 3600 + 1800);
}

/* Clocks are set by half an hour, too, and without a summer time: Lord Howe's
 * rule, and a zone that moved by an hour for good.
 */
static void test_other_steps(void **arg)
{
	(void)arg;
	setenv("TZ", "LHST-10:30LHDT-11,M10.1.0,M4.1.0", 1);
	tzset();
	/* 2026-04-05: 02:00 becomes 01:30, at 15:00 UTC the day before. */
	assert_int_equal(when("2026-04-05 01:45", 0), 1775314800 - 900);
	assert_int_equal(when("01:45", 1775314800 - 60), 1775314800 + 900);
	/* 2026-10-04: 02:00 becomes 02:30, at 15:30 UTC. */
	assert_non_null(strstr(refusal("2026-10-04 02:15"), "forward"));
	assert_int_equal(when("2026-10-04 02:30", 0), 1791041400);
	setenv("TZ", "EST5EDT,M3.2.0,M11.1.0", 1);
	tzset();
	/* 2026-11-01 01:30 in New York: 05:30 UTC, then 06:30 UTC. */
	assert_int_equal(when("2026-11-01 01:30", 0), 1793511000);
	assert_int_equal(when("01:30", 1793511000), 1793511000 + 3600);
	/* Summer of three days. 2026-04-11T11:00:00Z */
	setenv("TZ", "XXX0YYY,J100/0,J103/0", 1);
	tzset();
	assert_int_equal(when("2026-04-11 12:00", 0), 1775905200);
	assert_int_equal(zone(NULL), 0);
}

/* Where summer begins at midnight the day exists and its first hour does not:
 * the fault of 00:30 is the hour, not the date.
 */
static void test_midnight_that_is_left_out(void **arg)
{
	(void)arg;
	setenv("TZ", "XXX3YYY,M10.3.0/0,M2.3.0/0", 1);
	tzset();
	assert_non_null(strstr(refusal("2026-10-18 00:30"), "forward"));
	/* 2026-10-18T03:00:00Z, with which the day begins. */
	assert_int_equal(when("2026-10-18 01:00", 0), 1792292400);
	assert_int_equal(when("2026-10-18", 0), 1792292400);
	assert_int_equal(when("tomorrow", 1792292400 - 3600), 1792292400);
	/* Put forward by a minute only. */
	setenv("TZ", "XXX3YYY2:59,M10.3.0/0,M2.3.0/0", 1);
	tzset();
	assert_int_equal(when("2026-10-18", 0), 1792292400);
	assert_int_equal(zone(NULL), 0);
}

static void test_what_is_wrong_is_refused(void **arg)
{
	static const char *const texts[] = {
		"24:00", "12:60", "12:00:60", "100:00", "12", "12:0", ":00",
		"2026-02-29 12:00", "2026-13-01 12:00", "2026-11-31T12:00",
		"2026-02-29", "2026-11-21 25:00", "2026-1-1 12:00", "noon", "",
		"Mon 2026-11-21", "Mon tomorrow", "Sun tomorrow", "Mo 12:00", "Mon Tue", "Mon,Tue",
		"tomorrow tomorrow", "tomorrow12:00", "tomorrowT12:00",
		"12:00 tomorrow", "12:00 UTC UTC", "12:00UTC", "UTC", "12:00.5",
		"12:00 Zones/have/names/of/at/most/47/letters/and/no/more",
		"12:00 No/Where", "12:00 ../UTC", "12:00 Europe/", "12:00 leapseconds",
		"12:00 +1:00", "2026-11-21T", "2026-11-21T12", "5s", "-5s",
	};
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refusal(texts[i]);
}

/* Bytes without sense: no crash, and what is taken is one of the three kinds. */
static void test_random_texts(void **arg)
{
	static const char *const words[] = {
		"Mon", "monday", ",", " ", "  ", "tomorrow", "today", "T", "Z", "UTC",
		"left", "ago", "now", "never", "+", "-", "@", ":", ".", "12", "1",
		"2027-02-28", "02:30", "+01:00", "Asia/Tokyo", "5s", "min", "\xb5",
	};
	const size_t nr = sizeof(words) / sizeof(*words);
	unsigned int seed = 20270131, taken = 0;
	struct deadline deadline;
	const char *why;
	char text[128];
	int round, i;

	(void)arg;
	for (round = 0; round < 100000; round++) {
		*text = '\0';
		for (i = rand_r(&seed) % 7; i >= 0; i--)
			strcat(text, words[rand_r(&seed) % nr]);
		if (parse_local_deadline(text, NOON, &deadline, &why)) {
			assert_non_null(why);
			continue;
		}
		assert_true(deadline.kind <= DEADLINE_CALENDAR);
		taken++;
	}
	assert_true(taken > 100);
}

static void test_everything_else_is_as_ever(void **arg)
{
	struct deadline deadline;
	const char *why;

	(void)arg;
	assert_int_equal(parse_local_deadline("+5s", NOON, &deadline, &why), 0);
	assert_int_equal(deadline.kind, DEADLINE_RELATIVE);
	assert_int_equal(parse_local_deadline("never", NOON, &deadline, &why),
			 0);
	assert_int_equal(deadline.kind, DEADLINE_RAW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_of_day_is_the_next),
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_other_zones),
		cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_what_has_passed),
		cmocka_unit_test(test_every_form),
		cmocka_unit_test(test_last_time_of_all),
		cmocka_unit_test(test_day_with_another_number_of_hours),
		cmocka_unit_test(test_hour_that_comes_twice),
		cmocka_unit_test(test_hour_that_is_left_out),
		cmocka_unit_test(test_other_steps),
		cmocka_unit_test(test_midnight_that_is_left_out),
		cmocka_unit_test(test_what_is_wrong_is_refused),
		cmocka_unit_test(test_random_texts),
		cmocka_unit_test(test_everything_else_is_as_ever),
	};

	return cmocka_run_group_tests(tests, zone, NULL);
}
