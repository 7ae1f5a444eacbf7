// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "clock.h"

static struct timespec set = { .tv_sec = 1 };

void clock_set(uint64_t now_ns)
{
	set.tv_sec = now_ns / NSEC_PER_SEC;
	set.tv_nsec = now_ns % NSEC_PER_SEC;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	switch (id) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_BOOTTIME:
		*ts = set;
		return 0;
	default:
		return syscall(SYS_clock_gettime, id, ts);
	}
}

int gettimeofday(struct timeval *tv, void *zone)
{
	(void)zone;
	tv->tv_sec = set.tv_sec;
	tv->tv_usec = set.tv_nsec / 1000;
	return 0;
}

static uint64_t clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

uint64_t clock_cpu(void)
{
	return clock_of(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_raw(void)
{
	return clock_of(CLOCK_MONOTONIC_RAW);
}
