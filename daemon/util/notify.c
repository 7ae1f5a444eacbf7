// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/util/notify.h"
#include "daemon/util/util.h"

#define NOTIFY_MAX	1024

/**
 * notify - the connection to the manager
 * @fd: -1 = no manager
 * @address: the manager's, @len bytes
 * @behind: the last wait for it timed out
 * @lock: of waiting threads: only one of them times out
 */
static struct {
	int fd;
	struct sockaddr_un address;
	socklen_t len;
	atomic_bool behind;
	pthread_mutex_t lock;
} notify = { .fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

void notify_init(void)
{
	const struct timeval wait = { .tv_usec = NOTIFY_WAIT_MS * 1000 };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	/* The address is a path, or a name in the abstract name space. */
	if (len < 2 || (path[0] != '/' && path[0] != '@') ||
	    len >= sizeof(notify.address.sun_path))
		return;
	notify.address.sun_family = AF_UNIX;
	memcpy(notify.address.sun_path, path, len);
	if (path[0] == '@')
		notify.address.sun_path[0] = '\0';
	notify.len = offsetof(struct sockaddr_un, sun_path) + len +
		     (path[0] == '/');
	notify.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (notify.fd >= 0)
		setsockopt(notify.fd, SOL_SOCKET, SO_SNDTIMEO, &wait,
			   sizeof(wait));
}

void notify_deinit(void)
{
	if (notify.fd >= 0)
		close(notify.fd);
	notify.fd = -1;
}

bool notify_enabled(void)
{
	return notify.fd >= 0;
}

/* Sends one message, with the descriptor @fd unless that is -1. */
static int notify_message(int fd, int flags, const char *format, va_list ap)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char text[NOTIFY_MAX];
	struct iovec iov = { .iov_base = text };
	struct msghdr msg = {
		.msg_name = &notify.address,
		.msg_namelen = notify.len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};
	int len, r;

	len = vsnprintf(text, sizeof(text), format, ap);
	iov.iov_len = min_u64(len, sizeof(text) - 1);
	if (fd >= 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
	}
	do {
		r = sendmsg(notify.fd, &msg, MSG_NOSIGNAL | flags) < 0 ?
		    -errno : 0;
	} while (r == -EINTR);
	if (!r)
		notify.behind = false;
	return r;
}

int notify_tell(const char *format, ...)
{
	va_list ap;
	int r;

	if (notify.fd < 0)
		return 0;
	va_start(ap, format);
	r = notify_message(-1, MSG_DONTWAIT, format, ap);
	va_end(ap);
	return r;
}

int notify_send(int fd, const char *format, ...)
{
	va_list ap;
	int r;

	if (notify.fd < 0)
		return 0;
	va_start(ap, format);
	pthread_mutex_lock(&notify.lock);
	r = notify_message(fd, notify.behind ? MSG_DONTWAIT : 0, format, ap);
	if (r == -EAGAIN)
		notify.behind = true;
	pthread_mutex_unlock(&notify.lock);
	va_end(ap);
	return r;
}
