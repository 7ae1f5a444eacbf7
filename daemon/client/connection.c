// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/input.h"
#include "daemon/client/output.h"
#include "daemon/queue/context.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/queue.h"
#include "daemon/util/histogram.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

/* Buffers that may wait to be processed before receiving stops. */
#define RECEIVED_MAX	2

/* Clients with at most this many pending records run first. */
#define READY_SMALL	64

static void client_received(struct loop_op *op, int result, uint32_t flags);
static void client_sent(struct loop_op *op, int result, uint32_t flags);
static bool client_continue(struct client *client);

/* -------------------------------------------------------------- life, death */

void connections_init(struct connections *connections, struct context *context,
		      const struct connection_ops *ops, uint64_t nr_max)
{
	connections->context = context;
	connections->ops = ops;
	pool_init(&connections->pool, sizeof(struct client), nr_max);
	list_init(&connections->clients);
	list_init(&connections->ready);
	list_init(&connections->ready_small);
	list_init(&connections->no_spare);
	list_init(&connections->no_journal);
	list_init(&connections->writers);
	list_init(&connections->no_memory);
	list_init(&connections->sent);
	list_init(&connections->starved);
	list_init(&connections->blocked_lru);
	list_init(&connections->held);
	list_init(&connections->dead);
}

/* Makes the buffer of HELLO, as if it had been received with the next bytes. */
static struct buffer *client_hello_buffer(struct buffers *buffers,
					  const struct connection_start *start)
{
	struct buffer *buffer = buffer_spare(buffers);

	/* A turn may have more new clients than spare buffers. */
	if (!buffer)
		buffer = buffer_private(buffers, sizeof(start->hello));
	if (!buffer)
		return NULL;
	memcpy(buffer->tail, &start->hello, sizeof(start->hello));
	buffer->tail += sizeof(start->hello);
	buffer->received_ns = start->received_ns;
	return buffer;
}

struct client *client_new(struct connections *connections,
			  const struct connection_start *start)
{
	struct context *context = connections->context;
	struct client *client = pool_get(&connections->pool);
	struct buffer *hello = NULL;

	if (client)
		hello = client_hello_buffer(&context->buffers, start);
	if (!hello) {
		pool_put(&connections->pool, client);
		return NULL;
	}
	client->context = context;
	client->fd = start->fd;
	client->pid = start->pid;
	client->in_directory = start->in_directory;
	client->recv.done = client_received;
	client->send.done = client_sent;
	list_init(&client->ready);
	list_init(&client->writer);
	list_init(&client->sent);
	list_init(&client->starved);
	list_init(&client->blocked_lru);
	list_init(&client->held);
	list_init(&client->parked);
	list_init(&client->observer);
	list_init(&client->all);
	list_add(&connections->clients, &client->all);
	buffer_push(&client->received, hello);
	client->nr_received++;
	return client;
}

static void client_free(struct client *client)
{
	struct context *context = client->context;
	struct connections *connections = context->connections;

	buffer_put_all(&context->buffers, &client->received);
	buffer_put_all(&context->buffers, &client->replies);
	list_del(&client->all);
	close(client->fd);
	connections->ops->freed(client);
	pool_put(&connections->pool, client);
}

/* Ends a client: it is not served any more. Its role as a consumer is free at
 * once. The rest is freed at the end of the turn of its last completion: the
 * kernel may still use its memory, and callers may hold a pointer to it.
 */
static void client_end(struct client *client)
{
	struct context *context = client->context;

	if (client->state == CLIENT_DEAD)
		return;
	client->state = CLIENT_DEAD;
	client->context->connections->ops->ended(client);
	list_del(&client->ready);
	list_del(&client->writer);
	list_del(&client->starved);
	list_del(&client->blocked_lru);
	list_del(&client->held);
	list_del(&client->all);
	list_add(&context->connections->dead, &client->all);
	if (client->ops)
		shutdown(client->fd, SHUT_RDWR);
}

struct log_about client_about(const struct client *client, const char *id,
			      int error)
{
	return (struct log_about) {
		.id = id,
		.queue = client->queue && client->queue->name[0] ?
				 client->queue->name :
				 NULL,
		.peer = true,
		.uid = client->user->uid,
		.pid = client->pid,
		.error = error,
	};
}

void client_leave(struct client *client, const char *why, int error)
{
	struct log_about ended = client_about(client, LOG_CLIENT_ENDED, error);

	if (why)
		log_peer(&ended, "client of pid %d, uid %u ended: %s",
			 (int)client->pid, (unsigned int)client->user->uid,
			 why);
	client->state = CLIENT_LEAVING;
	client->context->connections->ops->ended(client);
}

void client_fail(struct client *client, const char *why, int error)
{
	struct log_about ended;

	if (client->state == CLIENT_DEAD)
		return;
	ended = client_about(client, LOG_CLIENT_ENDED, error);
	log_peer(&ended, "client of pid %d, uid %u ended: %s%s%s",
		 (int)client->pid, (unsigned int)client->user->uid, why,
		 error ? ": " : "", error ? strerror(error) : "");
	client_end(client);
}

void clients_deinit(struct connections *connections)
{
	list_splice(&connections->dead, &connections->clients);
	while (!list_empty(&connections->dead))
		client_free(container_of(connections->dead.next, struct client,
					 all));
}

/* --------------------------------------------------------------- receiving */

static void client_receive(struct client *client)
{
	struct io_uring_sqe *sqe =
		loop_sqe(&client->context->loop, &client->recv);

	assert(!client->receiving && !client->eof);
	if (client->recv_once || !client->context->connections->multishot) {
		io_uring_prep_recv(sqe, client->fd, NULL,
				   client->context->buffers.size, 0);
	} else {
		io_uring_prep_recv_multishot(sqe, client->fd, NULL, 0, 0);
	}
	/* Poll first: most often the socket is still empty. */
	if (!client->more)
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = LOOP_BUFFERS;
	client->receiving = true;
	client->recv_ending = false;
	client->ops++;
}

static void client_received(struct loop_op *op, int result, uint32_t flags)
{
	struct client *client = container_of(op, struct client, recv);
	struct context *context = client->context;
	struct buffer *buffer = NULL;

	if (!(flags & IORING_CQE_F_MORE)) {
		assert(client->receiving && client->ops);
		client->receiving = false;
		client->ops--;
	}
	if (flags & IORING_CQE_F_BUFFER)
		buffer = buffer_received(&context->buffers, flags,
					 result > 0 ? result : 0);
	if (result <= 0 || client->state >= CLIENT_LEAVING) {
		buffer_put(&context->buffers, buffer);
		buffer = NULL;
	}
	if (client->state == CLIENT_DEAD)
		return;

	if (buffer) {
		buffer->received_ns = loop_now(&context->loop, CLOCK_MONOTONIC);
		buffer_push(&client->received, buffer);
		client->nr_received++;
		input_bound(client);
		client->more = (uint32_t)result == context->buffers.size;
		if (!client->receiving && client->recv_once && !client->more)
			client->recv_once = false;
	} else if (!result) {
		client->eof = true;
	} else if (result == -ENOBUFS) {
		client->no_buffer = true;
		client->more = true;
		list_del(&client->starved);
		list_add(&context->connections->starved, &client->starved);
	} else if (result < 0 && result != -ECANCELED && result != -EINTR &&
		   result != -EAGAIN) {
		/* The peer closed the connection; that is not an error. */
		client_end(client);
		return;
	}
	/* Its queue delivers no more than before. */
	client_continue(client);
}

/* ----------------------------------------------------------------- sending */

void client_send(struct client *client, struct buffer *buffer)
{
	if (client->state == CLIENT_DEAD)
		buffer_put(&client->context->buffers, buffer);
	else if (!output_push(client, buffer))
		client_fail(client, "no memory for records it does not read",
			    0);
}

static void client_sent(struct loop_op *op, int result, uint32_t flags)
{
	struct client *client = container_of(op, struct client, send);
	bool all;

	(void)flags;
	assert(client->sending && client->ops);
	client->ops--;
	client->sending = false;
	list_del(&client->sent);
	if (client->state == CLIENT_DEAD)
		return;
	if (result == -EAGAIN || result == -EINTR)
		result = 0;
	if (result < 0) {
		client_end(client);
		return;
	}
	all = output_written(client, result);
	/* The next expirations of a plain queue follow when the socket has the last ones.
	 * What the consumer was answered since does not matter.
	 */
	if (client_consumes(client))
		client->queue->unsent -= min_u64(client->queue->unsent, result);
	if (result)
		list_del(&client->blocked_lru);
	if (!client->replies.first) {
		client->blocked = false;
	} else if (!client->blocked && !all) {
		if (!output_block(client))
			client_fail(client,
				    "no memory for records it does not read",
				    0);
	} else if (client->blocked && result) {
		list_add(&client->context->connections->blocked_lru,
			 &client->blocked_lru);
	}
	if (client->missed)
		client->context->connections->ops->copies_missed(client);
	if (client->replies.first)
		output_schedule(client);
	client_update(client);
}

void clients_sent(struct connections *connections)
{
	struct list *entry;

	while ((entry = list_pop(&connections->sent))) {
		struct client *client =
			container_of(entry, struct client, sent);

		client_sent(&client->send, client->send_len, 0);
	}
}

/* ------------------------------------------------------- what to do with it */

static struct list *client_list(struct client *client)
{
	struct buffer *buffer = client->received.first;

	return buffer->tail - buffer->head <=
			       READY_SMALL *
				       (ptrdiff_t)sizeof(struct expiry_record) ?
		       &client->context->connections->ready_small :
		       &client->context->connections->ready;
}

/* Receives, processes or ends. Returns whether the client is served further. */
static bool client_continue(struct client *client)
{
	struct context *context = client->context;

	if (client->state == CLIENT_DEAD)
		return false;
	if (client->state == CLIENT_LEAVING && !client->busy) {
		buffer_put_all(&context->buffers, &client->received);
		client->nr_received = 0;
		if (!client->replies.first || client->blocked)
			client_end(client);
		return false;
	}
	if (client->blocked && client_full(client) && !input_detach(client)) {
		client_fail(client, "no memory for its requests", 0);
		return false;
	}

	if (client->receiving && !client->recv_ending &&
	    (client_full(client) || client->nr_received >= RECEIVED_MAX)) {
		client->recv_once = true;
		client->recv_ending = true;
		loop_cancel(&context->loop, &client->recv);
	}

	if (client->batch_done ||
	    (client->received.first && !client->busy && !client_full(client))) {
		if (list_empty(&client->ready))
			list_add(client_list(client), &client->ready);
	} else if (client->eof && !client->received.first &&
		   !client->replies.first && !client->busy) {
		if (client->carry_len) {
			counter_add(&context->stat.closed_protocol, 1);
			client_fail(client, "its stream ended inside a record",
				    0);
		}
		client_end(client);
		return false;
	}

	if (!client->receiving && !client->eof && !client->no_buffer &&
	    !client->received.first && !client_full(client))
		client_receive(client);
	return true;
}

void client_update(struct client *client)
{
	if (client_continue(client) && client_consumes(client))
		client->context->connections->ops->consumer_changed(client);
}

static uint64_t client_private(const struct client *client)
{
	return buffer_queue_private(&client->received) +
	       buffer_queue_private(&client->replies);
}

/* Ends blocked clients when their memory exceeds this thread's part of the
 * limit: those that have read nothing for the longest time, until the rest is
 * within it. Their memory is freed with their last completion.
 */
void clients_bound(struct connections *connections)
{
	struct context *context = connections->context;
	uint64_t size = counter_read(&context->buffers.private_size);
	uint64_t most = context_backlog_max(context) / context->shared->nr;
	struct list *entry;

	if (size <= most)
		return;
	for (entry = connections->dead.next; entry != &connections->dead;
	     entry = entry->next)
		size -= client_private(container_of(entry, struct client, all));
	while (size > most && (entry = list_pop(&connections->blocked_lru))) {
		struct client *client =
			container_of(entry, struct client, blocked_lru);

		size -= client_private(client);
		counter_add(&context->stat.closed_backlog, 1);
		client_fail(client,
			    "it does not read, and others need the memory",
			    ENOBUFS);
	}
}

/* Tries to tell observers again what they missed. */
static void clients_tell_missed(struct connections *connections)
{
	struct list now, *entry;

	list_init(&now);
	list_splice(&now, &connections->no_memory);
	while ((entry = list_pop(&now))) {
		struct client *client =
			container_of(entry, struct client, writer);

		connections->ops->copies_missed(client);
		/* A reply may have come meanwhile. */
		if (client->replies.first)
			output_schedule(client);
	}
}

void clients_refuse(struct connections *connections, int error)
{
	struct list *entry, *next;

	for (entry = connections->clients.next; entry != &connections->clients;
	     entry = next) {
		struct client *client = container_of(entry, struct client, all);

		next = entry->next;
		if (!client->durable || client->state == CLIENT_DEAD)
			continue;
		if (!output_refuse(client, error)) {
			client_fail(client,
				    "what it was answered cannot be made durable",
				    -error);
		} else if (output_refuse_hello(client, error) &&
			   client->state == CLIENT_OPEN) {
			client_leave(client, "its queue cannot be made durable",
				     -error);
			client_update(client);
		}
	}
	outputs_release(connections);
}

void clients_turn(struct connections *connections)
{
	uint32_t buffers = connections->context->buffers.nr_free;
	struct list *entry;

	if (!list_empty(&connections->no_memory))
		clients_tell_missed(connections);

	if (counter_read(&connections->context->buffers.private_size))
		clients_bound(connections);
	outputs_write(connections);

	/* First come, first served, while there are buffers. */
	while (buffers && (entry = list_pop(&connections->starved))) {
		struct client *client =
			container_of(entry, struct client, starved);

		client->no_buffer = false;
		client_update(client);
		/* It may have to finish other buffers first. */
		if (client->receiving)
			buffers--;
	}

	for (entry = connections->dead.next; entry != &connections->dead;) {
		struct client *client = container_of(entry, struct client, all);

		entry = entry->next;
		if (client->ops)
			continue;
		assert(list_empty(&client->ready) &&
		       list_empty(&client->writer) &&
		       list_empty(&client->sent) &&
		       list_empty(&client->starved) &&
		       list_empty(&client->blocked_lru) &&
		       list_empty(&client->held) &&
		       list_empty(&client->parked));
		client_free(client);
	}
}
