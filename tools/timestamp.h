/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Points in time as they are written: a date, a time of day, a zone. Pure: no
 * clock, no zone of the machine's; local-time.h has those.
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
	ZONE_OFFSET,	/* UTC, or so far from it */
	ZONE_NAMED,	/* Europe/Berlin */
};

/**
 * struct timestamp - what was written
 * @weekday: 0 is Sunday, -1: none; that of a date fits it
 * @day: the kind of day
 * @has_time: there is a time of day
 * @wall: the date of DAY_DATE, and the time of day or 00:00
 * @nsec: decimals of the second
 * @zone: the kind of zone
 * @offset: seconds by which ZONE_OFFSET is ahead of UTC
 * @zone_name: name of ZONE_NAMED
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
 * Reads [WEEKDAY[,]] [DAY] [TIME] [ZONE]; at least one of the first three must
 * be there:
 *
 * WEEKDAY	Mon or Monday, in any case
 * DAY		YYYY-MM-DD, yesterday, today or tomorrow
 * TIME		HH:MM, HH:MM:SS or HH:MM:SS.FRACTION; a T may join it to a date
 * ZONE		UTC, Z, +HH:MM, -HH:MM or a name of the zone database
 *
 * A leap second, which needs a date and an offset, is the second after it.
 * Returns 0, or -EINVAL with *why saying in a constant phrase what is wrong; *ts
 * is undefined then.
 */
int timestamp_read(const char *text, struct timestamp *ts, const char **why);

/* Returns the seconds since 1970 of a DAY_DATE in ZONE_OFFSET. */
time_t timestamp_seconds(const struct timestamp *ts);

/* Converts to nanoseconds, what is before 1970 to 0. 0 or -EINVAL with *why. */
int timestamp_ns(time_t seconds, uint32_t nsec, uint64_t *ns, const char **why);

#endif /* TOOLS_TIMESTAMP_H */
