// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by test-clock.py: the timer by which a thread hears that
 * CLOCK_REALTIME was set is a FIFO, EXPIRY_STEP_CLOCK with the thread's number behind
 * it. A byte in it is a step, of a clock that stays as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

int timerfd_create(int clock, int flags)
{
	static atomic_int nr;
	char path[256];

	/* The loop's own are never read. */
	if (!(flags & TFD_NONBLOCK))
		return syscall(SYS_timerfd_create, clock, flags);
	snprintf(path, sizeof(path), "%s%d", getenv("EXPIRY_STEP_CLOCK"), nr++);
	if (mkfifo(path, 0600))
		return -1;
	return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

/* Like the kernel, fails with ECANCELED if the clock was set since the last watch. */
int timerfd_settime(int fd, int flags, const struct itimerspec *at,
		    struct itimerspec *before)
{
	char bytes[64];

	if (!(flags & TFD_TIMER_CANCEL_ON_SET))
		return syscall(SYS_timerfd_settime, fd, flags, at, before);
	if (read(fd, bytes, sizeof(bytes)) <= 0)
		return 0;
	errno = ECANCELED;
	return -1;
}
