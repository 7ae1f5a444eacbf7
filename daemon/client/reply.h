/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replies in place: the records of a received buffer become the replies. They
 * are [reply, reply_tail) so far; the unprocessed requests are [head, tail).
 */
#ifndef DAEMON_REPLY_H
#define DAEMON_REPLY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <linux/expiry.h>

#include "daemon/loop/buffer.h"

struct client;

/* Counts the next @count records as replies. */
static inline void reply_count(struct buffer *buffer, uint32_t count)
{
	size_t len = count * sizeof(struct expiry_record);

	if (buffer->reply_tail == buffer->reply) {
		buffer->reply = buffer->head;
		buffer->reply_tail = buffer->head;
	} else if (buffer->reply_tail != buffer->head) {
		memmove(buffer->reply_tail, buffer->head, len);
	}
	buffer->reply_tail += len;
	buffer->head += len;
}

/* Makes the next record a reply with @status. */
void reply_status(struct buffer *buffer, int status);

/* Prepares a reply from another buffer: copies the replies so far, so that they
 * go before it. Returns false if there is no room now.
 */
bool reply_flush(struct client *client, struct buffer *buffer);

#endif /* DAEMON_REPLY_H */
