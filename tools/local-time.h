/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Times as the wall clock shows them, in the zone of the machine, of TZ, or of
 * the zone database.
 */
#ifndef TOOLS_LOCAL_TIME_H
#define TOOLS_LOCAL_TIME_H

#include <time.h>

#include "parse-time.h"

/*
 * Takes what timestamp_read() or parse_deadline() takes. @now: what time it is.
 *
 * TIME			the next time that the clock shows this
 * WEEKDAY [TIME]	the next such day on which it is still to come
 * DATE [TIME]		then, also when it has passed
 * today TIME, tomorrow [TIME]	refused when it has passed, and so is yesterday
 *
 * A day without a time begins with its first moment. A time which the clock
 * leaves out when it is put forward is refused; of one that it shows twice the
 * first is meant that is still to come, of a DATE the first.
 * Returns as parse_deadline() does.
 */
int parse_local_deadline(const char *text, time_t now,
			 struct deadline *deadline, const char **why);

#endif /* TOOLS_LOCAL_TIME_H */
