// SPDX-License-Identifier: LGPL-2.1-or-later
/* The output of a client: its replies, until its socket has taken them. */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/client/client.h"
#include "daemon/client/output.h"
#include "daemon/loop/buffer.h"
#include "daemon/loop/loop.h"
#include "daemon/queue/context.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/util/histogram.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

/* Least size of the memory in which a blocked client's replies are gathered. */
#define BACKLOG_MIN	4096

void output_schedule(struct client *client)
{
	if (list_empty(&client->writer))
		list_add(&client->context->connections->writers,
			 &client->writer);
}

static void append(struct client *client, struct buffer *buffer)
{
	buffer->reply = NULL;
	buffer->reply_tail = NULL;
	buffer_push(&client->replies, buffer);
	client->replies_len += buffer->tail - buffer->head;
	output_schedule(client);
}

static void hold(const struct client *client, struct buffer *buffer)
{
	if (client->durable)
		durable_hold(client->context, client->queue, buffer);
}

/* Returns the last buffer if it has room for @len bytes, or a new one; NULL: there is no
 * memory. If the journal fails, replies that wait for it are refused by the buffer: other
 * records are not added to them. A blocked client ends then.
 */
static struct buffer *last_with_room(struct client *client, size_t len,
				     enum buffer_content content)
{
	struct buffer *buffer = client->replies.first ? client->replies.last :
							NULL;
	/* Copies for observers must not take the shared buffers, nor what waits for the
	 * journal the last ones. The reply to STAT does not fit into the smallest ones.
	 */
	bool private = client->blocked || client->observes ||
		       len > client->context->buffers.size ||
		       (client->durable && client_leaves_shared(client, BUFFER_SPARE));
	bool mixes = client->blocked || !client->durable;

	if (!buffer || (!mixes && buffer->content != content) ||
	    buffer->kind != (private ? BUFFER_PRIVATE : BUFFER_SPARE) ||
	    (client->sending && buffer == client->sending_last) ||
	    (size_t)(buffer->data + buffer->size - buffer->tail) < len) {
		if (private)
			buffer = buffer_private(&client->context->buffers,
						len < BACKLOG_MIN ?
							BACKLOG_MIN :
							len);
		else
			buffer = buffer_spare(&client->context->buffers);
		if (!buffer)
			return NULL;
		append(client, buffer);
		buffer->content = content == BUFFER_ROWS ? BUFFER_MIXED :
							   content;
	} else if (buffer->content != BUFFER_OTHER || content != BUFFER_OTHER) {
		buffer->content = BUFFER_MIXED;
	}
	assert(!client->sending || buffer != client->sending_last);
	assert((size_t)(buffer->data + buffer->size - buffer->tail) >= len);
	return buffer;
}

/* Returns room for @len bytes at the end of the buffer. */
static void *extend(struct client *client, struct buffer *buffer, size_t len)
{
	void *room = buffer->tail;

	buffer->tail += len;
	client->replies_len += len;
	return room;
}

void *output_room(struct client *client, size_t len)
{
	struct buffer *buffer = last_with_room(client, len, BUFFER_OTHER);

	if (!buffer)
		return NULL;
	hold(client, buffer);
	return extend(client, buffer, len);
}

/* Copies a buffer to a blocked client's own memory, where many small replies cost
 * only their size, and frees it. The copy waits for the same block of the journal, and
 * may not wait for a later one: while the journal fails there is none. Returns false if
 * there is no memory.
 */
static bool gather(struct client *client, struct buffer *buffer)
{
	size_t len = buffer->tail - buffer->head;
	struct buffer *own = last_with_room(client, len, buffer->content);

	if (own) {
		if (own->commit < buffer->commit)
			own->commit = buffer->commit;
		memcpy(extend(client, own, len), buffer->head, len);
	}
	buffer_put(&client->context->buffers, buffer);
	return own;
}

/* Returns the buffer, or a private copy if it may wait for the journal and few shared
 * ones are left: clients of other queues must not wait for the disk with it.
 */
static struct buffer *move_to_private(struct client *client,
				      struct buffer *buffer)
{
	if (!client->durable || !client_leaves_shared(client, buffer->kind) ||
	    (!client->replies.first &&
	     buffer->commit <= durable_acked(client->context)))
		return buffer;
	return buffer_detach(&client->context->buffers, buffer) ?: buffer;
}

bool output_push(struct client *client, struct buffer *buffer)
{
	hold(client, buffer);
	if (client->blocked)
		return gather(client, buffer);
	append(client, move_to_private(client, buffer));
	return true;
}

/* Counts the time of its requests until their answers went to the kernel, in an
 * earlier turn.
 */
static void output_count(struct client *client, struct buffer *buffer)
{
	struct context *context = client->context;

	if (!buffer->received_ns)
		return;
	histogram_add(&context->request_ns,
		      context->connections->written_ns - buffer->received_ns);
	buffer->received_ns = 0;
}

bool output_block(struct client *client)
{
	struct buffer_queue old = client->replies;
	struct buffer *buffer;
	bool all = true;

	assert(!client->sending && !client->blocked);
	client->blocked = true;
	list_add(&client->context->connections->blocked_lru,
		 &client->blocked_lru);
	client->replies.first = NULL;
	client->replies_len = 0;
	while ((buffer = buffer_pop(&old))) {
		output_count(client, buffer);
		if (all)
			all = gather(client, buffer);
		else
			buffer_put(&client->context->buffers, buffer);
	}
	return all;
}

static bool output_is_awaited(const struct client *client)
{
	return client_consumes(client) && queue_continues(client->queue);
}

/* Sends all that is pending, in one piece. At first only what the socket takes
 * at once, since the memory is shared; a blocked client's is its own and waits.
 *
 * A send that does not wait is complete when it has been submitted. So with
 * MSG_WAITALL and success skipped (a short send posts a CQE), the daemon need
 * not wake up for it. The exception is a client with work to do as soon as it
 * is sent.
 */
static void output_write(struct client *client)
{
	int flags = MSG_NOSIGNAL | (client->blocked ? 0 : MSG_DONTWAIT);
	bool skip_success = client->context->connections->skip_success &&
			    !client->blocked && client->state <= CLIENT_OPEN &&
			    !client->eof && !client_full(client) &&
			    !client->missed && !output_is_awaited(client);
	struct buffer *buffer = client->replies.first;
	struct io_uring_sqe *sqe;
	uint64_t acked = 0;
	size_t n = 0;

	if (client->sending || !buffer || client->state == CLIENT_DEAD)
		return;
	if (client->durable) {
		acked = durable_acked(client->context);
		if (buffer->commit > acked) {
			list_del(&client->held);
			list_add(&client->context->connections->held,
				 &client->held);
			return;
		}
	}
	sqe = loop_sqe(&client->context->loop, &client->send);
	client->send_len = 0;
	for (; buffer && n < CLIENT_IOVECS && buffer->commit <= acked;
	     buffer = buffer->next) {
		client->iov[n].iov_base = buffer->head;
		client->iov[n].iov_len = buffer->tail - buffer->head;
		client->send_len += buffer->tail - buffer->head;
		client->sending_last = buffer;
		n++;
	}
	skip_success = skip_success && !buffer;
	if (skip_success)
		flags |= MSG_WAITALL;
	if (n == 1) {
		io_uring_prep_send(sqe, client->fd, client->iov[0].iov_base,
				   client->iov[0].iov_len, flags);
	} else {
		client->msg.msg_iov = client->iov;
		client->msg.msg_iovlen = n;
		io_uring_prep_sendmsg(sqe, client->fd, &client->msg, flags);
	}
	if (skip_success) {
		sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
		list_add(&client->context->connections->sent, &client->sent);
	}
	client->sending = true;
	client->ops++;
}

bool output_written(struct client *client, uint32_t len)
{
	struct buffer *buffer;

	assert(len <= client->replies_len);
	client->replies_len -= len;
	while ((buffer = client->replies.first)) {
		uint32_t left = buffer->tail - buffer->head;
		bool last = buffer == client->sending_last;

		if (len < left) {
			buffer->head += len;
			return false;
		}
		len -= left;
		output_count(client, buffer);
		buffer_put(&client->context->buffers,
			   buffer_pop(&client->replies));
		if (last)
			return true;
	}
	return true;
}

void outputs_release(struct connections *connections)
{
	struct list *entry;

	while ((entry = list_pop(&connections->held)))
		output_schedule(container_of(entry, struct client, held));
}

/* Answers the requests of a buffer that is not durable with @error, and lets it be
 * sent. Returns false if they are among other records.
 */
static bool refuse_buffer(struct client *client, struct buffer *buffer,
			  int error)
{
	uint64_t len = buffer->tail - buffer->head;

	if (buffer->content == BUFFER_MIXED)
		return false;
	durable_refuse(client->context, client->queue, buffer, error);
	client->replies_len -= len - (buffer->tail - buffer->head);
	buffer->commit = 0;
	return true;
}

bool output_refuse(struct client *client, int error)
{
	uint64_t acked = durable_acked(client->context);
	struct buffer *buffer;

	for (buffer = client->replies.first; buffer; buffer = buffer->next)
		if (buffer->commit > acked &&
		    !refuse_buffer(client, buffer, error))
			return false;
	return true;
}

bool output_refuse_hello(struct client *client, int error)
{
	struct buffer *first = client->replies.first, *rest;
	struct expiry_record *reply;

	if (!first || client->sending || first->content != BUFFER_REPLIES ||
	    !client->queue || !durable_may_attach(client->queue))
		return false;
	reply = (void *)first->head;
	if (reply->op != EXPIRY_OP_HELLO || reply->status)
		return false;
	reply->status = error;
	reply->id = 0;
	reply->deadline_ns = 0;
	reply->cookie = 0;
	/* Nothing follows it. */
	client->replies_len -= first->tail - (char *)(reply + 1);
	first->tail = (char *)(reply + 1);
	while ((rest = first->next)) {
		first->next = rest->next;
		client->replies_len -= rest->tail - rest->head;
		buffer_put(&client->context->buffers, rest);
	}
	client->replies.last = first;
	return true;
}

void outputs_write(struct connections *connections)
{
	struct list *entry;

	while ((entry = list_pop(&connections->writers)))
		output_write(container_of(entry, struct client, writer));
}
