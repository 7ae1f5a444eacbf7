// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "local-time.h"

#define NSEC_PER_SEC	1000000000ULL

static const char left_out[] =
	"the clock here never shows that time: it is put forward then";
static const char no_such_time[] = "there is no such time of day";
static const char no_such_date[] = "there is no such date";
static const char too_far[] =
	"too large: 2^64 nanoseconds are 584 years; write never";

static bool same(const struct tm *a, const struct tm *b)
{
	return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon &&
	       a->tm_mday == b->tm_mday && a->tm_hour == b->tm_hour &&
	       a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

/* When the clock shows @wall, summer time or not; false if it does not. */
static bool shown(const struct tm *wall, int summer, time_t *when)
{
	struct tm tm = *wall;

	tm.tm_isdst = summer;
	*when = mktime(&tm);
	return same(&tm, wall) && tm.tm_isdst == summer;
}

/* The first of the times at which the clock shows @wall; false: there is none. */
static bool first_shown(const struct tm *wall, time_t *when)
{
	time_t winter;

	if (!shown(wall, 1, when))
		return shown(wall, 0, when);
	if (shown(wall, 0, &winter) && winter < *when)
		*when = winter;
	return true;
}

/* Whether the whole of @text is as the format of strptime() has it. */
static bool matches(const char *text, const char *format, struct tm *tm)
{
	const char *end = strptime(text, format, tm);

	return end && !*end;
}

static bool has_shape(const char *text, const char *shape)
{
	for (; *shape; shape++, text++)
		if (*shape == '0' ? *text < '0' || *text > '9' :
		    *shape != *text)
			return false;
	return !*text;
}

/* Today, or tomorrow if that is over. */
static int time_of_day(const struct tm *wanted, time_t now, time_t *when,
		       const char **why)
{
	struct tm tm, day;
	int i;

	for (i = 0; i < 2; i++) {
		if (!localtime_r(&now, &tm))
			break;
		/* Noon is never left out. */
		tm.tm_mday += i;
		tm.tm_hour = 12;
		tm.tm_isdst = -1;
		mktime(&tm);
		day = tm;
		day.tm_hour = wanted->tm_hour;
		day.tm_min = wanted->tm_min;
		day.tm_sec = wanted->tm_sec;
		if (!first_shown(&day, when)) {
			*why = left_out;
			return -EINVAL;
		}
		if (*when > now)
			return 0;
	}
	*why = no_such_time;
	return -EINVAL;
}

static int date_and_time(const struct tm *wanted, time_t *when,
			 const char **why)
{
	struct tm noon = *wanted;

	noon.tm_hour = 12;
	noon.tm_isdst = -1;
	mktime(&noon);
	if (noon.tm_mday != wanted->tm_mday) {
		*why = no_such_date;
		return -EINVAL;
	}
	if (!first_shown(wanted, when)) {
		*why = left_out;
		return -EINVAL;
	}
	return 0;
}

int parse_local_deadline(const char *text, time_t now,
			 struct deadline *deadline, const char **why)
{
	static const struct {
		const char *shape;
		const char *format;
		bool date;
	} forms[] = {
		{ "00:00", "%H:%M", false },
		{ "00:00:00", "%H:%M:%S", false },
		{ "0000-00-00T00:00", "%Y-%m-%dT%H:%M", true },
		{ "0000-00-00T00:00:00", "%Y-%m-%dT%H:%M:%S", true },
		{ "0000-00-00 00:00", "%Y-%m-%d %H:%M", true },
		{ "0000-00-00 00:00:00", "%Y-%m-%d %H:%M:%S", true },
	};
	struct tm tm = { 0 };
	time_t when;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (has_shape(text, forms[i].shape))
			break;
	if (i == sizeof(forms) / sizeof(*forms))
		return parse_deadline(text, deadline, why);
	if (!matches(text, forms[i].format, &tm) || tm.tm_sec > 59) {
		*why = forms[i].date ? no_such_date : no_such_time;
		return -EINVAL;
	}
	ret = forms[i].date ? date_and_time(&tm, &when, why) :
			      time_of_day(&tm, now, &when, why);
	if (ret)
		return ret;
	if (when > (time_t)(UINT64_MAX / NSEC_PER_SEC) - 1) {
		*why = too_far;
		return -EINVAL;
	}
	deadline->kind = DEADLINE_CALENDAR;
	deadline->ns = when > 0 ? when * NSEC_PER_SEC : 0;
	return 0;
}
