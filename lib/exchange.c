// SPDX-License-Identifier: LGPL-2.1-or-later
/* Requests and their replies over the stream. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "exchange.h"
#include "inbox.h"

int exchange_flush(struct expiry *h)
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
static int exchange_step(struct expiry *h, bool blocked,
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
	return inbox_sort(h, replies, max);
}

int exchange_make_room(struct expiry *h)
{
	return exchange_step(h, true, NULL, 0);
}

int exchange_submit(struct expiry *h, struct expiry_record *records,
		    uint32_t count)
{
	uint32_t sent = 0, done = 0, awaited, room;
	bool full;
	int ret;

	/* A reply that is here already answers none of these. */
	if (stream_nr(&h->stream) && inbox_sort(h, NULL, 0) == 0 &&
	    stream_nr(&h->stream))
		break_handle(h, -EPROTO);
	while (done < count && !h->error) {
		ret = exchange_flush(h);
		if (ret < 0)
			break;
		assert(h->awaited <= h->window &&
		       sent - done <= h->window - h->awaited);
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

		/* Sort earlier records, then wait for more. Replies to posted
		 * requests may have made room in the window instead.
		 */
		awaited = h->awaited;
		ret = inbox_sort(h, records + done, sent - done);
		if (!ret && h->awaited == awaited)
			ret = exchange_step(h, full && !h->stream.send_dead,
					    records + done, sent - done);
		if (ret < 0)
			break;
		done += ret;
	}
	assert(done <= sent && sent <= count);
	if (done < count)
		h->in_doubt = sent - done;
	return done ? (int)done : h->error;
}

/* Sends from @records without a copy: how many, 0 if the socket is full. */
static int send_directly(struct expiry *h, const struct expiry_record *records,
			 uint32_t count)
{
	int ret;

	ret = exchange_flush(h);
	if (ret)
		return ret < 0 ? ret : 0;
	ret = stream_send(&h->stream, records, count);
	return ret < 0 ? break_handle(h, ret) : ret;
}

int exchange_send(struct expiry *h, const struct expiry_record *records,
		  uint32_t count)
{
	uint32_t done = 0, room;
	int ret = 0;

	while (done < count) {
		room = stream_room(&h->stream);
		if (count - done >= DIRECT_MIN || !room) {
			ret = send_directly(h, records + done, count - done);
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
	assert(done <= count && h->awaited + done <= h->window);
	h->awaited += done;
	return done ? (int)done : ret;
}

int exchange_call(struct expiry *h, struct expiry_record *record)
{
	int ret;

	ret = exchange_submit(h, record, 1);
	return ret < 0 ? ret : record->status;
}

/* Waits until a whole unit is in the buffer. 0 or the errno that broke the handle. */
static int wait_for_unit(struct expiry *h)
{
	int ret = 0;

	while (!stream_nr(&h->stream) && ret >= 0)
		ret = stream_fill(&h->stream, true);
	return ret < 0 ? break_handle(h, ret) : 0;
}

int exchange_next(struct expiry *h, struct expiry_record *reply)
{
	const struct expiry_record *unit;
	int ret = wait_for_unit(h);

	if (ret)
		return ret;
	unit = stream_units(&h->stream);
	if (unit->op != reply->op || unit->status)
		return break_handle(h, -EPROTO);
	*reply = *unit;
	stream_skip(&h->stream, 1);
	return 0;
}

int exchange_body(struct expiry *h, void *to, size_t size, uint32_t units)
{
	size_t left = (size_t)units * sizeof(struct expiry_record);
	size_t len, some;
	uint32_t nr;
	int ret;

	if (size)
		memset(to, 0, size);
	while (left) {
		ret = wait_for_unit(h);
		if (ret)
			return ret;
		nr = stream_nr(&h->stream);
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
