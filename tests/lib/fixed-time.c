// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into expiryctl by support_golden.py: time stands still, so that what
 * is printed of it can be compared with a file. A pause is not slept: its
 * nanoseconds are a line in the file EXPIRY_TEST_PAUSES. Where there is none,
 * each pause ends at once all the same.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The same stands in support_golden.py. */
#define REALTIME	2000000000	/* 2033-05-18T03:33:20Z */
#define MONOTONIC	5000000
#define BOOTTIME	7000000
#define NSEC		123456789

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	ts->tv_sec = clock == CLOCK_REALTIME ? REALTIME :
		     clock == CLOCK_MONOTONIC ? MONOTONIC : BOOTTIME;
	ts->tv_nsec = NSEC;
	return 0;
}

time_t time(time_t *seconds)
{
	if (seconds)
		*seconds = REALTIME;
	return REALTIME;
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
	const char *path = getenv("EXPIRY_TEST_PAUSES");
	char line[32];
	int fd, len;

	(void)left;
	fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	len = snprintf(line, sizeof(line), "%lld\n",
		       pause->tv_sec * 1000000000LL + pause->tv_nsec);
	if (write(fd, line, len) != len)
		abort();
	close(fd);
	return 0;
}
