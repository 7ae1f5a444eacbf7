/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The listening socket and the admission of clients. */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "daemon/loop/loop.h"
#include "daemon/server/socket-file.h"

struct context;
struct handshakes;

/**
 * struct listener - the socket
 * @context: of the thread that listens (const)
 * @handshakes: gets admitted connections (const)
 * @fd: listens
 * @file: the socket's file, unless systemd passed the socket
 * @op: the accept
 * @accepting: @op is in progress
 * @wait: without resources: for a connection, or for @pause
 * @reserve: spare descriptor for refusing a client; -1 = lost
 */
struct listener {
	struct context *context;
	struct handshakes *handshakes;
	int fd;
	int reserve;
	struct socket_file file;
	bool accepting;
	struct loop_op op;
	struct loop_op wait;
	struct __kernel_timespec pause;
};

/* Takes the socket from systemd, or makes it. Logs a failure. */
int listener_init(struct listener *listener, struct handshakes *handshakes);
void listener_deinit(struct listener *listener);

#endif /* DAEMON_LISTEN_H */
