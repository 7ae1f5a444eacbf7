// SPDX-License-Identifier: LGPL-2.1-or-later
/* One timerfd for each timer, in one epoll. Arming creates it, cancelling
 * closes it.
 */
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/daemon/local.h"
#include "bench/daemon/driver.h"

#define FILES_OWN	64
#define EVENTS		512

static int epoll = -1;
static int *fds;

static uint32_t nr_max(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		die("RLIMIT_NOFILE: %m");
	return files.rlim_cur > FILES_OWN ? files.rlim_cur - FILES_OWN : 0;
}

static void init(uint32_t nr)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		die("epoll_create1: %m");
	fds = driver_map((uint64_t)nr * sizeof(*fds));
}

static void refresh(uint32_t i, uint64_t in_ns)
{
	struct itimerspec when = {
		.it_value.tv_sec = in_ns / NSEC_PER_SEC,
		.it_value.tv_nsec = in_ns % NSEC_PER_SEC,
	};

	if (timerfd_settime(fds[i], 0, &when, NULL) < 0)
		die("timerfd_settime: %m");
}

static void arm(uint32_t i, uint64_t in_ns)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

	fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (fds[i] < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) < 0)
		die("timerfd %u: %m", i);
	refresh(i, in_ns);
}

static void cancel(uint32_t i)
{
	close(fds[i]);
}

static void run(uint64_t nr)
{
	struct epoll_event events[EVENTS];
	uint64_t ticks;
	int i, n;

	while (local_fired < nr) {
		n = epoll_wait(epoll, events, EVENTS, -1);
		for (i = 0; i < n; i++) {
			int fd = fds[events[i].data.u32];

			if (read(fd, &ticks, sizeof(ticks)) != sizeof(ticks))
				continue;
			close(fd);
			local_fired++;
		}
	}
}

const struct local local = {
	.name = "timerfd",
	.nr_max = nr_max,
	.init = init,
	.arm = arm,
	.refresh = refresh,
	.cancel = cancel,
	.run = run,
};
