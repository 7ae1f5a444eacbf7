// SPDX-License-Identifier: LGPL-2.1-or-later
/* One timerfd for each timer, in one epoll. Arming creates it, cancelling
 * closes it. Its time is from now on: the caller's clock stands still.
 */
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/heap/peer.h"

#define EVENTS		512

static struct timerfds {
	int epoll;
	uint64_t now_ns;
	int *fds;
} timerfds;

/* Allows as many descriptors as timers, if possible. */
static void *init(const struct peer *peer, uint32_t nr)
{
	struct rlimit files = { .rlim_cur = nr + 64, .rlim_max = nr + 64 };

	(void)peer;
	setrlimit(RLIMIT_NOFILE, &files);
	timerfds.epoll = epoll_create1(EPOLL_CLOEXEC);
	timerfds.fds = calloc(nr, sizeof(*timerfds.fds));
	if (timerfds.epoll < 0 || !timerfds.fds)
		die("epoll_create1: %m");
	return &timerfds;
}

static void refresh(const struct peer_request *request)
{
	/* 0 would disarm it. */
	uint64_t in_ns = request->deadline_ns - timerfds.now_ns + 1;
	struct itimerspec when = {
		.it_value.tv_sec = in_ns / NSEC_PER_SEC,
		.it_value.tv_nsec = in_ns % NSEC_PER_SEC,
	};

	if (timerfd_settime(timerfds.fds[request->timer], 0, &when, NULL) < 0)
		die("timerfd_settime: %m");
}

static void arm(const struct peer_request *request)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u32 = request->timer,
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0 || epoll_ctl(timerfds.epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		die("timerfd %u: %m", request->timer);
	timerfds.fds[request->timer] = fd;
	refresh(request);
}

static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	uint32_t i;

	(void)self;
	for (i = 0; i < count; i++) {
		if (op == PEER_ARM)
			arm(&requests[i]);
		else if (op == PEER_REFRESH)
			refresh(&requests[i]);
		else
			close(timerfds.fds[requests[i].timer]);
	}
}

static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct epoll_event events[EVENTS];
	uint32_t nr = 0;
	uint64_t ticks;
	int i, n;

	(void)self;
	timerfds.now_ns = now_ns;
	n = epoll_wait(timerfds.epoll, events, EVENTS, 0);
	for (i = 0; i < n; i++) {
		int fd = timerfds.fds[events[i].data.u32];

		if (read(fd, &ticks, sizeof(ticks)) != sizeof(ticks))
			continue;
		close(fd);
		due[nr++] = events[i].data.u32;
	}
	return nr;
}

const struct peer peer_timerfd = {
	.name = "timerfd",
	.init = init,
	.process = process,
	.deliver = deliver,
};
