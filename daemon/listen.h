/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The listening socket and who is let in.
 */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/loop.h"
#include "daemon/mailbox.h"

struct server;

/**
 * struct listener - the socket
 * @fd: listens
 * @made: it is ours to remove, at the configured path
 * @op: the multishot accept
 * @accepting: it is under way
 * @short_of: descriptors or memory; a connection or a queue that ends makes it
 *	resume, in whatever thread, by posting @resume
 */
struct listener {
	struct server *server;
	int fd;
	bool made;
	bool accepting;
	atomic_bool short_of;
	struct loop_op op;
	struct mail resume;
};

/* Take the socket from systemd, or make it. Says on stderr what went wrong. */
int listener_init(struct listener *listener, struct server *server);
void listener_deinit(struct listener *listener);

/* For any server: have the first one accept, if that was stopped for want of
 * something.
 */
void listener_resume(struct server *server);

#endif /* DAEMON_LISTEN_H */
