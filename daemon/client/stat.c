// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>
#include <time.h>

#include "daemon/client/client.h"
#include "daemon/client/output.h"
#include "daemon/client/reply.h"
#include "daemon/client/stat.h"
#include "daemon/client/summary.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/util/histogram.h"
#include "daemon/util/log.h"

#define RECORD	((uint32_t)sizeof(struct expiry_record))
#define UNITS(size) (((uint32_t)(size) + RECORD - 1) / RECORD)

/* The body of a STAT reply. */
struct stat_body {
	struct expiry_stat queue;
	struct expiry_server_stat server;
};

static void sum_server_stat(const struct context *context,
			    struct expiry_server_stat *stat)
{
	const struct context_stat *one = &context->stat;

	stat->records += counter_read(&one->records);
	stat->expirations += counter_read(&one->expirations);
	stat->refused_connections += counter_read(&one->refused_connections);
	stat->refused_queues += counter_read(&one->refused_queues);
	stat->refused_timers += counter_read(&one->refused_timers);
	stat->refused_busy += counter_read(&one->refused_busy);
	stat->refused_credit += counter_read(&one->refused_credit);
	stat->closed_protocol += counter_read(&one->closed_protocol);
	stat->closed_backlog += counter_read(&one->closed_backlog);
	stat->closed_hello += counter_read(&one->closed_hello);
	stat->refused_observers += counter_read(&one->refused_observers);
	stat->copies_missed += counter_read(&one->copies_missed);
	stat->refused_journal += counter_read(&one->refused_journal);
	stat->journal_queues += counter_read(&one->durable_queues);
	stat->journal_timers += counter_read(&one->durable_timers);
	stat->journal_overdue += counter_read(&one->overdue);
	stat->backlog += counter_read(&context->buffers.private_size);
	histogram_sum(&context->turn_ns, stat->turn_ns);
	histogram_sum(&context->batch, stat->batch);
	histogram_sum(&context->request_ns, stat->request_ns);
}

static void sum_journal_stat(const struct journal_stat *one,
			     struct expiry_server_stat *stat)
{
	stat->journal_waiting += counter_read(&one->waiting);
	stat->journal_records += counter_read(&one->records);
	stat->journal_commits += counter_read(&one->commits);
	stat->journal_bytes += counter_read(&one->bytes);
	stat->journal_size += counter_read(&one->size);
	stat->journal_checkpoints += counter_read(&one->checkpoints);
	stat->journal_failures += counter_read(&one->failures);
	stat->journal_failed += counter_read(&one->has_failed);
	histogram_sum(&one->commit_ns, stat->commit_ns);
}

static void fill_server_stat(const struct client *client,
			     struct expiry_server_stat *stat)
{
	const struct queue *queue = client->queue;
	struct context *context = client->context;
	struct shared *shared = context->shared;
	struct summary summary;
	uint32_t i;

	summary_sum(context, &summary);
	*stat = (struct expiry_server_stat) {
		.engine = context->engine->ops->kind,
		.consumers = queue && queue->consumer,
		.credit = queue ? queue->credit : 0,
		.producers = queue ? queue->clients : 0,
		.loop = context->loop.ops->kind,
		.uptime_ns = loop_now(&context->loop, CLOCK_BOOTTIME) -
			     shared->started_ns,
		.queues = share_read(&shared->queues),
		.connections = share_read(&shared->connections),
		.timers = summary.timers,
		.next_ns = summary.next_ns,
		.lateness_max_ns = summary.lateness_max_ns,
		.log_dropped = log_dropped(),
		.log_left_out = log_left_out(),
		.durable = queue ? queue->journal_number : 0,
	};
	for (i = 0; i < shared->nr; i++) {
		sum_server_stat(shared->contexts[i], stat);
		sum_journal_stat(&shared->contexts[i]->journal, stat);
	}
}

bool stat_reply(struct client *client, struct buffer *buffer)
{
	struct expiry_record head = *(struct expiry_record *)buffer->head;
	const struct queue *queue = client->queue;
	struct stat_body body = { 0 };
	char *room;
	int r = 0;

	if (!summary_recent(client))
		return true;
	if (queue)
		r = client->context->engine->ops->stat(queue->engine_queue,
						       &body.queue);
	if (r < 0) {
		reply_status(buffer, r);
		return true;
	}
	fill_server_stat(client, &body.server);
	if (!reply_flush(client, buffer))
		return false;
	room = output_room(client, RECORD * (1 + UNITS(sizeof(body))));
	if (!room)
		return false;
	head.status = 0;
	head.period_ms = UNITS(sizeof(body));
	memcpy(room, &head, RECORD);
	memset(room + RECORD, 0, RECORD * UNITS(sizeof(body)));
	memcpy(room + RECORD, &body, sizeof(body));
	buffer->head += RECORD;
	return true;
}
