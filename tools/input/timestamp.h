/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing of a date, a time of day and a zone. Pure: reads no clock and no machine's
 * zone; local-time.h does.
 */
#ifndef TOOLS_TIMESTAMP_H
#define TOOLS_TIMESTAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define TIMESTAMP_ZONE_MAX	47	/* bytes of a zone's name */

enum timestamp_day {
	DAY_NONE,
	DAY_DATE,
	DAY_YESTERDAY,
	DAY_TODAY,
	DAY_TOMORROW,
};

enum timestamp_zone {
	ZONE_LOCAL,
	ZONE_OFFSET,	/* UTC, or an offset from UTC */
	ZONE_NAMED,	/* a name such as Europe/Berlin */
};

/**
 * struct timestamp - a parsed text
 * @weekday: 0 is Sunday, -1: none
 * @day: kind of day
 * @has_time: a time of day was given
 * @wall: date of DAY_DATE; time or 00:00
 * @nsec: decimals of the second
 * @zone: kind of zone
 * @offset: seconds that ZONE_OFFSET is ahead of UTC
 * @zone_name: name of ZONE_NAMED
 *
 * A weekday before a date is that of the date.
 */
struct timestamp {
	int weekday;
	enum timestamp_day day;
	bool has_time;
	struct tm wall;
	uint32_t nsec;
	enum timestamp_zone zone;
	int offset;
	char zone_name[TIMESTAMP_ZONE_MAX + 1];
};

/*
 * Reads [WEEKDAY[,]] [DAY] [TIME] [ZONE]. At least one of the first three is
 * required.
 *
 * WEEKDAY	Mon or Monday, in any case
 * DAY		YYYY-MM-DD, yesterday, today or tomorrow
 * TIME		HH:MM, HH:MM:SS or HH:MM:SS.FRACTION; a T may join it to a date
 * ZONE		UTC, Z, +HH:MM, -HH:MM or a name of the zone database
 *
 * A leap second needs a date and an offset, and becomes the next second. Returns 0,
 * or -EINVAL with the fault as a constant phrase in *why; *ts is undefined then.
 */
int timestamp_read(const char *text, struct timestamp *ts, const char **why);

/* Returns the seconds since 1970 of a DAY_DATE in ZONE_OFFSET. */
time_t timestamp_seconds(const struct timestamp *ts);

/* Converts to nanoseconds, a time before 1970 to 0. Returns 0, or -EINVAL with *why. */
int timestamp_ns(time_t seconds, uint32_t nsec, uint64_t *ns, const char **why);

#endif /* TOOLS_TIMESTAMP_H */
