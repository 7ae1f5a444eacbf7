// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <linux/expiry.h>

#include "tools/input/digits.h"
#include "tools/output/span.h"
#include "tools/input/timestamp.h"

static const char expect_time[] =
	"expected a deadline as in +5s, 18:30, 'tomorrow 09:00', 'Mon 09:00', '2027-01-31 12:00', 2027-01-31T12:00:00Z or never";
static const char expect_zone[] =
	"expected a zone behind the time: UTC, Z, +HH:MM, -HH:MM or a name as in Europe/Berlin";
static const char no_such_date[] = "there is no such date";
static const char no_such_time[] = "there is no such time of day";
static const char no_leap_second[] =
	"a leap second can only be the last one of June or December in UTC";
static const char wrong_weekday[] = "that date is another day of the week";

/* Reads the word @word. Returns false for any other word. */
static bool read_word(const char **text, const char *word)
{
	const size_t len = word_length(*text);

	if (len != strlen(word) || strncasecmp(*text, word, len))
		return false;
	*text += len;
	return true;
}

/* Reads the weekday if there is one. */
static void read_weekday(const char **text, int *weekday)
{
	const size_t len = word_length(*text);
	struct tm tm;

	/* Names in the C locale, which no tool leaves. */
	if (!len || strptime(*text, "%a", &tm) != *text + len)
		return;
	*weekday = tm.tm_wday;
	*text += len;
	read_char(text, ',');
	skip_blanks(text);
}

/* Checks that the date exists and has the given weekday. */
static int check_date(const struct timestamp *ts, const char **why)
{
	struct tm tm = ts->wall;

	timegm(&tm);
	if (tm.tm_mday != ts->wall.tm_mday || tm.tm_mon != ts->wall.tm_mon)
		return refuse(why, no_such_date);
	if (ts->weekday >= 0 && tm.tm_wday != ts->weekday)
		return refuse(why, wrong_weekday);
	return 0;
}

static int read_date(const char **text, struct timestamp *ts, const char **why)
{
	int year, month, day;

	if (!read_fixed(text, 4, &year) || !read_char(text, '-') ||
	    !read_fixed(text, 2, &month) || !read_char(text, '-') ||
	    !read_fixed(text, 2, &day))
		return refuse(why, expect_time);
	ts->day = DAY_DATE;
	ts->wall.tm_year = year - 1900;
	ts->wall.tm_mon = month - 1;
	ts->wall.tm_mday = day;
	return check_date(ts, why);
}

/* Reads the day if there is one. Returns 0 or -EINVAL. */
static int read_day(const char **text, struct timestamp *ts, const char **why)
{
	static const char *const words[] = {
		[DAY_YESTERDAY] = "yesterday",
		[DAY_TODAY] = "today",
		[DAY_TOMORROW] = "tomorrow",
	};
	enum timestamp_day day;

	for (day = DAY_YESTERDAY; day <= DAY_TOMORROW; day++) {
		if (read_word(text, words[day])) {
			ts->day = day;
			return ts->weekday < 0 ? 0 : refuse(why, expect_time);
		}
	}
	/* A time has its colon by the third character. */
	if (strcspn(*text, ":") < 3 || !is_digit(**text))
		return 0;
	return read_date(text, ts, why);
}

static int read_time(const char **text, struct timestamp *ts, const char **why)
{
	struct tm *wall = &ts->wall;

	const int digits = is_digit(**text) && is_digit((*text)[1]) ? 2 : 1;

	if (!read_fixed(text, digits, &wall->tm_hour) ||
	    !read_char(text, ':') || !read_fixed(text, 2, &wall->tm_min))
		return refuse(why, expect_time);
	if (read_char(text, ':')) {
		if (!read_fixed(text, 2, &wall->tm_sec))
			return refuse(why, expect_time);
		if (read_char(text, '.') && !read_decimals(text, &ts->nsec))
			return refuse(why, expect_decimals);
	}
	if (wall->tm_hour > 23 || wall->tm_min > 59 || wall->tm_sec > 60)
		return refuse(why, no_such_time);
	ts->has_time = true;
	return 0;
}

/* Reads +HH:MM or -HH:MM. */
static bool read_offset(const char **text, int *seconds)
{
	int hours, minutes, sign = **text == '-' ? -1 : 1;

	if (!read_char(text, '+') && !read_char(text, '-'))
		return false;
	if (!read_fixed(text, 2, &hours) || !read_char(text, ':') ||
	    !read_fixed(text, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

/* Reads the zone if there is one. @joined: a time precedes it without a blank.
 * Returns 0 or -EINVAL.
 */
static int read_zone(const char **text, bool joined, struct timestamp *ts,
		     const char **why)
{
	size_t len;

	if (!**text)
		return 0;
	ts->zone = ZONE_OFFSET;
	if (read_word(text, "z") || (!joined && read_word(text, "utc")))
		return 0;
	if (**text == '+' || **text == '-')
		return read_offset(text, &ts->offset) ? 0 :
		       refuse(why, expect_zone);
	len = strspn(*text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		     "abcdefghijklmnopqrstuvwxyz0123456789/_+-");
	if (joined || !word_length(*text) || len > TIMESTAMP_ZONE_MAX)
		return refuse(why, joined && !is_digit(**text) ? expect_zone :
				   expect_time);
	ts->zone = ZONE_NAMED;
	memcpy(ts->zone_name, *text, len);
	*text += len;
	return 0;
}

/* Replaces a leap second by the next second. Returns 0 or -EINVAL. */
static int take_leap_second(struct timestamp *ts, const char **why)
{
	time_t seconds;
	struct tm tm;

	if (ts->wall.tm_sec < 60)
		return 0;
	if (ts->day != DAY_DATE || ts->zone != ZONE_OFFSET)
		return refuse(why, no_such_time);
	seconds = timestamp_seconds(ts);
	gmtime_r(&seconds, &tm);
	/* The first leap second was in 1972. */
	if (tm.tm_mday != 1 || tm.tm_hour || tm.tm_min ||
	    tm.tm_mon % 6 || tm.tm_year < 72 ||
	    (tm.tm_year == 72 && !tm.tm_mon))
		return refuse(why, no_leap_second);
	/* POSIX time does not count leap seconds. */
	seconds += ts->offset;
	gmtime_r(&seconds, &ts->wall);
	ts->nsec = 0;
	return 0;
}

/* Returns whether the text begins with a blank or is empty. */
static bool word_ends(const char *text)
{
	return !*text || *text == ' ' || *text == '\t';
}

int timestamp_read(const char *text, struct timestamp *ts, const char **why)
{
	bool joined = false;

	memset(ts, 0, sizeof(*ts));
	ts->weekday = -1;
	skip_blanks(&text);
	read_weekday(&text, &ts->weekday);
	if (read_day(&text, ts, why))
		return -EINVAL;
	if (ts->day == DAY_DATE)
		joined = read_char(&text, 'T') || read_char(&text, 't');
	if (ts->day != DAY_NONE && !joined && !word_ends(text))
		return refuse(why, expect_time);
	if (!joined)
		skip_blanks(&text);
	if ((joined || is_digit(*text)) && read_time(&text, ts, why))
		return -EINVAL;
	if (ts->weekday < 0 && ts->day == DAY_NONE && !ts->has_time)
		return refuse(why, expect_time);
	joined = ts->has_time && !word_ends(text);
	skip_blanks(&text);
	if (read_zone(&text, joined, ts, why))
		return -EINVAL;
	skip_blanks(&text);
	if (*text)
		return refuse(why, expect_time);
	return take_leap_second(ts, why);
}

time_t timestamp_seconds(const struct timestamp *ts)
{
	struct tm tm = ts->wall;

	return timegm(&tm) - ts->offset;
}

int timestamp_ns(time_t seconds, uint32_t nsec, uint64_t *ns, const char **why)
{
	uint64_t n;

	if (seconds < 0) {
		*ns = 0;
		return 0;
	}
	if (__builtin_mul_overflow((uint64_t)seconds, NSEC_PER_SEC, &n) ||
	    __builtin_add_overflow(n, nsec, &n) || n == EXPIRY_NEVER)
		return refuse(why, too_far);
	*ns = n;
	return 0;
}
