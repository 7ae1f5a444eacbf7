/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connections: what a client sends is received, what it does waits and ends
 * here. How, is in client.h.
 */
#ifndef DAEMON_CONNECTION_H
#define DAEMON_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/client/client.h"
#include "daemon/util/log-entry.h"

void connections_init(struct connections *connections, struct context *context,
		      const struct connection_ops *ops, uint64_t nr_max);

/* Makes a client of a connection after its HELLO, the first record it sent.
 * Takes the descriptor and the directory entry. NULL: no memory, takes nothing.
 */
struct client *client_new(struct connections *connections,
			  const struct connection_start *start);

/* Frees all remaining clients, after the loop has ended. */
void clients_deinit(struct connections *connections);

/* Sends a buffer after all others; it is freed afterwards. */
void client_send(struct client *client, struct buffer *buffer);

/* Logs @why (NULL: no line) and the errno @error (0 = none), sends the pending
 * replies, then ends it.
 */
void client_leave(struct client *client, const char *why, int error);

/* Ends a client at once: logs @why and the errno @error (0 = none). */
void client_fail(struct client *client, const char *why, int error);

/* Returns the fields of a log line about the client. */
struct log_about client_about(const struct client *client, const char *id,
			      int error);

/* Continues the client after a change: receives, processes or ends. */
void client_update(struct client *client);

/* Completes sends with success skipped, submitted before this turn. */
void clients_sent(struct connections *connections);

/* Ends clients that do not read while their memory exceeds its limit. */
void clients_bound(struct connections *connections);

/* Refuses with @error all requests whose replies wait for the journal. */
void clients_refuse(struct connections *connections, int error);

/* Ends a turn: sends, receives again, frees dead clients. */
void clients_turn(struct connections *connections);

#endif /* DAEMON_CONNECTION_H */
