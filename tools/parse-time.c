// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Deadlines and durations as people write them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/expiry.h>

#include "parse-time.h"

#define NSEC_PER_SEC	1000000000ULL
#define SECS_PER_DAY	86400

static const char expect_deadline[] =
	"expected +DURATION, @SECONDS, a date as in 2027-01-31T12:00:00Z, or never";
static const char expect_duration[] =
	"expected a duration as in 250ms, 5s or 1h30m (units w d h m s ms us ns)";
static const char expect_seconds[] =
	"expected seconds with at most nine decimals, as in @1700000000.25";
static const char expect_date[] =
	"expected a date as in 2027-01-31T12:00:00Z or 2027-01-31T12:00:00.5+01:00";
static const char expect_zone[] =
	"expected a zone after the date: Z, +HH:MM or -HH:MM";
static const char no_such_date[] = "there is no such date";
static const char no_such_time[] = "there is no such time of day";
static const char no_leap_second[] =
	"a leap second can only be the last one of June or December in UTC";
static const char too_far[] =
	"too large: 2^64 nanoseconds are 584 years; write never";

static int refuse(const char **why, const char *text)
{
	*why = text;
	return -EINVAL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read digits, at least one; false if there is none or more than fit. */
static bool read_number(const char **text, uint64_t *number)
{
	uint64_t n = 0;

	if (!is_digit(**text))
		return false;
	for (; is_digit(**text); ++*text) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, **text - '0', &n))
			return false;
	}
	*number = n;
	return true;
}

/* Read the decimals behind a point: at most nine as nanoseconds of a second. */
static bool read_decimals(const char **text, uint32_t *nsec)
{
	uint32_t n = 0;
	int digits = 0;

	for (; is_digit(**text); ++*text, digits++) {
		if (digits == 9)
			return false;
		n = n * 10 + (**text - '0');
	}
	if (!digits)
		return false;
	for (; digits < 9; digits++)
		n *= 10;
	*nsec = n;
	return true;
}

static uint64_t read_unit(const char **text)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {	/* a name that begins another stands behind it */
		{ "ms", 1000000 },
		{ "us", 1000 },
		{ "ns", 1 },
		{ "w", 7 * SECS_PER_DAY * NSEC_PER_SEC },
		{ "d", SECS_PER_DAY * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC },
		{ "m", 60 * NSEC_PER_SEC },
		{ "s", NSEC_PER_SEC },
	};
	size_t i, len;

	for (i = 0; i < sizeof(units) / sizeof(*units); i++) {
		len = strlen(units[i].name);
		if (strncmp(*text, units[i].name, len) == 0) {
			*text += len;
			return units[i].ns;
		}
	}
	return 0;
}

int parse_duration(const char *text, uint64_t *ns, const char **why)
{
	uint64_t total = 0, number, unit, part;
	uint32_t decimals;

	if (!*text)
		return refuse(why, expect_duration);
	while (*text) {
		decimals = 0;
		if (!is_digit(*text))
			return refuse(why, expect_duration);
		if (!read_number(&text, &number))
			return refuse(why, too_far);
		if (*text == '.') {
			text++;
			if (!read_decimals(&text, &decimals))
				return refuse(why, expect_duration);
		}
		unit = read_unit(&text);
		if (!unit)
			return refuse(why, expect_duration);
		part = (unsigned __int128)unit * decimals / NSEC_PER_SEC;
		if (__builtin_mul_overflow(number, unit, &number) ||
		    __builtin_add_overflow(total, number, &total) ||
		    __builtin_add_overflow(total, part, &total) ||
		    total == EXPIRY_NEVER)
			return refuse(why, too_far);
	}
	*ns = total;
	return 0;
}

int parse_period(const char *text, uint32_t *ms, const char **why)
{
	uint64_t ns;

	if (parse_duration(text, &ns, why))
		return -EINVAL;
	if (!ns || ns % 1000000 || ns / 1000000 > UINT32_MAX)
		return refuse(why, "expected whole milliseconds, from 1ms to 49d");
	*ms = ns / 1000000;
	return 0;
}

static int to_ns(uint64_t seconds, uint32_t nsec, uint64_t *ns,
		 const char **why)
{
	uint64_t n;

	if (__builtin_mul_overflow(seconds, NSEC_PER_SEC, &n) ||
	    __builtin_add_overflow(n, nsec, &n) || n == EXPIRY_NEVER)
		return refuse(why, too_far);
	*ns = n;
	return 0;
}

static int parse_seconds(const char *text, uint64_t *ns, const char **why)
{
	uint64_t seconds;
	uint32_t nsec = 0;

	if (!is_digit(*text))
		return refuse(why, expect_seconds);
	if (!read_number(&text, &seconds))
		return refuse(why, too_far);
	if (*text == '.') {
		text++;
		if (!read_decimals(&text, &nsec))
			return refuse(why, expect_seconds);
	}
	if (*text)
		return refuse(why, expect_seconds);
	return to_ns(seconds, nsec, ns, why);
}

/* Read exactly @digits of them. */
static bool read_fixed(const char **text, int digits, int *number)
{
	*number = 0;
	while (digits--) {
		if (!is_digit(**text))
			return false;
		*number = *number * 10 + (*(*text)++ - '0');
	}
	return true;
}

static bool read_char(const char **text, char c)
{
	if (**text != c)
		return false;
	++*text;
	return true;
}

static int days_in_month(int year, int month)
{
	static const signed char days[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
	};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return days[month - 1] + (month == 2 && leap);
}

/* Days since 1970-01-01 in the Gregorian calendar, from 0000-01-01 on. */
static int64_t days_since_epoch(int year, int month, int day)
{
	/* The year begins in March, so that the leap day is its last. */
	int64_t y = month > 2 ? year : year - 1;
	int64_t m = month > 2 ? month - 3 : month + 9;
	int64_t since_march = (153 * m + 2) / 5 + day - 1;

	/* Year -1 divided by 400 and so on must round down. */
	y += 400;
	return y * 365 + y / 4 - y / 100 + y / 400 + since_march -
	       719468 - 146097;
}

/* Read the zone; *seconds is what UTC is behind of the time written. */
static bool read_zone(const char **text, int *seconds)
{
	int hours, minutes, sign;

	if (read_char(text, 'Z') || read_char(text, 'z')) {
		*seconds = 0;
		return true;
	}
	if (read_char(text, '+'))
		sign = 1;
	else if (read_char(text, '-'))
		sign = -1;
	else
		return false;
	if (!read_fixed(text, 2, &hours) || !read_char(text, ':') ||
	    !read_fixed(text, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

/* Is @seconds the one after the last of June or December? */
static bool after_leap_second(int64_t seconds)
{
	int64_t days = seconds / SECS_PER_DAY;
	int year;

	if (seconds % SECS_PER_DAY)
		return false;
	/* Leap seconds began in 1972. */
	for (year = 1972; year <= 10000; year++) {
		if (days == days_since_epoch(year, 7, 1) ||
		    days == days_since_epoch(year + 1, 1, 1))
			return true;
	}
	return false;
}

static int parse_date(const char *text, uint64_t *ns, const char **why)
{
	int year, month, day, hour, minute, second, zone;
	uint32_t nsec = 0;
	int64_t seconds;

	if (!read_fixed(&text, 4, &year) || !read_char(&text, '-') ||
	    !read_fixed(&text, 2, &month) || !read_char(&text, '-') ||
	    !read_fixed(&text, 2, &day) ||
	    !(read_char(&text, 'T') || read_char(&text, 't')) ||
	    !read_fixed(&text, 2, &hour) || !read_char(&text, ':') ||
	    !read_fixed(&text, 2, &minute) || !read_char(&text, ':') ||
	    !read_fixed(&text, 2, &second))
		return refuse(why, expect_date);
	if (read_char(&text, '.') && !read_decimals(&text, &nsec))
		return refuse(why, expect_date);
	if (!read_zone(&text, &zone))
		return refuse(why, expect_zone);
	if (*text)
		return refuse(why, expect_date);

	if (month < 1 || month > 12 || day < 1 ||
	    day > days_in_month(year, month))
		return refuse(why, no_such_date);
	if (hour > 23 || minute > 59 || second > 60)
		return refuse(why, no_such_time);

	seconds = days_since_epoch(year, month, day) * SECS_PER_DAY +
		  hour * 3600 + minute * 60 + second - zone;
	if (second == 60) {
		if (!after_leap_second(seconds))
			return refuse(why, no_leap_second);
		/* POSIX time does not count it. */
		nsec = 0;
	}
	if (seconds < 0) {
		*ns = 0;
		return 0;
	}
	return to_ns(seconds, nsec, ns, why);
}

int parse_deadline(const char *text, struct deadline *deadline,
		   const char **why)
{
	struct deadline d;
	int ret;

	if (strcmp(text, "never") == 0) {
		d.kind = DEADLINE_RAW;
		d.ns = EXPIRY_NEVER;
		ret = 0;
	} else if (*text == '+') {
		d.kind = DEADLINE_RELATIVE;
		ret = parse_duration(text + 1, &d.ns, why);
	} else if (*text == '@') {
		d.kind = DEADLINE_RAW;
		ret = parse_seconds(text + 1, &d.ns, why);
	} else if (is_digit(*text)) {
		d.kind = DEADLINE_CALENDAR;
		ret = parse_date(text, &d.ns, why);
	} else {
		ret = refuse(why, expect_deadline);
	}
	if (!ret)
		*deadline = d;
	return ret;
}
