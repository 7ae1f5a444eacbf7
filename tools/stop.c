// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tools/ctl.h"
#include "tools/output/error.h"
#include "tools/output/print.h"
#include "tools/stop.h"

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

/* Waits until the handle may have a record, @timeout_ms at most. Returns 0, 1 after such
 * a signal, or -errno.
 */
static int stop_wait(int stop_fd, struct expiry *handle, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = expiry_fd(handle), .events = expiry_events(handle) },
		{ .fd = stop_fd, .events = POLLIN },
	};

	if (poll(fds, 2, timeout_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	return fds[1].revents != 0;
}

int stop_follow(const struct ctl *ctl, const uint64_t *left,
		int (*take)(void *state), void *state)
{
	int stop_fd, ret = 0;

	stop_fd = stop_open();
	if (stop_fd < 0)
		return stop_fd;
	print_expired_head(ctl);
	fflush(stdout);
	while (*left && !ret) {
		ret = take(state);
		/* After records there may be more, in the handle. */
		if (ret >= 0)
			ret = stop_wait(stop_fd, ctl->handle, ret ? 0 : -1);
	}
	close(stop_fd);
	return ret < 0 ? ret : 0;
}

int stop_status(const struct ctl *ctl, int result)
{
	if (ferror(stdout))
		return ctl_error("standard output: %s", strerror(errno));
	return result ? ctl_refused(ctl_queue(ctl), result, 0) : 0;
}
