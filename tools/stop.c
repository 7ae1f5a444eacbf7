// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <expiry/expiry.h>

#include "stop.h"

int stop_open(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	fd = signalfd(-1, &signals, SFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int stop_wait(int stop_fd, struct expiry *handle)
{
	struct pollfd fds[] = {
		{ .fd = expiry_fd(handle), .events = expiry_events(handle) },
		{ .fd = stop_fd, .events = POLLIN },
	};

	if (poll(fds, 2, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	return fds[1].revents != 0;
}
