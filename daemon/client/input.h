/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The input of a client: received buffers that wait, and the one at an engine or
 * another thread.
 */
#ifndef DAEMON_INPUT_H
#define DAEMON_INPUT_H

#include <stdbool.h>

struct client;
struct list;

/* Copies unprocessed bytes of a stalled client to private memory, except those
 * at the engine. They must not hold shared memory either.
 */
bool input_detach(struct client *client);

/* Moves what is behind a buffer in flight to private memory, if all clients have
 * too many of the ring's. So it does with all that waits for the journal, if few shared
 * buffers are left.
 */
void input_bound(struct client *client);

/* Lends the client's first buffer to an engine or to another thread. The client
 * is @busy, and stays until the buffer is returned, however the client ends.
 * After that it is @busy until processing of the buffer continues.
 */
void client_io_begin(struct client *client);
void client_io_end(struct client *client);

/* Parks the client on the list @waiting, @busy, until other threads have
 * answered. client_unpark() then continues it.
 */
void client_park(struct client *client, struct list *waiting);
void client_unpark(struct client *client);

#endif /* DAEMON_INPUT_H */
