/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The output of a client: its replies, until its socket has taken them. */
#ifndef DAEMON_OUTPUT_H
#define DAEMON_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;
struct client;
struct connections;

/* Queues the client to send in this turn, after those queued before. */
void output_schedule(struct client *client);

/* Returns room for @len bytes that are sent after all others, or NULL: try
 * again next turn. The caller fills it before any other call. It may stand at any
 * address: what remains of a record that was sent in part may precede it.
 */
void *output_room(struct client *client, size_t len);

/* Appends a buffer, which is freed once it is sent, or, if the client is blocked, once it
 * is copied to the client's own memory. Returns false if there is no memory for that.
 */
bool output_push(struct client *client, struct buffer *buffer);

/* Blocks a client whose socket took only a part: until all is sent, its replies
 * are in private memory. Returns false if there is no memory for them.
 */
bool output_block(struct client *client);

/* Removes @len sent bytes from the queue. Returns true if that was all of the
 * send in progress.
 */
bool output_written(struct client *client, uint32_t len);

/* Lets clients whose replies waited for the journal write again. */
void outputs_release(struct connections *connections);

/* Answers all requests whose replies wait for the journal with @error, so that what is
 * behind them does not wait. Returns false if some cannot be answered any more: the
 * client must end.
 */
bool output_refuse(struct client *client, int error);

/* Likewise its HELLO, if the creation of its queue waits for the journal. Returns
 * whether it was refused: nothing follows it, and the client must leave.
 */
bool output_refuse_hello(struct client *client, int error);

/* Sends the pending replies of all writers. */
void outputs_write(struct connections *connections);

#endif /* DAEMON_OUTPUT_H */
