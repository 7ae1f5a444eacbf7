// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/output.h"
#include "daemon/client/reply.h"
#include "daemon/loop/buffer.h"
#include "daemon/queue/context.h"

void reply_status(struct buffer *buffer, int status)
{
	struct expiry_record *record = (void *)buffer->head;

	record->status = status;
	reply_count(buffer, 1);
}

/* Sends @len bytes of replies that may wait for the journal. */
static bool send_waiting(struct client *client, const void *replies, size_t len)
{
	struct buffers *buffers = &client->context->buffers;
	struct buffer *room = len > buffers->size ? buffer_private(buffers, len) :
						    buffer_spare(buffers);

	if (!room)
		return false;
	memcpy(room->tail, replies, len);
	room->tail += len;
	room->content = BUFFER_REPLIES;
	client_send(client, room);
	return true;
}

bool reply_flush(struct client *client, struct buffer *buffer)
{
	size_t len = buffer->reply_tail - buffer->reply;
	void *room;

	if (len) {
		if (client->durable) {
			if (!send_waiting(client, buffer->reply, len))
				return false;
		} else {
			room = output_room(client, len);
			if (!room)
				return false;
			memcpy(room, buffer->reply, len);
		}
		buffer->reply = buffer->reply_tail;
	}
	return true;
}
