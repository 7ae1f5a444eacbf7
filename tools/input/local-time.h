/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Local times, in the zone of the machine, of TZ, or of the zone database.
 */
#ifndef TOOLS_LOCAL_TIME_H
#define TOOLS_LOCAL_TIME_H

#include <time.h>

#include "tools/input/parse-time.h"

/*
 * Parses the formats of timestamp_read() and parse_deadline(). @now: the current
 * time.
 *
 * TIME			the next time that the clock shows this
 * WEEKDAY [TIME]	the next such day on which the time is in the future
 * DATE [TIME]		that time, also in the past
 * today TIME, tomorrow [TIME]	refused in the past, and so is yesterday
 *
 * A day without a time begins with its first moment. DST leaves out some times and
 * repeats others. A time that is left out is refused. A repeated time is the first
 * one in the future, with a DATE simply the first one.
 * Returns like parse_deadline().
 */
int parse_local_deadline(const char *text, time_t now,
			 struct deadline *deadline, const char **why);

#endif /* TOOLS_LOCAL_TIME_H */
