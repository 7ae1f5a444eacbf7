// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Invariants of the daemon's own structs, at the end of each turn. All that the
 * simulator knows of them is in this file and in inside-durable.c.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/client/client.h"
#include "daemon/queue/access.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue-file.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/store.h"
#include "daemon/server/server.h"
#include "daemon/server/worker.h"
#include "daemon/util/group.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"
#include "tests/sim/inside.h"

#define check(condition) \
	do { \
		if (!(condition)) \
			sim_fail("%s:%d: not so: %s", __FILE__, __LINE__, \
				 #condition); \
	} while (0)

#define LIST_MOST	1000000

/* Time goes on by 200 ms at most where a turn would be possible, and now and then a few
 * times. CLOCK_REALTIME is set by up to 4 s: a timer that becomes due so is not late.
 */
#define LATE_MOST_NS	(2 * SIM_S)

struct shared *inside_shared;

static uint32_t list_length(const struct list *list)
{
	const struct list *entry;
	uint32_t nr = 0;

	check(list->next && list->prev);
	for (entry = list->next; entry != list; entry = entry->next) {
		check(entry->next->prev == entry);
		check(entry->prev->next == entry);
		/* A corrupt list may have no end. */
		check(++nr < LIST_MOST);
	}
	return nr;
}

/* Buffers of each kind that clients and queues of a thread hold. */
struct holdings {
	uint32_t ring;
	uint32_t spare;
	uint64_t private;
};

static uint32_t count_buffers(const struct buffer_queue *queue,
			      struct holdings *sum, uint64_t *lenp)
{
	const struct buffer *buffer;
	uint32_t nr = 0;

	for (buffer = queue->first; buffer; buffer = buffer->next) {
		check(buffer->head <= buffer->tail);
		check(buffer->tail <= buffer->data + buffer->size);
		check(buffer->head >= buffer->data - BUFFER_HEADROOM);
		if (buffer->next)
			check(buffer != queue->last);
		else
			check(buffer == queue->last);
		sum->ring += buffer->kind == BUFFER_RING;
		sum->spare += buffer->kind == BUFFER_SPARE;
		*lenp += buffer->tail - buffer->head;
		nr++;
	}
	sum->private += buffer_queue_private(queue);
	return nr;
}

/* Checks that a client is blocked only because its socket took a part. The socket's
 * note is of no more use once the daemon knows of each send, and has not blocked.
 */
static void check_blocked(const struct client *client)
{
	struct stream *stream = stream_of(client->fd);

	if (client->blocked)
		check(stream->was_short);
	else if (!client->sending)
		stream->was_short = false;
}

/* Returns the rights of a client to its queue. Its group is its user's number. */
static uint32_t rights(const struct client *client)
{
	const struct queue *queue = client->queue;
	uint32_t uid = stream_of(client->fd)->peer->uid;
	uint32_t bits = !uid ? 7 : uid == queue->user->uid ? queue->access >> 6 :
			queue->gid == uid ? queue->access >> 3 : queue->access;

	return client->observes ? bits & ACCESS_LOOK : bits & ACCESS_ALL;
}

static void check_client(const struct client *client, struct holdings *sum)
{
	uint64_t received = 0, replies = 0;

	check(count_buffers(&client->received, sum, &received) ==
	      client->nr_received);
	count_buffers(&client->replies, sum, &replies);
	check(replies == client->replies_len);
	check(client->carry_len < SIM_RECORD);
	if (client->busy || client->batch_done)
		check(client->received.first || client->state == CLIENT_DEAD);
	if (client->sending)
		check(client->ops);
	if (client->receiving)
		check(client->ops);
	check_blocked(client);
	if (client->state == CLIENT_DEAD) {
		check(client->ops || client->queue == NULL ||
		      client->queue->consumer != client);
		check(list_empty(&client->ready));
		check(list_empty(&client->writer));
	}
	if (client->queue && client->observes)
		check(client->queue->consumer != client);
	if (client->queue && client->state == CLIENT_OPEN)
		check(client->access == rights(client));
}

static void check_queue(const struct queue *queue)
{
	const struct context *context = queue->context;
	const struct client *consumer = queue->consumer;

	check(queue->credit <= context->config.credit_max);
	/* An engine that is at work may be ahead of the charge. */
	if (!sim.io) {
		check(!queue->pending);
		check(queue->charged == queue->engine_queue->timers);
	}
	check(list_length(&queue->observers) == queue->nr_observers);
	check(queue->nr_observers <= context->config.observers_per_queue);
	if (!consumer) {
		check(!queue->credit && !queue->rewinding && !queue->waiting);
		return;
	}
	check(consumer->queue == queue);
	check(consumer->state != CLIENT_DEAD);
	check(queue->clients);
}

static void check_clients(const struct context *context, struct holdings *sum)
{
	const struct list *lists[] = { &context->connections->clients,
				       &context->connections->dead };
	const struct list *entry;
	uint64_t connections = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		connections += list_length(lists[i]);
		for (entry = lists[i]->next; entry != lists[i];
		     entry = entry->next)
			check_client(container_of(entry, struct client, all),
				     sum);
	}
	check(connections == context->connections->pool.nr);
	list_length(&context->connections->ready);
	list_length(&context->connections->ready_small);
	list_length(&context->connections->no_spare);
	list_length(&context->connections->writers);
	list_length(&context->connections->no_memory);
	list_length(&context->connections->sent);
	list_length(&context->connections->starved);
	list_length(&context->connections->blocked_lru);
	list_length(&context->queues->due);
	list_length(&context->queues->no_spare);
}

static void check_queues(const struct context *context, struct holdings *sum)
{
	const struct queues *queues = context->queues;
	const struct list *bucket, *entry;
	const struct queue *queue;
	uint32_t i;

	for (i = 0; i <= queues->mask + 1; i++) {
		bucket = &queues->buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			queue = container_of(entry, struct queue, all);
			check_queue(queue);
			sum->spare += queue->reading && queue->read_buffer;
		}
	}
}

static void check_users(const struct context *context)
{
	const struct list *bucket, *entry;
	const struct user *user;
	uint64_t connections = 0;
	size_t i;

	for (i = 0; i < USERS_BUCKETS; i++) {
		bucket = &context->users.buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			user = container_of(entry, struct user, all);
			check(list_length(&user->queues) == user->nr_queues);
			check(share_read(&user->account->connections) >=
			      user->connections);
			connections += user->connections;
		}
	}
	check(connections == context->connections->pool.nr);
}

/* The charges of users are the sums of what they have, in all threads. */
static void check_accounts(void)
{
	uint64_t charged = 0, queues = 0;
	const struct list *bucket, *entry;
	uint32_t i, j;

	for (i = 0; i < inside_shared->nr; i++) {
		const struct context *context = inside_shared->contexts[i];

		if (!context || !context->queues->buckets)
			return;
		for (j = 0; j <= context->queues->mask + 1; j++) {
			bucket = &context->queues->buckets[j];
			for (entry = bucket->next; entry != bucket;
			     entry = entry->next)
				charged += container_of(entry, struct queue,
							all)->charged;
		}
		queues += context->queues->pool.nr;
	}
	check(accounts_timers(&inside_shared->accounts) == charged);
	check(share_read(&inside_shared->queues) == queues);
}

static void check_buffers(const struct context *context,
			  const struct holdings *sum)
{
	const struct buffers *buffers = &context->buffers;
	const struct buffer *buffer;
	uint32_t spare = sum->spare;

	for (buffer = buffers->spare; buffer; buffer = buffer->next) {
		check(buffer->kind == BUFFER_SPARE);
		check(++spare <= buffers->nr_spare);
	}
	check(counter_read(&buffers->private_size) == sum->private);
	check(buffers->nr_in_flight <= buffers->nr_ring);
	check(buffers->nr_free + sum->ring == buffers->nr_ring);
	check(ring_nr_buffers(&context->loop.ring) + buffers->returned +
		      ring_nr_unseen(&context->loop.ring) ==
	      buffers->nr_free);
	/* A removed queue that is still read has one, too. */
	if (!sim.io)
		check(spare == buffers->nr_spare);
}

void inside_check(struct io_uring *ring)
{
	const struct context *context =
		container_of(ring, struct context, loop.ring);
	struct holdings sum = { 0 };

	if (sim.phase == SIM_START || sim.phase == SIM_STOP)
		return;
	inside_shared = context->shared;
	check_clients(context, &sum);
	check_queues(context, &sum);
	check_users(context);
	check_buffers(context, &sum);
	check_accounts();
	check(counter_read(&context->stat.lateness_max_ns) < LATE_MOST_NS);
}

bool inside_has_buffer(const struct io_uring *ring)
{
	return container_of(ring, struct context, loop.ring)->buffers.nr_free;
}

/* Returns the daemon's client of a connection, NULL = it has none. */
static const struct client *client_of(const struct peer *peer)
{
	const struct list *all, *entry;
	uint32_t i;

	for (i = 0; i < inside_shared->nr; i++) {
		all = &inside_shared->contexts[i]->connections->clients;
		for (entry = all->next; entry != all; entry = entry->next) {
			const struct client *client =
				container_of(entry, struct client, all);

			if (stream_of(client->fd)->peer == peer)
				return client;
		}
	}
	return NULL;
}

bool inside_is_blocked(const struct peer *peer)
{
	const struct client *client = inside_shared ? client_of(peer) : NULL;

	return client && client->blocked;
}

void inside_check_victim(const struct peer *peer)
{
	const struct client *client, *victim = client_of(peer);
	const struct list *all, *entry;

	if (!victim)
		return;
	check(victim->blocked);
	/* A send that has completed is news that the daemon has not yet seen. */
	if (victim->sending && !rings_use(victim->fd, true))
		return;
	all = &victim->context->connections->clients;
	for (entry = all->next; entry != all; entry = entry->next) {
		client = container_of(entry, struct client, all);
		if (client->blocked && client != victim &&
		    stream_of(client->fd)->moved < stream_of(victim->fd)->moved)
			sim_fail("client %u is ended for memory, and client %u has read nothing for longer",
				 peer->number,
				 stream_of(client->fd)->peer->number);
	}
}

void inside_check_status(uint64_t queues, uint64_t clients)
{
	if (!inside_shared)
		return;
	check(queues == share_read(&inside_shared->queues));
	check(clients == share_read(&inside_shared->connections));
}

static uint32_t count_kept(const struct context *context)
{
	const struct list *bucket, *entry;
	const struct queue *queue;
	uint32_t i, nr = 0;
	char name[STORE_NAME];

	for (i = 0; i <= context->queues->mask; i++) {
		bucket = &context->queues->buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			queue = container_of(entry, struct queue, all);
			check(!queue->store_pending);
			store_name(name, queue);
			/* The limits are far beyond. */
			if (!queue->stored || !manager_has(name))
				sim_fail("queue %s is not kept", name);
			nr++;
		}
	}
	return nr;
}

void inside_check_kept(uint32_t nr)
{
	uint32_t i, sum = 0;

	if (!inside_shared)
		return;
	for (i = 0; i < inside_shared->nr; i++)
		sum += count_kept(inside_shared->contexts[i]);
	check(sum == inside_shared->store->stored);
	check(!inside_shared->store->store_pending);
	if (nr)
		check(sum <= nr);
}

static void check_declared(const struct queue *queue)
{
	const struct declaration *file = declared_find(queue->name);

	if (!queue->declared) {
		/* A client made it of another kind, before it had a file. */
		check(!file || !file->is_good ||
		      queue->clock_id != file->clock_id ||
		      queue->mode != file->mode);
		check(queue->gid == GROUP_NONE);
		check(queue->access == ACCESS_OWNER_ALL);
		return;
	}
	check(file);
	/* A file with a fault changes nothing. */
	if (!file->is_good)
		return;
	check(queue->gid == file->gid);
	check(queue->access == file->access);
	check(queue->user->uid == file->uid);
	check(queue->clock_id == file->clock_id);
	check(queue->mode == file->mode);
}

static void check_all_declared(const struct context *context)
{
	const struct list *bucket, *entry;
	uint32_t i;

	check(context->declared == context->shared->declared);
	for (i = 0; i <= context->queues->mask; i++) {
		bucket = &context->queues->buckets[i];
		for (entry = bucket->next; entry != bucket; entry = entry->next)
			check_declared(container_of(entry, struct queue, all));
	}
}

void inside_check_declared(void)
{
	uint32_t i;

	/* Without memory the old files stay, and an owner may. */
	if (!inside_shared || sim.has_failed || sim.busy_manager)
		return;
	for (i = 0; i < inside_shared->nr; i++)
		check_all_declared(inside_shared->contexts[i]);
}

uid_t inside_owner(const void *owner)
{
	return ((const struct queue *)owner)->user->uid;
}

void inside_check_empty(void)
{
	const struct server *server;
	const struct list *bucket, *entry;
	uint32_t i;

	if (!inside_shared)
		return;
	server = container_of(inside_shared, struct server, shared);
	check(!share_read(&inside_shared->connections));
	for (i = 0; i < inside_shared->nr; i++) {
		const struct context *context = inside_shared->contexts[i];

		check(list_empty(&context->connections->clients));
		check(list_empty(&context->connections->dead));
		check(!counter_read(&context->buffers.private_size));
		check(!context->buffers.nr_in_flight);
		check(context->buffers.nr_free == context->buffers.nr_ring);
	}
	check(list_empty(&server->handshakes.all));
	check(!server->handshakes.pool.nr);
	for (i = 0; i < ACCOUNTS_BUCKETS; i++) {
		bucket = &inside_shared->accounts.buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next)
			check(!share_read(&container_of(entry, struct account,
							all)->connections));
	}
}

struct peer *inside_consumer(const void *owner)
{
	const struct queue *queue = owner;

	return queue && queue->consumer ?
	       stream_of(queue->consumer->fd)->peer : NULL;
}

void inside_check_overdue(const struct engine_io *io)
{
	const struct client *client = container_of(io, struct client, batch);
	struct context *context = client->context;
	uint64_t received_ns = client->received.first->received_ns;
	uint64_t after_ns = context->config.busy_after * SIM_MS;
	uint32_t i;
	uint8_t op;

	if (!after_ns || !received_ns ||
	    loop_now(&context->loop, CLOCK_MONOTONIC) - received_ns <= after_ns)
		return;
	for (i = 0; i < io->count; i++) {
		op = io->records[i].op;
		check(op != EXPIRY_OP_ARM && op != EXPIRY_OP_REFRESH &&
		      op != EXPIRY_OP_QUERY);
	}
}

struct peer *inside_asker(const struct engine_io *io)
{
	const struct client *client = container_of(io, struct client, batch);

	return stream_of(client->fd)->peer;
}

void inside_copy(const void *owner, const struct expiry_record *records,
		 uint32_t nr)
{
	const struct queue *queue = owner;
	const struct list *entry;

	for (entry = queue->observers.next; entry != &queue->observers;
	     entry = entry->next)
		peer_expect(stream_of(container_of(entry, struct client,
						   observer)->fd)->peer,
			    records, nr);
}

bool inside_is_removed(const void *owner)
{
	const struct queue *queue = owner;

	return queue && (!queue->user || queue->dying);
}

bool inside_lacks_buffers(void)
{
	uint32_t i;

	for (i = 0; inside_shared && i < inside_shared->nr; i++)
		if (!inside_shared->contexts[i]->buffers.nr_free ||
		    !inside_shared->contexts[i]->buffers.spare)
			return true;
	return false;
}

const char *inside_name(const void *owner)
{
	const struct queue *queue = owner;

	return queue ? queue->name : "(new)";
}
