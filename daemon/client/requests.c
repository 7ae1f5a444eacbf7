// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Requests: processing the records of a received buffer.
 *
 * Runs of records for the engine are passed to it in place, and become their
 * replies. The daemon's own requests (CREDIT, SCAN, STAT, DROP, QUEUES) are
 * carried out between them. The buffer's replies so far are [reply,
 * reply_tail), the unprocessed requests [head, tail). They share one memory:
 * replies move down only after a record without a reply.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/daemon-op.h"
#include "daemon/client/hello.h"
#include "daemon/client/input.h"
#include "daemon/client/listing.h"
#include "daemon/client/permission.h"
#include "daemon/client/reply.h"
#include "daemon/client/requests.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/access.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/util/histogram.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

/* Requests processed in one turn: a storm of them must not delay the
 * expirations.
 */
#define TURN_REQUESTS	1024

/* Of these, for clients with few requests: they run first, and leave the rest
 * to clients with many.
 */
#define TURN_REQUESTS_SMALL	768

#define RECORD	((uint32_t)sizeof(struct expiry_record))

/* Returns the age from which requests are overdue; 0 = they never are. */
static uint64_t overdue_after(const struct client *client)
{
	return client->context->config.busy_after * NSEC_PER_MSEC;
}

static uint64_t age(const struct client *client, const struct buffer *buffer)
{
	return loop_now(&client->context->loop, CLOCK_MONOTONIC) -
	       buffer->received_ns;
}

/* Returns whether the requests in @buffer are overdue: carrying them out would
 * only delay later ones as much. Requests of a client that does not read are in
 * private memory and have no time of arrival.
 */
static bool is_overdue(const struct client *client, const struct buffer *buffer)
{
	uint64_t after_ns = overdue_after(client);

	return after_ns && buffer->received_ns &&
	       age(client, buffer) > after_ns;
}

/* Requests that may be refused as overdue: the client can retry them. CANCEL,
 * ACK, CLEAR, CREDIT and DROP free resources and always run.
 */
static bool is_refusable(uint8_t op)
{
	return op == EXPIRY_OP_ARM || op == EXPIRY_OP_REFRESH ||
	       op == EXPIRY_OP_QUERY || op == EXPIRY_OP_SCAN ||
	       op == EXPIRY_OP_QUEUES;
}

/* -------------------------------------------------------------- the engine's */

/* Returns how many of the next records form one run for the engine. */
static uint32_t run_length(const struct client *client,
			   const struct buffer *buffer, bool overdue)
{
	const struct expiry_record *record = (const void *)buffer->head;
	uint32_t max = (buffer->tail - buffer->head) / RECORD, n;

	for (n = 0; n < max; n++)
		if (is_daemon_op(record[n].op) ||
		    !access_allows(client->access, record[n].op) ||
		    (overdue && is_refusable(record[n].op)))
			break;
	return n;
}

/* Completes a run after the engine, with its @result. */
static void run_done(struct client *client, int result)
{
	struct engine_io *batch = &client->batch;
	uint32_t i;

	/* If the queue is unusable, all records that were not done get the
	 * error.
	 */
	for (i = batch->progress; result < 0 && i < batch->count; i++)
		batch->records[i].status = result;
	if (client->durable && client->queue)
		durable_log(client->queue, batch->records, batch->count);
	reply_count(client->received.first, batch->count);
}

static void client_batch_done(struct engine_io *io, int result)
{
	struct client *client = container_of(io, struct client, batch);

	client_io_end(client);
	charge_complete(client->queue, client->batch_timers);
	assert(!client->batch_done);
	client->batch_result = result;
	client->batch_done = true;
	client_update(client);
}

/* Refuses a record without room for its timer: the first of @count. On a plain
 * queue it refuses all ARMs behind it, too, without checking the whole run for
 * each.
 */
static void refuse(struct client *client, struct buffer *buffer, uint32_t count)
{
	bool keyed = client->queue->mode & EXPIRY_MODE_KEYED;
	struct expiry_record *record = (void *)buffer->head;
	uint32_t nr = 0;

	do {
		record[nr++].status = -EDQUOT;
	} while (!keyed && nr < count && record[nr].op == EXPIRY_OP_ARM);
	counter_add(&client->context->stat.refused_timers, nr);
	reply_count(buffer, nr);
}

/* Puts the client aside until a commit is over, or the journal has room. */
static void await_journal(struct client *client)
{
	assert(list_empty(&client->ready));
	list_add(&client->context->connections->no_journal, &client->ready);
	client->awaits_journal = true;
}

/* Bounds a run of a durable queue to what the journal takes now, which it returns.
 * 0: the first records have been refused; -EAGAIN: none until a commit is over.
 */
static int admit_durable(struct client *client, struct buffer *buffer,
			 uint32_t count)
{
	struct expiry_record *record = (void *)buffer->head;
	uint32_t refused, i;
	int error;

	count = durable_admit(client->queue, record, count, &refused, &error);
	if (count)
		return count;
	for (i = 0; i < refused; i++)
		record[i].status = error;
	reply_count(buffer, refused);
	if (refused)
		return 0;
	await_journal(client);
	return -EAGAIN;
}

/* Passes records to the engine. One that answers later may do so out of order,
 * which the journal must not be: for a durable queue it answers now.
 */
static int submit(struct client *client, struct engine_io *batch)
{
	struct engine_queue *queue = client->queue->engine_queue;
	const struct engine_ops *ops = client->context->engine->ops;

	if (client->durable && ops->kind == EXPIRY_ENGINE_KERNEL)
		return ops->submit_now(queue, batch);
	return ops->submit(queue, batch);
}

/* Passes the next run to the engine, where it may be @busy for some time. Returns
 * false if it has to be tried again in another turn.
 */
static bool do_run(struct client *client, struct buffer *buffer, bool overdue)
{
	struct engine_io *batch = &client->batch;
	uint32_t count;
	int r;

	batch->records = (void *)buffer->head;
	batch->progress = 0;
	count = run_length(client, buffer, overdue);
	batch->count = count;
	if (!client->queue) {
		run_done(client, -ENOENT);
		return true;
	}
	if (client->durable) {
		r = admit_durable(client, buffer, count);
		if (r <= 0)
			return !r;
		count = r;
	}
	batch->count = charge_admit(client->queue, batch->records, count,
				    &client->batch_timers);
	if (!batch->count) {
		refuse(client, buffer, count);
		return true;
	}
	histogram_add(&client->context->batch, batch->count);
	batch->done = client_batch_done;
	r = submit(client, batch);
	if (r == -EINPROGRESS) {
		client_io_begin(client);
		return true;
	}
	charge_complete(client->queue, client->batch_timers);
	run_done(client, r);
	return true;
}

/* ------------------------------------------------------------------ overload */

/* Refuses the next request. Its own record becomes the answer, so there is
 * always room for it.
 */
static void refuse_busy(struct client *client, struct buffer *buffer)
{
	struct log_about busy = client_about(client, NULL, EBUSY);

	if (!client->overdue)
		log_peer(&busy,
			 "requests of pid %d, uid %u refused: they waited too long (busy_after is %llu ms)",
			 (int)client->pid, (unsigned int)client->user->uid,
			 (unsigned long long)client->context->config.busy_after);
	client->overdue = true;
	counter_add(&client->context->stat.refused_busy, 1);
	reply_status(buffer, -EBUSY);
}

/* ------------------------------------------------------------------- buffers */

/* Joins a record that arrived in two buffers. If the cut was at no multiple of
 * 8 bytes the rest is moved, so that records are aligned.
 */
static void join_split_record(struct client *client, struct buffer *buffer)
{
	uint32_t carry = client->carry_len;

	if (carry % 8) {
		memmove(buffer->head - RECORD + carry, buffer->head,
			buffer->tail - buffer->head);
		buffer->tail -= RECORD - carry;
		buffer->head -= RECORD;
		memcpy(buffer->head, client->carry, carry);
	} else if (carry) {
		buffer->head -= carry;
		memcpy(buffer->head, client->carry, carry);
	}
	client->carry_len = 0;
	buffer->reply = buffer->head;
	buffer->reply_tail = buffer->head;
}

/* Returns the first buffer for the engine, or a private copy if the engine has
 * its share of the ring's buffers; NULL: no memory.
 */
static struct buffer *buffer_for_io(struct client *client)
{
	struct buffers *buffers = &client->context->buffers;
	struct buffer *buffer = client->received.first, *copy;
	bool last = buffer == client->received.last;

	if (buffer->kind != BUFFER_RING ||
	    buffers->nr_in_flight + buffers_reserve(buffers) < buffers->nr_ring)
		return buffer;
	copy = buffer_detach(buffers, buffer);
	if (!copy)
		return NULL;
	copy->next = buffer->next;
	client->received.first = copy;
	if (last)
		client->received.last = copy;
	return copy;
}

static void client_send_replies(struct client *client, struct buffer *buffer)
{
	buffer->content = BUFFER_REPLIES;
	client_send(client, buffer);
}

/* Ends a processed buffer: sends it, or frees it if it has no reply. */
static void send_replies(struct client *client, struct buffer *buffer)
{
	assert(client->nr_received && !client->io_pending);
	buffer_pop(&client->received);
	client->nr_received--;
	if (client->state <= CLIENT_OPEN) {
		client->carry_len = buffer->tail - buffer->head;
		memcpy(client->carry, buffer->head, client->carry_len);
	}
	buffer->head = buffer->reply;
	buffer->tail = buffer->reply_tail;
	if (buffer->head == buffer->tail)
		buffer_put(&client->context->buffers, buffer);
	else
		client_send_replies(client, buffer);
}

/* The clients that were put aside try once more, and those whose time is over are
 * refused.
 */
static void requests_overdue(struct loop_op *op, int result, uint32_t flags)
{
	struct connections *connections =
		container_of(op, struct connections, overdue);

	(void)flags;
	connections->timing = false;
	if (result != -ETIME)
		loop_fail(&connections->context->loop, "time limit of requests",
			  result);
	list_splice(&connections->ready, &connections->no_spare);
}

/* Puts the client aside until a spare buffer for its reply is returned, or its
 * request is overdue.
 */
static void requests_await_spare(struct client *client,
				 const struct buffer *buffer)
{
	struct connections *connections = client->context->connections;
	struct loop *loop = &client->context->loop;
	uint64_t after_ns = overdue_after(client);

	assert(!client->busy && list_empty(&client->ready));
	list_add(&connections->no_spare, &client->ready);
	client->context->buffers.spare_wanted = true;
	if (!after_ns || !buffer->received_ns || connections->timing)
		return;
	connections->timing = true;
	connections->overdue.done = requests_overdue;
	connections->overdue_in =
		loop_timespec(after_ns + 1 - age(client, buffer));
	io_uring_prep_timeout(loop_sqe(loop, &connections->overdue),
			      &connections->overdue_in, 0, 0);
}

/* Returns whether a file says that the queue @name is durable. */
static bool is_declared_durable(const struct context *context, const char *name)
{
	const struct declaration *file =
		declarations_find(context->declared, name);

	return file && file->is_durable;
}

/* Returns whether HELLO may make a durable queue. The client need not ask for one: a
 * file can do so.
 */
static bool hello_logs(const struct context *context,
		       const struct expiry_record *record)
{
	struct expiry_hello hello;

	if (record->op != EXPIRY_OP_HELLO)
		return false;
	memcpy(&hello, record, sizeof(hello));
	return (hello.flags & EXPIRY_HELLO_DURABLE ||
		is_declared_durable(context, hello.name)) &&
	       !queue_find(context->queues, hello.name);
}

/* Returns whether DROP ends a durable queue, or makes one anew from its file. */
static bool drop_logs(const struct client *client,
		      const struct expiry_record *record)
{
	return record->op == EXPIRY_OP_DROP && client->queue &&
	       (client->durable ||
		is_declared_durable(client->context, client->queue->name));
}

/* Returns whether the request makes or ends a durable queue, and waits for room in the
 * journal.
 */
static bool awaits_journal(struct client *client,
			   const struct expiry_record *record)
{
	const struct context *context = client->context;
	bool logs = client->state == CLIENT_HELLO ?
			    hello_logs(context, record) :
			    drop_logs(client, record);

	if (!logs || durable_has_room(context->durable))
		return false;
	await_journal(client);
	return true;
}

/* Processes the records of @buffer, the client's first; before @start all are
 * done. Returns their cost in units of an ordinary request.
 */
static uint32_t requests_process(struct client *client, struct buffer *buffer,
				 const char *start, bool overdue)
{
	uint32_t records, more = 0;

	if (!overdue)
		client->overdue = false;
	while (client->state <= CLIENT_OPEN && !client->busy &&
	       (size_t)(buffer->tail - buffer->head) >= RECORD) {
		struct expiry_record *record = (void *)buffer->head;

		if (awaits_journal(client, record))
			break;
		if (client->state == CLIENT_HELLO) {
			client_hello(client, record);
			reply_count(buffer, 1);
		} else if (!access_allows(client->access, record->op)) {
			permission_log_request(client, record->op);
			reply_status(buffer, -EACCES);
		} else if (overdue && is_refusable(record->op)) {
			refuse_busy(client, buffer);
		} else if (more >= SCAN_REQUESTS) {
			/* Expirations come between, while no run is at the engine:
			 * behind the replies so far.
			 */
			if (client_consumes(client))
				reply_flush(client, buffer);
			break;
		} else if (!is_daemon_op(record->op)) {
			if (!do_run(client, buffer, overdue))
				break;
		} else if (client_full(client)) {
			/* Wait until the long replies before this one are sent.
			 */
			break;
		} else {
			uint32_t cost = daemon_op_cost(record);

			if (daemon_op(client, buffer)) {
				more += cost;
			} else if (overdue) {
				refuse_busy(client, buffer);
			} else {
				requests_await_spare(client, buffer);
				break;
			}
		}
	}
	records = (buffer->head - start) / RECORD;
	counter_add(&client->context->stat.records, records);
	if (!client->busy && (client->state > CLIENT_OPEN ||
			      (size_t)(buffer->tail - buffer->head) < RECORD))
		send_replies(client, buffer);
	if (client->awaits_journal)
		input_bound(client);
	client_update(client);
	return records + more;
}

/* Starts with the first received buffer, or continues with it after a wait. */
static uint32_t requests_start(struct client *client)
{
	struct buffer *buffer = client->received.first, *own;

	client->awaits_journal = false;
	if (!buffer)
		return 0;
	if (!buffer->reply_tail)
		join_split_record(client, buffer);
	own = buffer_for_io(client);
	if (own)
		buffer = own;
	return requests_process(client, buffer, buffer->head,
				!own || is_overdue(client, buffer));
}

/* Finishes the run that is back from the engine, and continues behind it. */
static uint32_t requests_finish(struct client *client)
{
	struct buffer *buffer = client->received.first;
	const char *start = buffer->head;
	bool overdue = is_overdue(client, buffer);

	assert(client->busy && !client->io_pending);
	client->batch_done = false;
	client->busy = false;
	run_done(client, client->batch_result);
	return requests_process(client, buffer, start, overdue);
}

/* Processes one buffer of each client until @done reaches @budget; the others
 * continue next turn.
 */
static uint32_t requests_share(struct list *ready, uint32_t done,
			       uint32_t budget)
{
	struct list now, *entry;

	if (list_empty(ready))
		return done;
	list_init(&now);
	list_splice(&now, ready);
	while (done < budget && (entry = list_pop(&now))) {
		struct client *client =
			container_of(entry, struct client, ready);

		done += client->batch_done ? requests_finish(client) :
					     requests_start(client);
	}
	list_splice(&now, ready);
	list_splice(ready, &now);
	return done;
}

void clients_process(struct connections *connections)
{
	uint32_t done = requests_share(&connections->ready_small, 0,
				       TURN_REQUESTS_SMALL);

	/* A cost above the first limit does not reduce the others' share. */
	requests_share(&connections->ready, min_u64(done, TURN_REQUESTS_SMALL),
		       TURN_REQUESTS);
}
