// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <expiry/expiry.h>

#include "tools/output/span.h"
#include "tools/output/time-text.h"

const char *time_text(char *text, uint64_t ns, uint32_t clock_id, int digits)
{
	time_t seconds = ns / NSEC_PER_SEC;
	uint64_t decimals = ns % NSEC_PER_SEC;
	char date[24];
	struct tm tm;
	int i;

	if (ns == EXPIRY_NEVER)
		return "never";
	for (i = digits; i < 9; i++)
		decimals /= 10;
	if (clock_id == CLOCK_REALTIME) {
		/* 2^64 ns end in the year 2554: four digits are enough. */
		gmtime_r(&seconds, &tm);
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(text, TIME_TEXT, "%s.%0*" PRIu64 "Z", date, digits,
			 decimals);
	} else {
		snprintf(text, TIME_TEXT, "@%" PRIu64 ".%0*" PRIu64,
			 (uint64_t)seconds, digits, decimals);
	}
	return text;
}

const char *clock_name(uint32_t clock_id)
{
	switch (clock_id) {
	case CLOCK_REALTIME:
		return "realtime";
	case CLOCK_MONOTONIC:
		return "monotonic";
	case CLOCK_BOOTTIME:
		return "boottime";
	}
	return "unknown";
}

int clock_parse(const char *text, uint32_t *clock_id)
{
	static const uint32_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME
	};
	size_t i;

	for (i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		if (strcmp(text, clock_name(clocks[i])) == 0) {
			*clock_id = clocks[i];
			return 0;
		}
	}
	return -EINVAL;
}

uint64_t queue_overdue(const struct expiry_stat *stat)
{
	return stat->next_ns < stat->now_ns ? stat->now_ns - stat->next_ns : 0;
}
