// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/daemon-op.h"
#include "daemon/client/declare.h"
#include "daemon/client/delivery.h"
#include "daemon/client/listing.h"
#include "daemon/client/observer.h"
#include "daemon/client/reply.h"
#include "daemon/client/session.h"
#include "daemon/client/stat.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/context.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/store.h"
#include "daemon/util/util.h"

#define RECORD	((uint32_t)sizeof(struct expiry_record))

static void client_broke(struct client *client, const char *why)
{
	counter_add(&client->context->stat.closed_protocol, 1);
	client_leave(client, why, EPROTO);
}

/* Returns whether a connection without a queue may send @op, too. */
static bool is_about_daemon(uint8_t op)
{
	return op == EXPIRY_OP_STAT || op == EXPIRY_OP_QUEUES;
}

static bool do_scan(struct client *client, struct buffer *buffer)
{
	struct context *context = client->context;
	struct expiry_record *request = (void *)buffer->head, *rows;
	uint64_t cursor = request->id;
	struct buffer *room;
	uint32_t count;
	int i, n;

	if (!request->period_ms) {
		reply_status(buffer, -EINVAL);
		return true;
	}
	if (!reply_flush(client, buffer))
		return false;
	room = buffer_spare(&context->buffers);
	if (!room)
		return false;
	/* The request stays before the rows, for durable_refuse(). */
	memcpy(room->data, request, RECORD);
	room->head = room->tail = room->data + RECORD;
	rows = (void *)room->head;
	count = min_u64(request->period_ms, room->size / RECORD - 2);
	n = context->engine->ops->scan(client->queue->engine_queue, rows, count,
				       &cursor);
	if (n < 0) {
		buffer_put(&context->buffers, room);
		reply_status(buffer, n);
		return true;
	}
	for (i = 0; i < n; i++)
		rows[i].op = EXPIRY_OP_SCAN;
	rows[n] = (struct expiry_record) {
		.op = EXPIRY_OP_SCAN,
		.cookie = cursor,
	};
	room->tail += (n + 1) * sizeof(*rows);
	room->content = BUFFER_ROWS;
	client_send(client, room);
	buffer->head += sizeof(*request);
	return true;
}

static bool do_queues(struct client *client, struct buffer *buffer)
{
	struct expiry_record *request = (void *)buffer->head;

	if (!request->period_ms) {
		reply_status(buffer, -EINVAL);
		return true;
	}
	return reply_flush(client, buffer) && listing_reply(client);
}

/* Carries out CREDIT. A valid one has no reply. An invalid one ends the
 * connection: the two sides no longer agree on the credit.
 */
static void do_credit(struct client *client, struct buffer *buffer)
{
	struct expiry_record *request = (void *)buffer->head;

	if (request->flags || request->status || request->id ||
	    request->deadline_ns || request->cookie) {
		reply_status(buffer, -EINVAL);
		client_broke(client, "CREDIT with invalid fields");
	} else if (client->queueless ||
		   (client->queue && client->queue->consumer != client)) {
		reply_status(buffer, -EINVAL);
		client_broke(client,
			     "CREDIT from a client that is not the consumer");
	} else {
		if (client->queue)
			delivery_credit(client->queue, request->period_ms);
		buffer->head += sizeof(*request);
	}
}

/* Removes the client's queue; its observers end. A declared queue is made anew,
 * as its file says now. -EINVAL: it is anonymous. -EBUSY: other clients are
 * attached, or the engine works on a request of an observer.
 */
static int do_drop(struct client *client)
{
	struct context *context = client->context;
	struct queue *queue = client->queue;
	const struct declaration *declaration;
	int r;

	if (!queue_is_named(queue))
		return -EINVAL;
	if (queue->clients > 1)
		return -EBUSY;
	if (queue->journal_number) {
		r = durable_may_drop(queue);
		if (r < 0)
			return r;
	}
	r = observers_end(queue);
	if (r < 0)
		return r;
	if (queue->journal_number)
		durable_drop(queue);
	declaration = declarations_find(context->declared, queue->name);
	store_forget(queue);
	session_detach(client);
	queue_remove(queue);
	if (declaration)
		declare_anew(context, declaration);
	return 0;
}

uint32_t daemon_op_cost(const struct expiry_record *request)
{
	return request->op == EXPIRY_OP_SCAN ||
			       request->op == EXPIRY_OP_QUEUES ?
		       SCAN_REQUESTS :
	       request->op == EXPIRY_OP_STAT ? STAT_REQUESTS :
					       0;
}

bool daemon_op(struct client *client, struct buffer *buffer)
{
	struct expiry_record *request = (void *)buffer->head;

	if (request->op == EXPIRY_OP_HELLO) {
		reply_status(buffer, -EPROTO);
		client_broke(client, "a second HELLO");
		return true;
	}
	if (request->op == EXPIRY_OP_CREDIT) {
		do_credit(client, buffer);
		return true;
	}
	if (request->flags || request->status) {
		reply_status(buffer, -EINVAL);
		return true;
	}
	if (!client->queue &&
	    !(client->queueless && is_about_daemon(request->op))) {
		reply_status(buffer, -ENOENT);
		return true;
	}
	switch (request->op) {
	case EXPIRY_OP_SCAN:
		return do_scan(client, buffer);
	case EXPIRY_OP_STAT:
		return stat_reply(client, buffer);
	case EXPIRY_OP_QUEUES:
		return do_queues(client, buffer);
	default:
		reply_status(buffer, do_drop(client));
		return true;
	}
}
