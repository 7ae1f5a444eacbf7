/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deadlines as people write them. Pure: no clock, no zone of the machine's, no
 * output.
 *
 * Each function returns 0, or -EINVAL with *why saying in a constant phrase what
 * was expected; the result is untouched then.
 */
#ifndef TOOLS_PARSE_TIME_H
#define TOOLS_PARSE_TIME_H

#include <stdint.h>

#include "parse-span.h"

enum deadline_kind {
	DEADLINE_RELATIVE,	/* +5s: from now */
	DEADLINE_RAW,		/* @12.5 or never: on the queue's own clock */
	DEADLINE_CALENDAR,	/* a date: REALTIME only */
};

/**
 * struct deadline - when
 * @kind: what @ns counts from
 * @ns: nanoseconds; of a date before 1970, 0
 */
struct deadline {
	enum deadline_kind kind;
	uint64_t ns;
};

/*
 * never			EXPIRY_NEVER
 * now				from now, nothing
 * +SPAN, SPAN left		from now, as parse_duration() has it
 * @SECONDS[.FRACTION]		at most nine digits of it
 * DATE TIME ZONE		as timestamp_read() has them, the zone no name
 */
int parse_deadline(const char *text, struct deadline *deadline,
		   const char **why);

#endif /* TOOLS_PARSE_TIME_H */
