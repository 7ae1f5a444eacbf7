/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Times of day as the clock on the wall has them, in the zone of the machine or
 * of TZ.
 */
#ifndef TOOLS_LOCAL_TIME_H
#define TOOLS_LOCAL_TIME_H

#include <time.h>

#include "parse-time.h"

/*
 * HH:MM[:SS]			the next time that the clock shows this
 * YYYY-MM-DD[T or blank]HH:MM[:SS]
 *
 * or anything that parse_deadline() takes. @now: what time it is. Returns as
 * that does; a time which the clock leaves out when it goes forward is refused,
 * of one that it shows twice the first is meant.
 */
int parse_local_deadline(const char *text, time_t now,
			 struct deadline *deadline, const char **why);

#endif /* TOOLS_LOCAL_TIME_H */
