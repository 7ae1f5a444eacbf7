/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Times and clocks of queues, as text.
 */
#ifndef TOOLS_TIME_TEXT_H
#define TOOLS_TIME_TEXT_H

#include <stdint.h>
#include <expiry/expiry.h>

#define TIME_TEXT	40	/* bytes for any time on a clock */

/* Writes a time on a clock: RFC 3339 in UTC with @digits decimals, or @SECONDS. */
const char *time_text(char *text, uint64_t ns, uint32_t clock_id, int digits);
const char *clock_name(uint32_t clock_id);
/* Finds the clock of that name. Returns 0 or -EINVAL. */
int clock_parse(const char *text, uint32_t *clock_id);

/* Returns the time since the queue's first deadline; 0: no timer is due. */
uint64_t queue_overdue(const struct expiry_stat *stat);

#endif /* TOOLS_TIME_TEXT_H */
