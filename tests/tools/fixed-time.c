// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into expiryctl by support_golden.py: time stands still, so that the
 * output can be compared with a file. A pause ends at once. Its nanoseconds are
 * a line in the file EXPIRY_TEST_NOTES, if there is one, and so are those of a
 * socket's time limit.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The same constant is in support_golden.py. */
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

static void note(const char *what, long long ns)
{
	const char *path = getenv("EXPIRY_TEST_NOTES");
	char line[64];
	int fd, len;

	fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	len = snprintf(line, sizeof(line), "%s %lld\n", what, ns);
	if (write(fd, line, len) != len)
		abort();
	close(fd);
}

int nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	note("pause", pause->tv_sec * 1000000000LL + pause->tv_nsec);
	return 0;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	const struct timeval *limit = value;
	int (*next)(int fd, int level, int option, const void *value,
		    socklen_t size) = dlsym(RTLD_NEXT, "setsockopt");

	if (level == SOL_SOCKET &&
	    (option == SO_RCVTIMEO || option == SO_SNDTIMEO))
		note("limit", limit->tv_sec * 1000000000LL +
			      limit->tv_usec * 1000LL);
	return next(fd, level, option, value, size);
}
