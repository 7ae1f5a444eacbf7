// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The system's own timers. A timerfd for each timer, without the epoll that
 * would report it. A POSIX timer for each, with a signal, by system calls,
 * because the library's wrappers keep a list of their own.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/kernel/peers.h"

/* By number: descriptors, or the kernel's timer ids. */
struct names {
	int *of;
};

static void init(void *own, uint32_t nr)
{
	struct names *names = own;

	names->of = calloc(nr, sizeof(*names->of));
	if (!names->of)
		die("no memory");
}

static struct itimerspec after(uint64_t in_ns)
{
	return (struct itimerspec) {
		.it_value.tv_sec = in_ns / NSEC_PER_SEC,
		.it_value.tv_nsec = in_ns % NSEC_PER_SEC,
	};
}

static void timerfd_refresh(void *own, const uint32_t *timers, uint32_t nr,
			    const uint64_t *in_ns)
{
	const struct names *names = own;
	struct itimerspec when;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		when = after(in_ns[i]);
		if (timerfd_settime(names->of[timers[i]], 0, &when, NULL))
			die("timerfd_settime: %m");
	}
}

static void timerfd_arm(void *own, const uint32_t *timers, uint32_t nr,
			const uint64_t *in_ns)
{
	struct names *names = own;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		names->of[timers[i]] =
			timerfd_create(CLOCK_MONOTONIC,
				       TFD_NONBLOCK | TFD_CLOEXEC);
		if (names->of[timers[i]] < 0)
			die("timerfd_create: %m");
	}
	timerfd_refresh(own, timers, nr, in_ns);
}

static void timerfd_cancel(void *own, const uint32_t *timers, uint32_t nr)
{
	const struct names *names = own;
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (close(names->of[timers[i]]))
			die("close: %m");
}

static void posix_refresh(void *own, const uint32_t *timers, uint32_t nr,
			  const uint64_t *in_ns)
{
	const struct names *names = own;
	struct itimerspec when;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		when = after(in_ns[i]);
		if (syscall(SYS_timer_settime, names->of[timers[i]], 0, &when, NULL))
			die("timer_settime: %m");
	}
}

static void posix_arm(void *own, const uint32_t *timers, uint32_t nr,
		      const uint64_t *in_ns)
{
	struct names *names = own;
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGUSR1,
	};
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event,
			    &names->of[timers[i]]))
			die("timer_create: %m");
	posix_refresh(own, timers, nr, in_ns);
}

static void posix_cancel(void *own, const uint32_t *timers, uint32_t nr)
{
	const struct names *names = own;
	uint32_t i;

	for (i = 0; i < nr; i++)
		if (syscall(SYS_timer_delete, names->of[timers[i]]))
			die("timer_delete: %m");
}

static struct names timerfds, posix_timers;

const struct peer peer_timerfd = {
	.name = "timerfd",
	.own = &timerfds,
	.init = init,
	.arm = timerfd_arm,
	.refresh = timerfd_refresh,
	.cancel = timerfd_cancel,
};

const struct peer peer_posix = {
	.name = "POSIX timer",
	.own = &posix_timers,
	.init = init,
	.arm = posix_arm,
	.refresh = posix_refresh,
	.cancel = posix_cancel,
};
