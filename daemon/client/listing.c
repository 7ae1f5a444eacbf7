// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/input.h"
#include "daemon/client/listing.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/access.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

/* Indices of the pool checked for one reply. */
#define LISTING_INDICES	1024

#define UNIT	sizeof(struct expiry_record)

_Static_assert(sizeof(struct expiry_queues_row) == UNIT, "a record");
_Static_assert(sizeof(struct expiry_queue_stat) % UNIT == 0, "whole units");

static bool listed(const struct listing_question *question,
		   struct access_peer *peer, const struct queue *queue)
{
	/* Free, or about to be. */
	if (!queue->user)
		return false;
	if (queue == question->own && !queue->name[0])
		return false;
	return queue->user->uid == question->uid ||
	       accounts_privileged(&queue->context->shared->accounts,
				   question->uid) ||
	       queue_access_of(queue, peer) & ACCESS_LOOK;
}

static int fill_row(struct listing_row *row, const struct queue *queue)
{
	int r;

	r = queue->context->engine->ops->stat(queue->engine_queue, &row->stat);
	if (r < 0)
		return r;
	row->head = (struct expiry_queues_row) {
		.op = EXPIRY_OP_QUEUES,
		.units = sizeof(*row) / UNIT - 1,
	};
	memcpy(row->head.name, queue->name, sizeof(row->head.name));
	row->queue = (struct expiry_queue_stat) {
		.number = queue->number,
		.uid = queue->user->uid,
		.connections = queue->clients,
		.consumers = queue->consumer != NULL,
		.credit = queue->credit,
		.consumer_pid = queue->consumer ? queue->consumer->pid : 0,
		.observers = queue->nr_observers,
		.access = queue->access |
			  (queue->declared ? EXPIRY_QUEUE_DECLARED : 0) |
			  (queue->journal_number ? EXPIRY_QUEUE_DURABLE : 0),
		.gid = queue->gid,
	};
	return 0;
}

static const struct expiry_record *request_of(const struct client *client)
{
	return (const void *)client->received.first->head;
}

static void ask(struct listing_question *question, const struct client *client)
{
	uint64_t fit = (client->context->buffers.size - UNIT) /
		       sizeof(struct listing_row);

	*question = (struct listing_question) {
		.uid = client->user->uid,
		.fd = client->fd,
		.own = client->queue,
		.max = min_u64(request_of(client)->period_ms,
			       min_u64(fit, LISTING_QUEUES)),
		.cursor = request_of(client)->id,
	};
}

/* Returns the thread of a cursor. */
static uint32_t thread_of(const struct shared *shared, uint64_t cursor)
{
	return cursor % shared->nr;
}

/* Returns the cursor of index @index in this thread's pool; at its @end that of
 * the next thread, or 0.
 */
static uint64_t cursor_after(const struct context *context, uint64_t index,
			     bool end)
{
	uint32_t nr = context->shared->nr;

	if (!end)
		return index * nr + context->number;
	return context->number + 1 < nr ? context->number + 1 : 0;
}

/* Writes this thread's answer. Returns its size in bytes. */
static size_t listing_fill(const struct context *context,
			   const struct listing_question *question, void *to)
{
	uint64_t index = question->cursor / context->shared->nr;
	const struct pool *pool = &context->queues->pool;
	uint32_t n = 0, checked = 0;
	struct listing_row *rows = to;
	struct expiry_record *last;
	const struct queue *queue;
	struct access_peer peer;

	access_peer_init(&peer, question->uid, question->fd);
	while ((queue = pool_at(pool, index)) && n < question->max &&
	       checked++ < LISTING_INDICES) {
		if (listed(question, &peer, queue) && !fill_row(&rows[n], queue))
			n++;
		index++;
	}
	last = (void *)&rows[n];
	*last = (struct expiry_record) {
		.op = EXPIRY_OP_QUEUES,
		.cookie = cursor_after(context, index, !queue),
	};
	return n * sizeof(*rows) + UNIT;
}

/* ----------------------------------------------------------- other threads */

static void listing_asked(struct context *context, struct mail *mail);
static void listing_answered(struct context *context, struct mail *mail);

/* Sends the next waiting client's question. */
static void listing_next(struct context *context)
{
	struct listing *listing = context->listing;
	struct shared *shared = context->shared;
	struct list *entry;
	uint32_t thread;

	listing->client = NULL;
	while (!listing->client && (entry = list_pop(&listing->waiting))) {
		struct client *client =
			container_of(entry, struct client, parked);

		if (client->state <= CLIENT_OPEN) {
			listing->client = client;
		} else {
			client_unpark(client);
			client_update(client);
		}
	}
	if (!listing->client)
		return;
	ask(&listing->question, listing->client);
	thread = thread_of(shared, listing->question.cursor);
	listing->mail.deliver = listing_asked;
	mail_post(&shared->contexts[thread]->mailbox, &listing->mail);
}

/* Receives another thread's question. */
static void listing_asked(struct context *context, struct mail *mail)
{
	struct listing *listing = container_of(mail, struct listing, mail);

	listing->len = listing_fill(context, &listing->question, listing->rows);
	mail->deliver = listing_answered;
	mail_post(&listing->context->mailbox, mail);
}

static void listing_send(struct client *client, const struct listing *listing)
{
	struct buffers *buffers = &client->context->buffers;
	struct buffer *room = buffer_spare(buffers);

	/* Do not wait for room: other clients wait for the listing. */
	if (!room)
		room = buffer_private(buffers, listing->len);
	if (!room) {
		client_fail(client, "no memory for the list of queues", 0);
		return;
	}
	memcpy(room->tail, listing->rows, listing->len);
	room->tail += listing->len;
	client_send(client, room);
	client->received.first->head += UNIT;
}

static void listing_answered(struct context *context, struct mail *mail)
{
	struct listing *listing = context->listing;
	struct client *client = listing->client;

	assert(client);
	(void)mail;
	client_unpark(client);
	/* Its HELLO may have been refused meanwhile: nothing follows that. */
	if (client->state <= CLIENT_OPEN) {
		listing_send(client, listing);
		counter_add(&context->stat.records, 1);
	}
	client_update(client);
	listing_next(context);
}

void listing_init(struct listing *listing, struct context *context)
{
	listing->context = context;
	list_init(&listing->waiting);
}

bool listing_reply(struct client *client)
{
	struct context *context = client->context;
	struct listing_question question;
	struct buffer *room;

	if (thread_of(context->shared, request_of(client)->id) !=
	    context->number) {
		client_park(client, &context->listing->waiting);
		if (!context->listing->client)
			listing_next(context);
		return true;
	}
	room = buffer_spare(&context->buffers);
	if (!room)
		return false;
	ask(&question, client);
	room->tail += listing_fill(context, &question, room->data);
	client_send(client, room);
	client->received.first->head += UNIT;
	return true;
}
