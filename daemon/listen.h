/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The listening socket and who is let in.
 */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/loop.h"
#include "daemon/socket-file.h"

struct server;

/**
 * struct listener - the socket
 * @fd: listens
 * @file: it was made in, unless systemd handed it over
 * @op: the accept under way
 * @accepting: it is under way
 * @wait: under way instead while descriptors or memory are short: for somebody
 *	who wants in, or for @pause
 * @reserve: a descriptor that is there to be given up for one who has to be
 *	told that there is no other; -1 = that did not come back yet
 */
struct listener {
	struct server *server;
	int fd;
	int reserve;
	struct socket_file file;
	bool accepting;
	struct loop_op op;
	struct loop_op wait;
	struct __kernel_timespec pause;
};

/* Take the socket from systemd, or make it. Says on stderr what went wrong. */
int listener_init(struct listener *listener, struct server *server);
void listener_deinit(struct listener *listener);

#endif /* DAEMON_LISTEN_H */
