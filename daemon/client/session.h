/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sessions: a client with its user and its queue, from HELLO to the end of the
 * connection.
 */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

#include <stdint.h>

struct client;
struct connection_start;
struct connections;
struct context;

/* Initializes the thread's connections, at most @nr_max. */
void sessions_init(struct connections *connections, struct context *context,
		   uint64_t nr_max);

/* Begins a session of the connection, whose charge it takes over. -ENOMEM: takes
 * nothing.
 */
int session_begin(struct context *context, struct connection_start *start);

/* Detaches the client from its queue; an anonymous queue ends with it. */
void session_detach(struct client *client);

#endif /* DAEMON_SESSION_H */
