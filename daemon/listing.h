/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The queues there are, for those who may know: QUEUES.
 */
#ifndef DAEMON_LISTING_H
#define DAEMON_LISTING_H

#include <stddef.h>
#include <stdint.h>

struct client;

/**
 * listing_fill - write the reply to QUEUES
 * @client: who asks: root and the daemon's own user are told of all queues,
 *	others of their own; nobody of the anonymous queue of the connection that
 *	asks
 * @to: room for it, aligned as a record, @size bytes
 * @max: most queues
 * @cursor: where to go on, 0 to start
 *
 * A queue that is there all the while is listed once. Bounded work: there may be
 * fewer queues than fit, even none, before the end.
 *
 * Returns how many bytes were written.
 */
size_t listing_fill(struct client *client, void *to, size_t size, uint32_t max,
		    uint64_t cursor);

#endif /* DAEMON_LISTING_H */
