/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Permissions: what clients may do, what is logged where they may not. */
#ifndef DAEMON_PERMISSION_H
#define DAEMON_PERMISSION_H

#include <stdbool.h>
#include <stdint.h>

struct client;
struct queue;

/* Returns whether the client may make a named queue that is not declared. */
bool permission_to_make(const struct client *client);

/* Logs that HELLO was refused with -EACCES, and why. */
void permission_log_hello(const struct client *client, const char *name);

/* Logs that the request @op was refused with -EACCES, once for a connection. */
void permission_log_request(struct client *client, uint8_t op);

/* Handles a new owner, group or mode of the queue: computes its clients' rights
 * anew. Ends a client without any right, a consumer that may not consume, and
 * an observer that may not look.
 */
void permission_renew(struct queue *queue);

#endif /* DAEMON_PERMISSION_H */
