/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Observers: connections that get copies of all records sent to their queue's
 * consumer, without credit.
 *
 * A copy waits in private memory of its observer, up to the limit
 * observer_memory. Copies that do not fit are dropped and counted; a MISSED
 * record replaces them in the stream once there is room. So neither the queue
 * nor its consumer ever waits for an observer. A queue without observers pays
 * one comparison for each buffer of expirations.
 */
#ifndef DAEMON_OBSERVER_H
#define DAEMON_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

struct client;
struct queue;

/* Adds the client to the queue's observers. -EBUSY: the queue has the most it
 * may have.
 */
int observer_join(struct client *client, struct queue *queue);

/* Removes the client from the queue's observers. */
void observer_leave(struct client *client);

/* Copies @count records, sent to the queue's consumer, for all observers. Call
 * it only if there are any.
 */
void observers_copy(struct queue *queue, const struct expiry_record *records,
		    uint32_t count);

/* Puts a MISSED for dropped copies into the stream, if there is room for it
 * now; without memory it is tried again next turn. Returns whether none are left
 * to report.
 */
bool observer_tell_missed(struct client *client);

/* Ends the observers of a queue that is about to be removed. -EBUSY: the engine
 * works on a request of one of them.
 */
int observers_end(struct queue *queue);

#endif /* DAEMON_OBSERVER_H */
