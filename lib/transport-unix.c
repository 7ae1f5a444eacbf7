// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport: expiryd's protocol over a Unix socket.
 *
 * The stream carries three kinds of records: expirations, replies to posted
 * requests, and replies to the waiting synchronous call. h->awaited replies to
 * posted requests precede any other reply. While a call waits the first two
 * kinds go to h->inbox, which has room for all that may come: the window bounds
 * the replies and the credit bounds the expirations.
 *
 * A synchronous call receives whenever it cannot send, so it cannot deadlock
 * with a server whose socket is full, too.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "transport-unix.h"

/* Below this many records a copy costs less than another system call. */
#define DIRECT_MIN	64

static int break_handle(struct expiry *h, int error)
{
	h->error = error;
	return error;
}

/* Accounts for one event. None comes before HELLO's reply, when there is no ring
 * yet; MISSED is an observer's.
 */
static int event_arrived(struct expiry *h, const struct expiry_record *record)
{
	if (h->observe && h->inbox.records)
		return 0;
	if (!h->consume || !h->inbox.records || record->op == EXPIRY_OP_MISSED)
		return -EPROTO;
	if (record->op == EXPIRY_OP_EXPIRED) {
		if (!h->granted)
			return -EPROTO;
		h->granted--;
	}
	return 0;
}

/* Keeps a copy while a synchronous call waits. No credit bounds an observer's
 * records: copies that do not fit into the ring count as missed, as in the server.
 */
static void copy_keep(struct expiry *h, const struct expiry_record *record)
{
	struct expiry_record missed = { .op = EXPIRY_OP_MISSED, .cookie = 1 };

	if (h->held + 1 < h->credit) {
		h->missed_held = false;
		h->held++;
		ring_put(&h->inbox, record);
		return;
	}
	if (record->op == EXPIRY_OP_MISSED)
		missed.cookie = record->cookie;
	if (h->missed_held) {
		h->inbox.records[h->missed & h->inbox.mask].cookie += missed.cookie;
		return;
	}
	h->missed = h->inbox.tail;
	h->missed_held = true;
	h->held++;
	ring_put(&h->inbox, &missed);
}

static void event_keep(struct expiry *h, const struct expiry_record *record)
{
	if (h->observe) {
		copy_keep(h, record);
		return;
	}
	if (record->op == EXPIRY_OP_EXPIRED) {
		h->held++;
		ring_put(&h->inbox, record);
		return;
	}
	/* The program needs only the last of several steps. */
	if (h->clock_set_held) {
		h->inbox.records[h->clock_set & h->inbox.mask] = *record;
		return;
	}
	h->clock_set = h->inbox.tail;
	h->clock_set_held = true;
	ring_put(&h->inbox, record);
}

int unix_sort(struct expiry *h, struct expiry_record *replies, uint32_t max)
{
	const struct expiry_record *record = stream_units(&h->stream);
	uint32_t nr = stream_nr(&h->stream);
	uint32_t i, found = 0;

	for (i = 0; i < nr && (!max || found < max); i++, record++) {
		if (is_event(record)) {
			if (event_arrived(h, record))
				return break_handle(h, -EPROTO);
			event_keep(h, record);
		} else if (h->awaited) {
			h->awaited--;
			ring_put(&h->inbox, record);
		} else if (max) {
			replies[found++] = *record;
		} else {
			break;
		}
	}
	stream_skip(&h->stream, i);
	return found;
}

int unix_flush(struct expiry *h)
{
	struct expiry_record credit = { .op = EXPIRY_OP_CREDIT };
	int ret;

	if (h->credit_due && stream_room(&h->stream)) {
		credit.period_ms = h->credit_due;
		stream_put(&h->stream, &credit, 1);
		h->credit_due = 0;
	}
	if (!stream_unsent(&h->stream))
		return 0;
	ret = stream_flush(&h->stream);
	return ret < 0 ? break_handle(h, ret) : ret;
}

/*
 * Takes one step of a synchronous call that has nothing to send or cannot send:
 * waits for the server, and sorts its records. @blocked: requests wait for the
 * socket.
 */
static int unix_step(struct expiry *h, bool blocked,
		     struct expiry_record *replies, uint32_t max)
{
	int ret;

	/* Nothing to send: let recv() do the waiting. */
	if (blocked) {
		ret = stream_wait(&h->stream, true, h->timeout_ms);
		if (ret)
			return break_handle(h, ret);
	}
	ret = stream_fill(&h->stream, !blocked);
	if (ret < 0)
		return break_handle(h, ret);
	return unix_sort(h, replies, max);
}

int unix_make_room(struct expiry *h)
{
	return unix_step(h, true, NULL, 0);
}

static int unix_submit(struct expiry *h, struct expiry_record *records,
		       uint32_t count)
{
	uint32_t sent = 0, done = 0, room;
	bool full;
	int ret;

	while (done < count) {
		ret = unix_flush(h);
		if (ret < 0)
			break;
		room = h->window - h->awaited - (sent - done);
		if (room > count - sent)
			room = count - sent;
		if (!ret && room) {
			ret = stream_send(&h->stream, records + sent, room);
			if (ret < 0) {
				break_handle(h, ret);
				break;
			}
			sent += ret;
			full = (uint32_t)ret < room || stream_unsent(&h->stream);
		} else {
			full = ret;
		}

		/* Sort earlier records, then wait for more. */
		ret = unix_sort(h, records + done, sent - done);
		if (!ret)
			ret = unix_step(h, full && !h->stream.send_dead,
					records + done, sent - done);
		if (ret < 0)
			break;
		done += ret;
	}
	if (done < count)
		h->in_doubt = sent - done;
	return done ? (int)done : h->error;
}

/* Sends from @records without a copy: how many, 0 if the socket is full. */
static int post_directly(struct expiry *h, const struct expiry_record *records,
			 uint32_t count)
{
	int ret;

	ret = unix_flush(h);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = stream_send(&h->stream, records, count);
	return ret < 0 ? break_handle(h, ret) : ret;
}

int unix_send(struct expiry *h, const struct expiry_record *records,
	      uint32_t count)
{
	uint32_t done = 0, room;
	int ret = 0;

	while (done < count) {
		room = stream_room(&h->stream);
		if (count - done >= DIRECT_MIN || !room) {
			ret = post_directly(h, records + done, count - done);
			if (ret < 0)
				break;
			done += ret;
			if (ret)
				continue;
			room = stream_room(&h->stream);
			if (!room)
				break;
		}
		if (room > count - done)
			room = count - done;
		stream_put(&h->stream, records + done, room);
		done += room;
	}
	h->awaited += done;
	return done ? (int)done : ret;
}

static int unix_post(struct expiry *h, const struct expiry_record *records,
		     uint32_t count)
{
	uint32_t done;
	int ret;

	if (count > h->window - h->posted)
		count = h->window - h->posted;
	ret = unix_send(h, records, count);
	done = ret > 0 ? ret : 0;
	h->posted += done;
	h->post_short = done < count;
	return ret;
}

/* Accounts for records that go straight to the program. Returns 0 or -EPROTO.
 */
static int arrived(struct expiry *h, const struct expiry_record *records,
		   uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		if (is_event(&records[i])) {
			if (event_arrived(h, &records[i]))
				return -EPROTO;
		} else if (h->awaited) {
			h->awaited--;
			h->posted--;
		} else {
			return -EPROTO;
		}
	}
	return 0;
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
	if (arrived(h, records, nr))
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

/* Waits for at least one more reply to a request that has several. */
static int unix_more(struct expiry *h, struct expiry_record *replies,
		     uint32_t max)
{
	int ret;

	ret = unix_sort(h, replies, max);
	while (!ret)
		ret = unix_step(h, false, replies, max);
	return ret;
}

/* Sends one request of the protocol's own and waits for its first reply: 0, its
 * status, or the errno that broke the connection.
 */
static int unix_call(struct expiry *h, struct expiry_record *record)
{
	uint8_t op = record->op;
	int ret;

	ret = unix_submit(h, record, 1);
	if (ret < 0)
		return ret;
	if (record->op != op || record->status > 0)
		return break_handle(h, -EPROTO);
	return record->status;
}

void unix_hello(struct expiry_hello *hello,
		const struct expiry_options *options)
{
	*hello = (struct expiry_hello){
		.op = EXPIRY_OP_HELLO,
		.flags = options->flags &
			 (EXPIRY_HELLO_CONSUME | EXPIRY_MODE_ALL |
			  EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_OBSERVE),
		.version = EXPIRY_WIRE_VERSION,
		.clock_id = options->clock_id,
	};
	if (options->queue)
		memcpy(hello->name, options->queue, strlen(options->queue));
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
	ret = unix_call(h, &u.reply);
	if (!ret && !u.reply.cookie)
		ret = -EPROTO;
	if (ret) {
		stream_close(&h->stream);
		return unix_hello_error(ret);
	}
	h->timers = u.reply.id;
	h->window = options->window ?: EXPIRY_WINDOW_MAX;
	if (h->window > u.reply.cookie)
		h->window = u.reply.cookie;
	return 0;
}

static void unix_close(struct expiry *h)
{
	stream_close(&h->stream);
}

static int unix_scan(struct expiry *h, uint64_t *cursor,
		     struct expiry_record *rows, uint32_t max)
{
	struct expiry_record next = {
		.op = EXPIRY_OP_SCAN,
		.id = *cursor,
		.period_ms = max,
	};
	uint32_t nr = 0;
	int ret;

	ret = unix_call(h, &next);
	while (!ret && next.id) {
		if (nr == max)
			return break_handle(h, -EPROTO);
		rows[nr++] = next;
		ret = unix_more(h, &next, 1);
		if (ret < 0)
			return ret;
		ret = next.op == EXPIRY_OP_SCAN && !next.status ? 0 :
		      break_handle(h, -EPROTO);
	}
	if (ret)
		return ret;
	*cursor = next.cookie;
	return nr;
}

/* Receives @units raw units, the first @size bytes of them to @to. */
static int unix_body(struct expiry *h, void *to, size_t size, uint32_t units)
{
	size_t left = (size_t)units * sizeof(struct expiry_record);
	size_t len, some;
	uint32_t nr;
	int ret;

	if (size)
		memset(to, 0, size);
	while (left) {
		nr = stream_nr(&h->stream);
		if (!nr) {
			ret = stream_fill(&h->stream, true);
			if (ret < 0)
				return break_handle(h, ret);
			continue;
		}
		len = (size_t)nr * sizeof(struct expiry_record);
		if (len > left)
			len = left;
		if (size) {
			some = len < size ? len : size;
			memcpy(to, stream_units(&h->stream), some);
			to = (char *)to + some;
			size -= some;
		}
		stream_skip(&h->stream, len / sizeof(struct expiry_record));
		left -= len;
	}
	return 0;
}

static int unix_stat(struct expiry *h, struct expiry_stat *stat,
		     struct expiry_server_stat *server, size_t server_size)
{
	struct expiry_record head = { .op = EXPIRY_OP_STAT };
	const uint32_t stat_units = sizeof(*stat) / sizeof(head);
	int ret;

	_Static_assert(sizeof(*stat) % sizeof(head) == 0, "whole units");
	ret = unix_call(h, &head);
	if (ret)
		return ret;
	if (head.period_ms < stat_units)
		return break_handle(h, -EPROTO);
	ret = unix_body(h, stat, sizeof(*stat), stat_units);
	if (!ret)
		ret = unix_body(h, server, server ? server_size : 0,
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
	ret = unix_body(h, &row->stat, sizeof(row->stat), stat_units);
	if (!ret)
		ret = unix_body(h, &row->daemon, sizeof(row->daemon),
				head->units - stat_units);
	return ret;
}

static int unix_queues(struct expiry *h, uint64_t *cursor,
		       struct expiry_queue *rows, uint32_t max)
{
	union {
		struct expiry_record record;
		struct expiry_queues_row row;
	} u = {
		.record.op = EXPIRY_OP_QUEUES,
		.record.id = *cursor,
		.record.period_ms = max,
	};
	uint32_t nr = 0;
	int ret;

	ret = unix_call(h, &u.record);
	while (!ret && u.row.units) {
		if (nr == max)
			return break_handle(h, -EPROTO);
		ret = unix_queue(h, &u.row, &rows[nr++]);
		if (!ret)
			ret = unix_more(h, &u.record, 1);
		if (ret < 0)
			return ret;
		ret = u.row.op == EXPIRY_OP_QUEUES && !u.row.status ? 0 :
		      break_handle(h, -EPROTO);
	}
	if (ret)
		return ret;
	*cursor = u.record.cookie;
	return nr;
}

static int unix_drop(struct expiry *h)
{
	struct expiry_record record = { .op = EXPIRY_OP_DROP };
	int ret;

	ret = unix_call(h, &record);
	if (!ret)
		h->error = -ENOTCONN;
	return ret;
}

static int unix_rewind(struct expiry *h)
{
	(void)h;
	return -EOPNOTSUPP;
}

const struct transport transport_unix = {
	.open = unix_open,
	.close = unix_close,
	.submit = unix_submit,
	.post = unix_post,
	.flush = unix_flush,
	.take = unix_take,
	.pending = unix_pending,
	.events = unix_events,
	.scan = unix_scan,
	.stat = unix_stat,
	.queues = unix_queues,
	.drop = unix_drop,
	.rewind = unix_rewind,
};
