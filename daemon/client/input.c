// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>

#include "daemon/client/client.h"
#include "daemon/client/input.h"
#include "daemon/loop/buffer.h"
#include "daemon/util/list.h"

static uint32_t input_ring_buffers(const struct client *client)
{
	const struct buffer *buffer;
	uint32_t nr = 0;

	for (buffer = client->received.first; buffer; buffer = buffer->next)
		nr += buffer->kind == BUFFER_RING;
	return nr;
}

/* Counts the ring's buffers that the client has while one is at the engine. */
static void input_count(struct client *client)
{
	uint32_t nr = client->io_pending ? input_ring_buffers(client) : 0;

	client->context->buffers.nr_in_flight += nr - client->nr_in_flight;
	client->nr_in_flight = nr;
	assert(client->context->buffers.nr_in_flight <=
	       client->context->buffers.nr_ring);
}

bool input_detach(struct client *client)
{
	struct buffer_queue old = client->received;
	struct buffer *busy = client->busy ? old.first : NULL, *buffer;
	bool done = true;

	client->received.first = NULL;
	while ((buffer = buffer_pop(&old))) {
		struct buffer *copy = NULL;

		if (done && buffer != busy) {
			copy = buffer_detach(&client->context->buffers, buffer);
			done = copy;
		}
		/* A buffer that waits for its own client is never overdue. */
		if (copy && copy != buffer && !client->awaits_journal)
			copy->received_ns = 0;
		buffer_push(&client->received, copy ? copy : buffer);
	}
	input_count(client);
	return done;
}

void input_bound(struct client *client)
{
	struct buffers *buffers = &client->context->buffers;

	/* Clients of other queues must not wait for the disk, too. */
	if (client->awaits_journal &&
	    client_leaves_shared(client, client->received.last->kind))
		input_detach(client);
	if (!client->io_pending)
		return;
	input_count(client);
	if (buffers->nr_in_flight + buffers_reserve(buffers) > buffers->nr_ring)
		input_detach(client);
}

void client_io_begin(struct client *client)
{
	assert(!client->busy && client->received.first);
	client->busy = true;
	client->io_pending = true;
	client->ops++;
	input_bound(client);
}

void client_io_end(struct client *client)
{
	assert(client->io_pending && client->ops);
	client->io_pending = false;
	client->ops--;
	input_count(client);
}

void client_park(struct client *client, struct list *waiting)
{
	client_io_begin(client);
	list_add(waiting, &client->parked);
}

void client_unpark(struct client *client)
{
	client_io_end(client);
	client->busy = false;
}
