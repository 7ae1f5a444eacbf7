// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Consumers: the path of an expiration from the engine to a connection.
 *
 * Expirations stay in the engine until the consumer has given credit and its
 * socket has room. Until then they can be refreshed and cancelled. That is the
 * daemon's backpressure. A read that an engine completes later belongs to its
 * consumer. The next consumer gets neither the result nor its count against the
 * credit.
 *
 * On a plain queue, expirations collected for a consumer that leaves are lost
 * (at most once). These are the unread bytes in its socket, and at most one
 * buffer that its socket had not taken. Nothing is collected before it has. On
 * an acknowledging queue the next consumer gets both.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/delivery.h"
#include "daemon/client/observer.h"
#include "daemon/client/output.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

/* Returns whether expirations may be collected now. */
static bool delivery_has_work(const struct queue *queue)
{
	return queue->credit && !queue->waiting && !queue->unsent;
}

/* Records since when the consumer takes due timers: a wait before that is not
 * the daemon's lateness.
 */
static void delivery_note_takes(struct queue *queue)
{
	const struct client *client = queue->consumer;
	bool takes = queue->credit && client->state == CLIENT_OPEN &&
		     !client->blocked && !client_full(client);

	if (takes && !queue->takes)
		queue->engine_queue->taken_ns =
			loop_now(&queue->context->loop, queue->clock_id);
	queue->takes = takes;
}

void delivery_kick(struct queue *queue)
{
	if (!queue->consumer)
		return;
	delivery_note_takes(queue);
	if (queue->reading)
		return;
	if (!queue->clock_set && !queue->rewinding && !delivery_has_work(queue))
		return;
	if (!queue->rewinding && !client_takes(queue->consumer))
		return;
	if (list_empty(&queue->due))
		list_add(&queue->context->queues->due, &queue->due);
}

static void delivery_due(struct engine_queue *engine_queue)
{
	struct queue *queue = engine_queue->owner;

	queue->waiting = false;
	delivery_kick(queue);
}

/* Once for a consumer: one that gives too much mostly does so with each record. */
static void log_cut(const struct client *client, uint64_t asked, uint64_t given)
{
	struct log_about cut = client_about(client, NULL, 0);

	log_peer(&cut,
		 "credit of pid %d, uid %u cut from %llu to %llu (credit_max); a consumer that waits for more waits for ever",
		 (int)client->pid, (unsigned int)client->user->uid,
		 (unsigned long long)asked, (unsigned long long)given);
}

void delivery_credit(struct queue *queue, uint32_t credit)
{
	uint64_t sum = (uint64_t)queue->credit + credit;
	uint64_t max = queue->context->config.credit_max;

	/* Keep what was given, also where a reload has lowered the limit: a read that is
	 * in flight counts on it.
	 */
	if (max < queue->credit)
		max = queue->credit;
	if (sum > max) {
		counter_add(&queue->context->stat.refused_credit, 1);
		if (!queue->consumer->cut)
			log_cut(queue->consumer, sum, max);
		queue->consumer->cut = true;
		sum = max;
	}
	queue->credit = sum;
	delivery_kick(queue);
}

/* Runs again if there may be @more or a timer is due, else waits for one. */
static void delivery_next(struct queue *queue, bool more)
{
	const struct engine_ops *ops = queue->context->engine->ops;

	if (!more && !ops->wait(queue->engine_queue))
		queue->waiting = true;
	else
		delivery_kick(queue);
}

static void note_lateness(struct context *context, uint64_t late_ns)
{
	if (late_ns > counter_read(&context->stat.lateness_max_ns))
		counter_set(&context->stat.lateness_max_ns, late_ns);
}

static void delivery_read(struct queue *queue, int result)
{
	struct context *context = queue->context;
	struct client *client = queue->consumer;
	struct buffer *buffer = queue->read_buffer;

	queue->read_buffer = NULL;
	charge_update(queue);
	if (queue->read_epoch != queue->epoch)
		client = NULL;
	if (result <= 0 || !client) {
		buffer_put(&context->buffers, buffer);
	} else {
		assert((uint32_t)result <= queue->credit);
		note_lateness(context, queue->read.late_ns);
		buffer->tail += result * sizeof(struct expiry_record);
		queue->credit -= result;
		counter_add(&context->stat.expirations, result);
		if (queue->journal_number)
			durable_mark(queue, queue->read.records, result);
		if (queue->nr_observers)
			observers_copy(queue, queue->read.records, result);
		buffer->content = BUFFER_EXPIRATIONS;
		client_send(client, buffer);
	}
	/* It may have ended meanwhile, without memory for what it was sent. */
	if (!client || client->state == CLIENT_DEAD)
		return;
	if (result > 0 && !(queue->mode & EXPIRY_MODE_ACK))
		queue->unsent = client->replies_len;
	if (result < 0)
		client_fail(client, "its queue cannot be read", -result);
	else
		delivery_next(queue, (uint32_t)result == queue->read.count);
}

static void delivery_read_done(struct engine_io *io, int result)
{
	struct queue *queue = container_of(io, struct queue, read);
	struct context *context = queue->context;

	assert(queue->reading && queue->read_buffer);
	queue->reading = false;
	if (!queue->dying) {
		delivery_read(queue, result);
		/* A new consumer may be attached meanwhile. */
		delivery_kick(queue);
		return;
	}
	buffer_put(&context->buffers, queue->read_buffer);
	queue_forget(queue);
}

/* The engine reports due timers and completes reads only for a consumer. */
void delivery_attach(struct queue *queue, struct client *client)
{
	assert(!queue->consumer && list_empty(&queue->due));
	queue->engine_queue->due = delivery_due;
	queue->read.done = delivery_read_done;
	queue->consumer = client;
	queue->epoch++;
	queue->credit = 0;
	queue->rewinding = queue->mode & EXPIRY_MODE_ACK;
	delivery_kick(queue);
}

/* Sends a CLOCK_SET to the consumer. Returns false if there is no room now. */
static bool delivery_tell_clock(struct queue *queue)
{
	struct expiry_record *record;

	record = output_room(queue->consumer, sizeof(*record));
	if (!record)
		return false;
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_CLOCK_SET,
		.deadline_ns = loop_now(&queue->context->loop, queue->clock_id),
	};
	if (queue->nr_observers)
		observers_copy(queue, record, 1);
	queue->clock_set = false;
	return true;
}

/* Puts the queue aside until a spare buffer is returned. */
static void delivery_await_spare(struct queue *queue)
{
	assert(queue->consumer && list_empty(&queue->due));
	list_add(&queue->context->queues->no_spare, &queue->due);
	queue->context->buffers.spare_wanted = true;
}

/* Makes unacknowledged deliveries due again. Returns false while there is more
 * to do.
 */
static bool delivery_rewind(struct queue *queue)
{
	int r = queue->context->engine->ops->rewind(queue->engine_queue);

	if (r > 0)
		return false;
	queue->rewinding = false;
	if (r < 0)
		client_fail(queue->consumer, "its queue cannot be rewound", -r);
	return true;
}

/* Collects due timers of one queue. Returns how many were collected or
 * requested.
 */
static uint32_t delivery_run(struct queue *queue)
{
	struct context *context = queue->context;
	struct buffer *buffer;
	int r;

	if (queue->rewinding && !delivery_rewind(queue)) {
		delivery_kick(queue);
		return 1;
	}
	if (!queue->consumer || !client_takes(queue->consumer))
		return 0;
	if (queue->clock_set && !delivery_tell_clock(queue)) {
		delivery_await_spare(queue);
		return 0;
	}
	if (!delivery_has_work(queue))
		return 0;
	assert(!queue->reading);
	buffer = buffer_spare(&context->buffers);
	if (!buffer) {
		delivery_await_spare(queue);
		return 0;
	}
	queue->read_buffer = buffer;
	queue->read_epoch = queue->epoch;
	queue->read.records = (void *)buffer->data;
	queue->read.count =
		min_u64(queue->credit,
			buffer->size / sizeof(struct expiry_record));
	r = context->engine->ops->collect(queue->engine_queue, &queue->read);
	if (r == -EINPROGRESS) {
		queue->reading = true;
		return queue->read.count;
	}
	delivery_read(queue, r);
	return r > 0 ? r : 1;
}

uint32_t deliveries_run(struct context *context, uint32_t budget)
{
	uint32_t full = context->buffers.size / sizeof(struct expiry_record);
	struct list *due = &context->queues->due;
	uint32_t done = 0, before;

	/* Queues added meanwhile have their turn next. After filled buffers
	 * that is at once: expirations must not pile up when more than a buffer
	 * of them becomes due each turn.
	 */
	do {
		struct list now, *entry;

		before = done;
		list_init(&now);
		list_splice(&now, due);
		while (done < budget && (entry = list_pop(&now)))
			done += delivery_run(container_of(entry, struct queue,
							  due));
		list_splice(&now, due);
		list_splice(due, &now);
	} while (done < budget && done - before >= full &&
		 !list_empty(due));
	return done < budget ? budget - done : 0;
}

void deliveries_clock_set(struct context *context)
{
	struct queues *queues = context->queues;
	uint32_t i;

	for (i = 0; i <= queues->mask + 1; i++) {
		struct list *bucket = &queues->buckets[i], *entry;

		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			struct queue *queue =
				container_of(entry, struct queue, all);

			if (queue->clock_id != CLOCK_REALTIME ||
			    !queue->consumer)
				continue;
			queue->clock_set = true;
			/* Timers that became due by the step are not late,
			 * those of a read in progress neither.
			 */
			queue->engine_queue->taken_ns =
				loop_now(&context->loop, CLOCK_REALTIME);
			delivery_kick(queue);
		}
	}
}
