/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A clock's time as one number. */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Returns the milliseconds until @end_ns of CLOCK_MONOTONIC for poll(), rounded up; -1 = for
 * ever, where @end_ns is 0.
 */
static inline int clock_poll_ms(uint64_t end_ns)
{
	uint64_t now, ms;

	if (!end_ns)
		return -1;
	now = clock_now_ns(CLOCK_MONOTONIC);
	ms = now < end_ns ? (end_ns - now + 999999) / 1000000 : 0;
	return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

#endif /* LIB_CLOCK_H */
