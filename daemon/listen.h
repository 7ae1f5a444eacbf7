/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The listening socket and who is let in.
 */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include <stdbool.h>

#include "daemon/loop.h"

struct server;

/**
 * struct listener - the socket
 * @fd: listens
 * @made: it is ours to remove, at the configured path
 * @op: the multishot accept
 * @accepting: it is under way
 * @short_of: descriptors or memory; a connection or a queue that ends makes it
 *	resume
 */
struct listener {
	struct server *server;
	int fd;
	bool made;
	bool accepting;
	bool short_of;
	struct loop_op op;
};

/* Take the socket from systemd, or make it. Says on stderr what went wrong. */
int listener_init(struct listener *listener, struct server *server);
void listener_deinit(struct listener *listener);

/* Accept, if that was stopped for want of something. */
void listener_resume(struct listener *listener);

#endif /* DAEMON_LISTEN_H */
