// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/output.h"
#include "daemon/client/reply.h"
#include "daemon/loop/buffer.h"

void reply_status(struct buffer *buffer, int status)
{
	struct expiry_record *record = (void *)buffer->head;

	record->status = status;
	reply_count(buffer, 1);
}

bool reply_flush(struct client *client, struct buffer *buffer)
{
	size_t len = buffer->reply_tail - buffer->reply;
	void *room;

	if (len) {
		room = output_room(client, len);
		if (!room)
			return false;
		memcpy(room, buffer->reply, len);
		buffer->reply = buffer->reply_tail;
	}
	return true;
}
