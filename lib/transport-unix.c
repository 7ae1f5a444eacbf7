// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport: expiryd's protocol over a Unix socket.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "exchange.h"
#include "inbox.h"
#include "transport-unix.h"

static int unix_post(struct expiry *h, const struct expiry_record *records,
		     uint32_t count)
{
	uint32_t done;
	int ret;

	assert(h->awaited <= h->posted && h->posted <= h->window);
	if (count > h->window - h->posted)
		count = h->window - h->posted;
	ret = exchange_send(h, records, count);
	done = ret > 0 ? ret : 0;
	h->posted += done;
	h->post_short = done < count;
	return ret;
}

static int unix_take(struct expiry *h, struct expiry_record *records,
		     uint32_t max)
{
	uint32_t nr = 0, some;
	int ret = 0;

	/* Serve a small @max from the buffer, which is filled at most once;
	 * receive a large one directly.
	 */
	if (!stream_nr(&h->stream) && max < DIRECT_MIN)
		ret = stream_fill(&h->stream, false);
	some = stream_nr(&h->stream);
	if (some) {
		nr = some < max ? some : max;
		memcpy(records, stream_units(&h->stream),
		       nr * sizeof(*records));
		stream_skip(&h->stream, nr);
	}
	if (max - nr >= DIRECT_MIN) {
		ret = stream_receive(&h->stream, records + nr, max - nr);
		if (ret > 0)
			nr += ret;
	}
	if (inbox_account(h, records, nr))
		return break_handle(h, -EPROTO);
	if (ret < 0)
		break_handle(h, ret);
	return nr ? (int)nr : h->error;
}

static uint32_t unix_pending(const struct expiry *h)
{
	return stream_nr(&h->stream);
}

static short unix_events(const struct expiry *h)
{
	bool out = stream_unsent(&h->stream) || h->credit_due || h->post_short;

	return POLLIN | (out && !h->stream.send_dead ? POLLOUT : 0);
}

void unix_hello(struct expiry_hello *hello,
		const struct expiry_options *options)
{
	*hello = (struct expiry_hello){
		.op = EXPIRY_OP_HELLO,
		.flags = options->flags &
			 (EXPIRY_HELLO_CONSUME | EXPIRY_MODE_ALL |
			  EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_OBSERVE |
			  EXPIRY_HELLO_DURABLE),
		.version = EXPIRY_WIRE_VERSION,
		.clock_id = options->clock_id,
	};
	if (options->queue)
		memcpy(hello->name, options->queue, strlen(options->queue));
}

int unix_hello_reply(struct expiry *h, const struct expiry_record *reply,
		     uint32_t flags)
{
	if (reply->op != EXPIRY_OP_HELLO || reply->status > 0)
		return -EPROTO;
	if (reply->status == -EPROTONOSUPPORT)
		return -EOPNOTSUPP;
	if (reply->status)
		return reply->status;
	/* A server that does not know the flag must not let it pass. */
	if (flags & ~reply->flags & EXPIRY_OPEN_DURABLE ||
	    !(reply->cookie & EXPIRY_WINDOW_MASK))
		return -EPROTO;
	h->commit_ms = reply->flags & EXPIRY_HELLO_DURABLE ?
		       reply->cookie >> EXPIRY_COMMIT_SHIFT : 0;
	return 0;
}

static int unix_open(struct expiry *h, const char *path,
		     const struct expiry_options *options)
{
	union {
		struct expiry_hello hello;
		struct expiry_record reply;
	} u;
	int ret;

	if (options->slack_ns || options->limit)
		return -EOPNOTSUPP;
	unix_hello(&u.hello, options);
	ret = stream_open(&h->stream, path, options->timeout_ms);
	if (ret)
		return ret;
	h->fd = h->stream.fd;

	h->window = 1;
	ret = exchange_submit(h, &u.reply, 1);
	if (ret > 0)
		ret = unix_hello_reply(h, &u.reply, options->flags);
	if (ret) {
		stream_close(&h->stream);
		return ret;
	}
	h->timers = u.reply.id;
	h->durable = u.reply.flags & EXPIRY_HELLO_DURABLE;
	h->window = u.reply.cookie & EXPIRY_WINDOW_MASK;
	if (h->window > EXPIRY_WINDOW_MAX)
		h->window = EXPIRY_WINDOW_MAX;
	if (options->window && h->window > options->window)
		h->window = options->window;
	return 0;
}

static void unix_close(struct expiry *h)
{
	stream_close(&h->stream);
}

static int unix_scan(struct expiry *h, const struct query *query)
{
	struct expiry_record next = {
		.op = EXPIRY_OP_SCAN,
		.id = *query->cursor,
		.period_ms = query->max,
	};
	uint32_t nr = 0;
	int ret;

	ret = exchange_call(h, &next);
	while (!ret && next.id) {
		if (nr == query->max)
			return break_handle(h, -EPROTO);
		query->timers[nr++] = next;
		ret = exchange_next(h, &next);
	}
	if (ret)
		return ret;
	*query->cursor = next.cookie;
	return nr;
}

static int unix_stat(struct expiry *h, const struct query *query)
{
	struct expiry_record head = { .op = EXPIRY_OP_STAT };
	const uint32_t stat_units = sizeof(*query->stat) / sizeof(head);
	int ret;

	_Static_assert(sizeof(*query->stat) % sizeof(head) == 0, "whole units");
	ret = exchange_call(h, &head);
	if (ret)
		return ret;
	if (head.period_ms < stat_units)
		return break_handle(h, -EPROTO);
	ret = exchange_body(h, query->stat, sizeof(*query->stat), stat_units);
	if (!ret)
		ret = exchange_body(h, query->server,
				    query->server ? query->server_size : 0,
				    head.period_ms - stat_units);
	return ret;
}

/* Receives one queue, after its @head. */
static int unix_queue(struct expiry *h, const struct expiry_queues_row *head,
		      struct expiry_queue *row)
{
	const uint32_t stat_units = sizeof(row->stat) / sizeof(*head);
	int ret;

	if (head->units < stat_units)
		return break_handle(h, -EPROTO);
	memset(row->name, 0, sizeof(row->name));
	memcpy(row->name, head->name, sizeof(head->name));
	ret = exchange_body(h, &row->stat, sizeof(row->stat), stat_units);
	if (!ret)
		ret = exchange_body(h, &row->daemon, sizeof(row->daemon),
				    head->units - stat_units);
	return ret;
}

static int unix_queues(struct expiry *h, const struct query *query)
{
	union {
		struct expiry_record record;
		struct expiry_queues_row row;
	} u = {
		.record.op = EXPIRY_OP_QUEUES,
		.record.id = *query->cursor,
		.record.period_ms = query->max,
	};
	uint32_t nr = 0;
	int ret;

	ret = exchange_call(h, &u.record);
	while (!ret && u.row.units) {
		if (nr == query->max)
			return break_handle(h, -EPROTO);
		ret = unix_queue(h, &u.row, &query->queues[nr++]);
		if (!ret)
			ret = exchange_next(h, &u.record);
	}
	if (ret)
		return ret;
	*query->cursor = u.record.cookie;
	return nr;
}

static int unix_drop(struct expiry *h)
{
	struct expiry_record record = { .op = EXPIRY_OP_DROP };
	int ret;

	ret = exchange_call(h, &record);
	if (!ret)
		h->error = -ENOTCONN;
	return ret;
}

static int unix_query(struct expiry *h, const struct query *query)
{
	switch (query->op) {
	case EXPIRY_OP_SCAN:
		return unix_scan(h, query);
	case EXPIRY_OP_STAT:
		return unix_stat(h, query);
	case EXPIRY_OP_QUEUES:
		return unix_queues(h, query);
	case EXPIRY_OP_DROP:
		return unix_drop(h);
	}
	return -EOPNOTSUPP;
}

static int unix_rewind(struct expiry *h)
{
	(void)h;
	return -EOPNOTSUPP;
}

const struct transport transport_unix = {
	.open = unix_open,
	.close = unix_close,
	.submit = exchange_submit,
	.post = unix_post,
	.flush = exchange_flush,
	.take = unix_take,
	.pending = unix_pending,
	.events = unix_events,
	.query = unix_query,
	.rewind = unix_rewind,
};
