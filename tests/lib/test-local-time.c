// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Times of day in the zone of the machine: today or tomorrow, summer and winter,
 * hours that are left out and hours that come twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "tools/local-time.h"

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
	(void)arg;
	/* 2026-10-25T00:30:00Z, still summer. */
	assert_int_equal(when("2026-10-25 02:30", 0), 1792888200);
}

static void test_hour_that_is_left_out(void **arg)
{
	(void)arg;
	assert_non_null(strstr(refusal("2026-03-29 02:30"), "forward"));
	assert_true(when("2026-03-29 03:00", 0) > 0);
}

static void test_what_is_wrong_is_refused(void **arg)
{
	static const char *const texts[] = {
		"24:00", "12:60", "12:00:60", "1:00", "12", "12:00 ", "12:0",
		"2026-02-29 12:00", "2026-13-01 12:00", "2026-11-31T12:00",
		"2026-11-21", "2026-11-21 25:00", "2026-1-1 12:00", "noon", "",
	};
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		refusal(texts[i]);
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
		cmocka_unit_test(test_day_with_another_number_of_hours),
		cmocka_unit_test(test_hour_that_comes_twice),
		cmocka_unit_test(test_hour_that_is_left_out),
		cmocka_unit_test(test_what_is_wrong_is_refused),
		cmocka_unit_test(test_everything_else_is_as_ever),
	};

	return cmocka_run_group_tests(tests, zone, NULL);
}
