// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/input/digits.h"
#include "tools/input/local-time.h"
#include "tools/input/parse-time.h"
#include "tools/input/timestamp.h"

#define SECS_PER_DAY	86400
#define ALWAYS		((time_t)INT64_MIN)	/* before anything */

static const char left_out[] =
	"that local time does not exist: the clock is put forward then";
static const char passed[] =
	"that time has passed; write now, or a future time";
static const char no_such_zone[] =
	"there is no such zone; expected UTC, +HH:MM or a name as in Europe/Berlin";

/**
 * enum showing - whether the clock shows a time
 * SHOWN: later than the given time
 * PASSED: only before the given time
 * LEFT_OUT: never
 */
enum showing { SHOWN, PASSED, LEFT_OUT };

/* Returns the seconds by which the clock is ahead of UTC. */
static long offset_at(const struct timestamp *ts, time_t when)
{
	struct tm tm;

	if (ts->zone == ZONE_OFFSET)
		return ts->offset;
	return localtime_r(&when, &tm) ? tm.tm_gmtoff : 0;
}

/* Finds the first time later than @after at which the clock shows @wall. Its offset
 * from UTC is that of a day before or of a day after: DST changes at most once in two
 * days.
 */
static enum showing shown(const struct timestamp *ts, const struct tm *wall,
			  time_t after, time_t *when)
{
	enum showing showing = LEFT_OUT;
	struct tm tm = *wall;
	const time_t utc = timegm(&tm);
	time_t candidate;
	int day;

	for (day = -1; day <= 1; day += 2) {
		candidate = utc - offset_at(ts, utc + day * SECS_PER_DAY);
		if (candidate + offset_at(ts, candidate) != utc)
			continue;
		if (candidate <= after) {
			if (showing == LEFT_OUT)
				showing = PASSED;
		} else if (showing != SHOWN || candidate < *when) {
			showing = SHOWN;
			*when = candidate;
		}
	}
	/* A gap before @after does not matter. */
	if (showing == LEFT_OUT &&
	    utc - offset_at(ts, utc - SECS_PER_DAY) <= after)
		showing = PASSED;
	return showing;
}

/* Works like shown(). A day without a time begins with its first existing minute. */
static enum showing day_shown(const struct timestamp *ts, struct tm *wall,
			      time_t after, time_t *when)
{
	enum showing showing = shown(ts, wall, after, when);
	int minute;

	for (minute = 1; showing == LEFT_OUT && !ts->has_time &&
	     minute < 24 * 60; minute++) {
		wall->tm_hour = minute / 60;
		wall->tm_min = minute % 60;
		showing = shown(ts, wall, after, when);
	}
	return showing;
}

/* Returns the time of day of @ts, @days days after @now. */
static struct tm wall_in(const struct timestamp *ts, time_t now, int days)
{
	time_t local = now + offset_at(ts, now);
	struct tm tm;

	gmtime_r(&local, &tm);
	tm.tm_mday += days;
	tm.tm_hour = ts->wall.tm_hour;
	tm.tm_min = ts->wall.tm_min;
	tm.tm_sec = ts->wall.tm_sec;
	/* Normalize the fields, and compute the weekday. */
	timegm(&tm);
	return tm;
}

/* Finds the next such weekday, or day, on which the time is in the future. */
static int next_day(const struct timestamp *ts, time_t now, time_t *when,
		    const char **why)
{
	enum showing showing;
	struct tm wall;
	int days;

	for (days = 0; days <= 8; days++) {
		wall = wall_in(ts, now, days);
		if (ts->weekday >= 0 && wall.tm_wday != ts->weekday)
			continue;
		showing = day_shown(ts, &wall, now, when);
		if (showing == SHOWN)
			return 0;
		if (showing == LEFT_OUT)
			break;
	}
	return refuse(why, left_out);
}

static int resolve(const struct timestamp *ts, time_t now, time_t *when,
		   const char **why)
{
	struct tm wall = ts->wall;
	time_t after = now;

	switch (ts->day) {
	case DAY_NONE:
		return next_day(ts, now, when, why);
	case DAY_DATE:
		after = ALWAYS;
		break;
	default:
		wall = wall_in(ts, now, (int)ts->day - DAY_TODAY);
	}
	switch (day_shown(ts, &wall, after, when)) {
	case PASSED:
		return refuse(why, passed);
	case LEFT_OUT:
		return refuse(why, left_out);
	default:
		return 0;
	}
}

/* Returns whether the zone database has a zone. The C library takes zones that it
 * cannot find or read for UTC.
 */
static bool zone_exists(const char *name)
{
	const char *folder = getenv("TZDIR");
	char path[512], magic[4];
	bool exists;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s",
		 folder ? folder : "/usr/share/zoneinfo", name);
	file = fopen(path, "re");
	if (!file)
		return false;
	exists = fread(magic, 1, sizeof(magic), file) == sizeof(magic) &&
		 !memcmp(magic, "TZif", sizeof(magic));
	fclose(file);
	return exists;
}

/* Works like resolve(), in a named zone. */
static int resolve_named(const struct timestamp *ts, time_t now, time_t *when,
			 const char **why)
{
	char name[TIMESTAMP_ZONE_MAX + 2];
	const char *zone = getenv("TZ");
	char *before = NULL;
	int ret;

	if (!zone_exists(ts->zone_name))
		return refuse(why, no_such_zone);
	if (zone) {
		before = strdup(zone);
		if (!before)
			abort();
	}
	snprintf(name, sizeof(name), ":%s", ts->zone_name);
	setenv("TZ", name, 1);
	tzset();
	ret = resolve(ts, now, when, why);
	if (before)
		setenv("TZ", before, 1);
	else
		unsetenv("TZ");
	tzset();
	free(before);
	return ret;
}

int parse_local_deadline(const char *text, time_t now,
			 struct deadline *deadline, const char **why)
{
	struct timestamp ts;
	time_t when = 0;
	uint64_t ns;
	int ret;

	if (timestamp_read(text, &ts, why))
		return parse_deadline(text, deadline, why);
	if (ts.zone == ZONE_NAMED)
		ret = resolve_named(&ts, now, &when, why);
	else
		ret = resolve(&ts, now, &when, why);
	if (!ret)
		ret = timestamp_ns(when, ts.nsec, &ns, why);
	if (ret)
		return ret;
	deadline->kind = DEADLINE_CALENDAR;
	deadline->ns = ns;
	return 0;
}
