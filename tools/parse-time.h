/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deadlines and durations as people write them. Pure: no clock, no zone of the
 * machine's, no output.
 *
 * Each function returns 0, or -EINVAL with *why saying in a constant phrase what
 * was expected; the result is untouched then.
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
 * struct deadline - when
 * @kind: what @ns counts from
 * @ns: nanoseconds; of a date before 1970, 0
 */
struct deadline {
	enum deadline_kind kind;
	uint64_t ns;
};

/*
 * never				EXPIRY_NEVER
 * +DURATION				from now
 * @SECONDS[.FRACTION]			at most nine digits of it
 * YYYY-MM-DDTHH:MM:SS[.FRACTION]ZONE	RFC 3339; ZONE is Z, +HH:MM or -HH:MM. A
 *					leap second is the second after it.
 */
int parse_deadline(const char *text, struct deadline *deadline,
		   const char **why);

/* One or more of NUMBER[.FRACTION]UNIT; units w d h m s ms us ns. What is
 * smaller than a nanosecond is cut off.
 */
int parse_duration(const char *text, uint64_t *ns, const char **why);

/* A duration of whole milliseconds, from 1 to 2^32 - 1. */
int parse_period(const char *text, uint32_t *ms, const char **why);

#endif /* TOOLS_PARSE_TIME_H */
