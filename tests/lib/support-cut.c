// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Cuts connections.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support.h"
#include "support-cut.h"

/* Forwards the available bytes. False: the connection is over. */
static bool carry(int from, int to)
{
	char bytes[4096];
	ssize_t nr, done, ret;

	nr = recv(from, bytes, sizeof(bytes), 0);
	if (nr <= 0)
		return false;
	for (done = 0; done < nr; done += ret) {
		ret = send(to, bytes + done, nr - done, MSG_NOSIGNAL);
		if (ret <= 0)
			return false;
	}
	return true;
}

/* The two ends must not wait for each other: read each when the other takes
 * bytes.
 */
static bool carry_both(int one, int other)
{
	struct pollfd fds[] = {
		{ .fd = one, .events = POLLIN },
		{ .fd = other, .events = POLLIN },
	};

	if (poll(fds, 2, -1) < 0)
		return false;
	if (fds[0].revents && !carry(one, other))
		return false;
	return !fds[1].revents || carry(other, one);
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	if (connect(fd, (void *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void *cut(void *arg)
{
	struct cutter *cutter = arg;
	int client, daemon;

	while ((client = accept(cutter->listen_fd, NULL, NULL)) >= 0) {
		cutter->client = client;
		daemon = connect_to(cutter->target);
		while (daemon >= 0 && carry_both(client, daemon))
			;
		if (daemon >= 0)
			close(daemon);
		close(client);
	}
	return NULL;
}

void cutter_start(struct cutter *cutter, const char *target)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	cutter->target = target;
	strcpy(cutter->directory, "/tmp/expiry-test-XXXXXX");
	assert_non_null(mkdtemp(cutter->directory));
	snprintf(cutter->address, sizeof(cutter->address), "unix:%s/s",
		 cutter->directory);
	strcpy(addr.sun_path, cutter->address + strlen("unix:"));
	cutter->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(cutter->listen_fd, (void *)&addr, sizeof(addr)),
			 0);
	assert_int_equal(listen(cutter->listen_fd, 16), 0);
	assert_int_equal(pthread_create(&cutter->thread, NULL, cut, cutter), 0);
}

void cutter_cut(struct cutter *cutter)
{
	shutdown(cutter->client, SHUT_RDWR);
}

void cutter_stop(struct cutter *cutter)
{
	shutdown(cutter->listen_fd, SHUT_RDWR);
	pthread_join(cutter->thread, NULL);
	close(cutter->listen_fd);
	unlink(cutter->address + strlen("unix:"));
	rmdir(cutter->directory);
}
