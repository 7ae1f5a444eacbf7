/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Observers: connections that get a copy of what their queue's consumer is sent,
 * without credit.
 *
 * A copy waits in private memory of its observer, up to the limit
 * observer_memory. What does not fit is dropped and counted; a MISSED record
 * stands for it in the stream once there is room. So neither the queue nor its
 * consumer ever waits for an observer. A queue without observers pays one
 * comparison for each buffer of expirations.
 */
#ifndef DAEMON_OBSERVER_H
#define DAEMON_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

struct client;
struct queue;

/* Adds the client to the observers of the queue. -EBUSY: the queue has as many as
 * it may.
 */
int observer_join(struct client *client, struct queue *queue);

/* Takes the client off them. */
void observer_leave(struct client *client);

/* Copies @count records, which the queue's consumer is sent, for all observers.
 * Call it only if there are any.
 */
void observers_copy(struct queue *queue, const struct expiry_record *records,
		    uint32_t count);

/* Puts a MISSED into the stream for what was dropped, if there is room for it now.
 * Returns whether nothing is left to be told.
 */
bool observer_tell_missed(struct client *client);

/* Ends the observers of a queue that is about to be removed. -EBUSY: the engine
 * works on a request of one of them.
 */
int observers_end(struct queue *queue);

#endif /* DAEMON_OBSERVER_H */
