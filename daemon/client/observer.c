// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/observer.h"
#include "daemon/client/output.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

/* Bytes that may wait for an observer while clients that do not read hold half
 * of their memory. It is enough that a send is always in progress, and MISSED
 * follows it.
 */
#define PRESSED_BYTES	4096

#define RECORD	sizeof(struct expiry_record)

int observer_join(struct client *client, struct queue *queue)
{
	struct context *context = client->context;

	if (queue->nr_observers >= context->config.observers_per_queue) {
		counter_add(&context->stat.refused_observers, 1);
		return -EBUSY;
	}
	assert(!client->observes && list_empty(&client->observer));
	client->observes = true;
	list_add(&queue->observers, &client->observer);
	queue->nr_observers++;
	return 0;
}

void observer_leave(struct client *client)
{
	assert(client->observes && client->queue->nr_observers);
	list_del(&client->observer);
	client->queue->nr_observers--;
	client->queue = NULL;
}

/* Returns the number of further records that may wait for the observer. */
static uint64_t observer_room(const struct client *client)
{
	const struct context *context = client->context;
	uint64_t most = context->config.observer_memory;

	if (counter_read(&context->buffers.private_size) >
	    context_backlog_max(context) / context->shared->nr / 2)
		most = min_u64(most, PRESSED_BYTES);
	return client->replies_len < most ?
	       (most - client->replies_len) / RECORD : 0;
}

/* Returns whether more may be sent to the client: it has ended neither the
 * connection nor its direction.
 */
static bool observer_listens(const struct client *client)
{
	return client->state == CLIENT_OPEN && !client->eof;
}

/* Tries again next turn, if no send is in progress that MISSED would follow. */
static void observer_await_memory(struct client *client)
{
	if (!client->replies.first && list_empty(&client->writer))
		list_add(&client->context->connections->no_memory,
			 &client->writer);
}

bool observer_tell_missed(struct client *client)
{
	const struct expiry_record record = {
		.op = EXPIRY_OP_MISSED,
		.cookie = client->missed,
	};
	void *room;

	if (!client->missed)
		return true;
	if (!observer_listens(client) || !observer_room(client))
		return false;
	room = output_room(client, sizeof(record));
	if (!room) {
		observer_await_memory(client);
		return false;
	}
	memcpy(room, &record, sizeof(record));
	client->missed = 0;
	return true;
}

static void observer_copy(struct client *client,
			  const struct expiry_record *records, uint32_t count)
{
	uint32_t nr = 0;
	void *room;

	if (!observer_listens(client))
		return;
	if (observer_tell_missed(client))
		nr = min_u64(count, observer_room(client));
	if (nr) {
		room = output_room(client, nr * RECORD);
		if (room) {
			memcpy(room, records, nr * RECORD);
		} else {
			nr = 0;
			observer_await_memory(client);
		}
	}
	client->missed += count - nr;
	counter_add(&client->context->stat.copies_missed, count - nr);
}

void observers_copy(struct queue *queue, const struct expiry_record *records,
		    uint32_t count)
{
	struct list *entry;

	/* The consumer's send comes first. */
	output_schedule(queue->consumer);
	for (entry = queue->observers.next; entry != &queue->observers;
	     entry = entry->next)
		observer_copy(container_of(entry, struct client, observer),
			      records, count);
}

int observers_end(struct queue *queue)
{
	struct list *entry;

	for (entry = queue->observers.next; entry != &queue->observers;
	     entry = entry->next)
		if (container_of(entry, struct client, observer)->busy)
			return -EBUSY;
	while (!list_empty(&queue->observers)) {
		struct client *client = container_of(queue->observers.next,
						     struct client, observer);

		observer_leave(client);
		if (client->state == CLIENT_DEAD)
			continue;
		client_leave(client, NULL, 0);
		client_update(client);
	}
	return 0;
}
