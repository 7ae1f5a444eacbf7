// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <unistd.h>

#include "daemon/client.h"
#include "daemon/listing.h"
#include "daemon/server.h"

/* Places of the pool that are looked at for one reply. */
#define LISTING_PLACES	1024

#define UNIT	sizeof(struct expiry_record)

/* A queue in the reply. */
struct listing_row {
	struct expiry_queues_row head;
	struct expiry_stat stat;
	struct expiry_queue_stat queue;
};

_Static_assert(sizeof(struct expiry_queues_row) == UNIT, "a record");
_Static_assert(sizeof(struct expiry_queue_stat) % UNIT == 0, "whole units");

static bool listed(const struct client *client, const struct queue *queue)
{
	/* Free, or about to be. */
	if (!queue->user)
		return false;
	if (queue == client->queue && !queue->name[0])
		return false;
	return queue->user == client->user || !client->user->uid ||
	       client->user->uid == geteuid();
}

static int fill_row(struct listing_row *row, const struct queue *queue)
{
	int r;

	r = queue->server->engine->ops->stat(queue->engine_queue, &row->stat);
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
	};
	return 0;
}

size_t listing_fill(struct client *client, void *to, size_t size, uint32_t max,
		    uint64_t cursor)
{
	const struct pool *pool = &client->server->queues.pool;
	uint32_t n = 0, places = 0;
	struct listing_row *rows = to;
	struct expiry_record *last;
	const struct queue *queue;

	max = min_u64(max, (size - UNIT) / sizeof(*rows));
	while ((queue = pool_at(pool, cursor)) && n < max &&
	       places++ < LISTING_PLACES) {
		if (listed(client, queue) && !fill_row(&rows[n], queue))
			n++;
		cursor++;
	}
	last = (void *)&rows[n];
	*last = (struct expiry_record) {
		.op = EXPIRY_OP_QUEUES,
		.cookie = queue ? cursor : 0,
	};
	return n * sizeof(*rows) + UNIT;
}
