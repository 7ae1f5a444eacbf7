// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * epoll(7): a server that closes idle connections. It echoes its input, and closes
 * a connection that sends nothing for MILLISECONDS. Each input moves the
 * connection's timer, without waiting for the reply. Ends at the end of the
 * standard input.
 *
 *	./epoll SOCKET MILLISECONDS
 */
#include <err.h>
#include <expiry/expiry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX	1024	/* descriptors */

static uint64_t deadlines[MAX];	/* deadline by descriptor; 0 = none */
static uint64_t idle_ns;
static struct expiry *h;

static int check(int ret, unsigned int op)
{
	if (ret < 0)
		errx(1, "expiryd: %s", expiry_explain(ret, op));
	return ret;
}

static void hang_up(int fd, const char *why)
{
	printf("%s\n", why);
	fflush(stdout);
	deadlines[fd] = 0;
	close(fd);
}

/* Takes replies and expirations until the buffer is not filled. */
static void take(void)
{
	struct expiry_record records[64], *r;
	int nr;

	do {
		nr = check(expiry_next(h, records, 64), EXPIRY_OP_EXPIRED);
		for (r = records; r < records + nr; r++) {
			if (r->op == EXPIRY_OP_ARM)
				check(r->status, EXPIRY_OP_ARM);
			/* An expiration that crossed an ARM has an old deadline. */
			if (r->op == EXPIRY_OP_EXPIRED &&
			    r->deadline_ns == deadlines[r->id])
				hang_up(r->id, "idle");
		}
	} while (nr == 64);
}

/* Posts an ARM, which also moves an armed timer, or a CANCEL. */
static void set_timer(int fd, uint8_t op)
{
	const struct expiry_record record = {
		.op = op, .id = fd, .deadline_ns = expiry_now(h) + idle_ns,
	};

	deadlines[fd] = record.deadline_ns;
	/* 0: the window is full until the program takes a reply. */
	while (!check(expiry_post(h, &record, 1), op)) {
		expiry_wait(h, -1);
		take();
	}
}

static void serve(int fd)
{
	char data[4096];
	ssize_t nr = read(fd, data, sizeof(data));

	if (nr > 0 && send(fd, data, nr, MSG_NOSIGNAL) == nr) {
		set_timer(fd, EXPIRY_OP_ARM);
	} else {
		set_timer(fd, EXPIRY_OP_CANCEL);
		hang_up(fd, "closed");
	}
}

static void watch(int set, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (fd < 0 || fd >= MAX || epoll_ctl(set, op, fd, &event))
		err(1, "epoll_ctl %d", fd);
}

int main(int argc, char **argv)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_KEYED,
		.clock_id = CLOCK_MONOTONIC,
	};
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), set = epoll_create1(0);
	struct epoll_event event;
	int fd = -1;

	if (argc != 3)
		errx(2, "usage: epoll SOCKET MILLISECONDS");
	idle_ns = strtoull(argv[2], NULL, 10) * 1000000;
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	if (bind(listener, (void *)&address, sizeof(address)) ||
	    listen(listener, 64))
		err(1, "%s", argv[1]);
	check(expiry_open(&h, NULL, &options), EXPIRY_OP_HELLO);
	watch(set, EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN);
	watch(set, EPOLL_CTL_ADD, listener, EPOLLIN);
	watch(set, EPOLL_CTL_ADD, expiry_fd(h), EPOLLIN);
	while (fd != STDIN_FILENO) {
		take();
		/* EPOLLOUT is included while requests wait to be sent. */
		watch(set, EPOLL_CTL_MOD, expiry_fd(h), expiry_events(h));
		if (epoll_wait(set, &event, 1, -1) < 1)
			continue;
		fd = event.data.fd;
		if (fd == listener) {
			fd = accept(listener, NULL, NULL);
			watch(set, EPOLL_CTL_ADD, fd, EPOLLIN);
			set_timer(fd, EXPIRY_OP_ARM);
		} else if (fd != STDIN_FILENO && fd != expiry_fd(h)) {
			serve(fd);
		}
	}
	unlink(argv[1]);
	expiry_close(h);
	return 0;
}
