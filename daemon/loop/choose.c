// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "daemon/loop/choose.h"
#include "daemon/loop/loop.h"
#include "daemon/util/log.h"

static bool is_refused(int error)
{
	return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

static int log_failure(const struct loop_ops *ops, int error)
{
	log_err("%s: %s%s", ops->name, strerror(-error),
		is_refused(error) ?
			" (see the sysctl kernel.io_uring_disabled; in a container, its seccomp profile)" :
		error == -ENOMEM ?
			" (is the limit of locked memory, ulimit -l, too low?)" :
			"");
	return error;
}

int loop_open(struct loop *loop, const struct loop_ops *ops)
{
	int r = loop_init(loop, ops);

	return r < 0 ? log_failure(ops, r) : 0;
}

int loop_choose(struct loop *loop, const char *name)
{
	static const struct log_about started = { .id = LOG_STARTED };
	int r;

	if (strcmp(name, "epoll")) {
		r = loop_init(loop, &loop_uring);
		if (!r)
			return 0;
		if (!is_refused(r) || !strcmp(name, "io_uring"))
			return log_failure(&loop_uring, r);
		log_at(LOG_LEVEL_INFO, &started, "loop epoll: io_uring: %s",
		       strerror(-r));
	}
	return loop_open(loop, &loop_epoll);
}
