// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random points in time as systemd reads them, in several zones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "tools/input/local-time.h"

#define EXPRESSIONS	200
#define EXPRESSION_MAX	96
#define NSEC_PER_SEC	1000000000ULL

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

/* Writes a point in time that both must take for the same. */
static void random_time(char *text, unsigned int *seed)
{
	static const char *const units[] = {
		"s", "min", "h", "days", "w", "month", "year",
	};
	time_t day = 1800000000 + rand_r(seed) % 400 * 86400;
	int hour = rand_r(seed) % 24, minute = rand_r(seed) % 60;
	char date[32], weekday[16];
	struct tm tm;

	gmtime_r(&day, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d", &tm);
	strftime(weekday, sizeof(weekday),
		 rand_r(seed) % 2 ? "%a" : "%A", &tm);
	switch (rand_r(seed) % 9) {
	case 0:
		sprintf(text, "%s", date);
		break;
	case 1:
		sprintf(text, "%s %02d:%02d", date, hour, minute);
		break;
	case 2:
		sprintf(text, "%s %02d:%02d:%02d", date, hour, minute,
			minute / 2);
		break;
	case 3:
		sprintf(text, "%s %s %02d:%02d", weekday, date, hour, minute);
		break;
	case 4:
		sprintf(text, "%s %d:%02d UTC", date, hour, minute);
		break;
	case 5:
		sprintf(text, "%s UTC", date);
		break;
	case 6:
		strcpy(text, "tomorrow");
		break;
	case 7:
		sprintf(text, "+%d%s%dms", rand_r(seed) % 30,
			units[rand_r(seed) % ARRAY_SIZE(units)], minute);
		break;
	default:
		sprintf(text, "%d %s left", 1 + rand_r(seed) % 30,
			units[rand_r(seed) % ARRAY_SIZE(units)]);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* Fails unless @text is what systemd said between the two times. */
static void compare(const char *text, uint64_t usec, uint64_t before,
		    uint64_t after)
{
	struct deadline deadline;
	const char *why = "";

	if (parse_local_deadline(text, before / NSEC_PER_SEC, &deadline, &why))
		fail_msg("%s (%s): %s", text, getenv("TZ"), why);
	if (deadline.kind == DEADLINE_CALENDAR ?
	    deadline.ns != usec * 1000 :
	    usec < (before + deadline.ns) / 1000 ||
	    usec > (after + deadline.ns) / 1000)
		fail_msg("%s (%s): %llu ns, systemd says %llu us", text,
			 getenv("TZ"), (unsigned long long)deadline.ns,
			 (unsigned long long)usec);
}

/* Returns false if midnight came meanwhile. */
static bool compare_in(const char *zone, unsigned int seed)
{
	static char texts[EXPRESSIONS][EXPRESSION_MAX];
	static char command[EXPRESSIONS * (EXPRESSION_MAX + 3) + 128];
	static uint64_t usec[EXPRESSIONS];
	unsigned long long seconds;
	char line[256], decimals[8];
	uint64_t before, after;
	int i, seen = 0, nr;
	FILE *pipe;

	setenv("TZ", zone, 1);
	tzset();
	strcpy(command, "systemd-analyze timestamp --");
	for (i = 0; i < EXPRESSIONS; i++) {
		random_time(texts[i], &seed);
		sprintf(command + strlen(command), " '%s'", texts[i]);
	}
	before = now_ns();
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		strcpy(decimals, "000000");
		nr = sscanf(line, " UNIX seconds: @%llu.%6[0-9]", &seconds,
			    decimals);
		if (nr < 1)
			continue;
		assert_true(seen < EXPRESSIONS);
		/* Zeros at the end are left out. */
		memset(decimals + strlen(decimals), '0', 6 - strlen(decimals));
		usec[seen++] = seconds * 1000000 + strtoull(decimals, NULL, 10);
	}
	assert_int_equal(pclose(pipe), 0);
	assert_int_equal(seen, EXPRESSIONS);
	after = now_ns();
	/* In any zone, by the half hours that they differ. */
	if (before / NSEC_PER_SEC / 900 != after / NSEC_PER_SEC / 900)
		return false;
	for (i = 0; i < EXPRESSIONS; i++)
		compare(texts[i], usec[i], before, after);
	return true;
}

static void random_times_as_systemd_reads_them(void **state)
{
	static const char *const zones[] = {
		"UTC", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0",
		"IST-5:30", "XXX3YYY,M10.3.0/0,M2.3.0/0",
	};
	size_t i;

	(void)state;
	if (system("systemd-analyze timestamp now >/dev/null 2>&1"))
		skip();
	for (i = 0; i < ARRAY_SIZE(zones); i++)
		if (!compare_in(zones[i], 20261122 + i))
			assert_true(compare_in(zones[i], 20261122 + i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_times_as_systemd_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
