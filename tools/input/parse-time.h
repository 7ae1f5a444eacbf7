/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing of deadlines. Pure: reads no clock and no machine's zone, prints nothing.
 *
 * Each function returns 0. On failure it returns -EINVAL, sets *why to a constant
 * phrase with the expected format, and leaves the result unchanged.
 */
#ifndef TOOLS_PARSE_TIME_H
#define TOOLS_PARSE_TIME_H

#include <stdint.h>

enum deadline_kind {
	DEADLINE_RELATIVE,	/* +5s: from now */
	DEADLINE_RAW,		/* @12.5 or never: on the queue's own clock */
	DEADLINE_CALENDAR,	/* a date: REALTIME only */
};

/**
 * struct deadline - a parsed deadline
 * @kind: origin of @ns
 * @ns: nanoseconds; 0 for dates before 1970
 */
struct deadline {
	enum deadline_kind kind;
	uint64_t ns;
};

/*
 * Parses one of:
 *
 * never			EXPIRY_NEVER
 * now				0 ns from now
 * +SPAN, SPAN left		from now, with parse_duration()'s spans
 * @SECONDS[.FRACTION]		a fraction of at most nine digits
 * DATE TIME ZONE		timestamp_read()'s formats, without names of zones
 */
int parse_deadline(const char *text, struct deadline *deadline,
		   const char **why);

#endif /* TOOLS_PARSE_TIME_H */
