// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Requests: synchronous calls, posting without waiting, and what to poll for.
 */
#include <errno.h>
#include <poll.h>

#include "internal.h"

/* Returns whether the program may send these. Other ops would upset the count
 * of replies.
 */
static bool request_ok(const struct expiry_record *records, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (records[i].op >= EXPIRY_OP_HELLO || is_event(&records[i]))
			return false;
	}
	return true;
}

EXPORT int expiry_submit(struct expiry *h, struct expiry_record *records,
			 uint32_t count)
{
	if (h->error)
		return h->error;
	if (count > INT32_MAX || !request_ok(records, count))
		return -EINVAL;
	return h->transport->submit(h, records, count);
}

/* Submits one record; returns its status or the errno of the call. */
static int submit_one(struct expiry *h, struct expiry_record *record)
{
	int ret;

	if (h->error)
		return h->error;
	ret = h->transport->submit(h, record, 1);
	return ret < 0 ? ret : record->status;
}

EXPORT int expiry_arm(struct expiry *h, uint64_t *id, uint64_t deadline_ns,
		      uint32_t period_ms, uint64_t cookie, unsigned int flags)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.flags = flags,
		.period_ms = period_ms,
		.deadline_ns = deadline_ns,
		.cookie = cookie,
	};
	int ret;

	if (flags > UINT8_MAX)
		return -EINVAL;
	/* Without an id the server refuses a keyed queue's ARM. */
	if (id && h->mode & EXPIRY_MODE_KEYED)
		record.id = *id;
	ret = submit_one(h, &record);
	if (!ret && id)
		*id = record.id;
	return ret;
}

EXPORT int expiry_refresh(struct expiry *h, uint64_t id, uint64_t deadline_ns,
			  unsigned int flags, uint64_t *ret_deadline_ns)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_REFRESH,
		.flags = flags,
		.id = id,
		.deadline_ns = deadline_ns,
	};
	int ret;

	if (flags > UINT8_MAX)
		return -EINVAL;
	ret = submit_one(h, &record);
	if (!ret && ret_deadline_ns)
		*ret_deadline_ns = record.deadline_ns;
	return ret;
}

static int submit_id(struct expiry *h, uint8_t op, uint64_t id,
		     struct expiry_record *ret_timer)
{
	struct expiry_record record = { .op = op, .id = id };
	int ret;

	ret = submit_one(h, &record);
	if (!ret && ret_timer)
		*ret_timer = record;
	return ret;
}

EXPORT int expiry_cancel(struct expiry *h, uint64_t id,
			 struct expiry_record *ret_timer)
{
	return submit_id(h, EXPIRY_OP_CANCEL, id, ret_timer);
}

EXPORT int expiry_query(struct expiry *h, uint64_t id,
			struct expiry_record *ret_timer)
{
	return submit_id(h, EXPIRY_OP_QUERY, id, ret_timer);
}

EXPORT int expiry_ack(struct expiry *h, uint64_t id)
{
	return submit_id(h, EXPIRY_OP_ACK, id, NULL);
}

EXPORT int expiry_clear(struct expiry *h, uint64_t *ret_count)
{
	struct expiry_record reply;
	int ret;

	ret = submit_id(h, EXPIRY_OP_CLEAR, 0, &reply);
	if (!ret && ret_count)
		*ret_count = reply.cookie;
	return ret;
}

EXPORT int expiry_scan(struct expiry *h, uint64_t *cursor,
		       struct expiry_record *rows, uint32_t max)
{
	const struct query query = {
		.op = EXPIRY_OP_SCAN,
		.cursor = cursor,
		.max = max,
		.timers = rows,
	};
	int i, nr;

	if (h->error)
		return h->error;
	if (!max || max > INT32_MAX)
		return -EINVAL;
	nr = h->transport->query(h, &query);
	for (i = 0; i < nr; i++)
		rows[i].op = EXPIRY_OP_QUERY;
	return nr;
}

EXPORT int expiry_stat(struct expiry *h, struct expiry_stat *stat,
		       struct expiry_server_stat *server, size_t server_size)
{
	const struct query query = {
		.op = EXPIRY_OP_STAT,
		.stat = stat,
		.server = server,
		.server_size = server_size,
	};

	if (h->error)
		return h->error;
	return h->transport->query(h, &query);
}

EXPORT int expiry_queues(struct expiry *h, uint64_t *cursor,
			 struct expiry_queue *rows, uint32_t max)
{
	const struct query query = {
		.op = EXPIRY_OP_QUEUES,
		.cursor = cursor,
		.max = max,
		.queues = rows,
	};

	if (h->error)
		return h->error;
	if (!max || max > INT32_MAX)
		return -EINVAL;
	return h->transport->query(h, &query);
}

EXPORT int expiry_drop(struct expiry *h)
{
	const struct query query = { .op = EXPIRY_OP_DROP };

	if (h->error)
		return h->error;
	return h->transport->query(h, &query);
}

EXPORT int expiry_rewind(struct expiry *h)
{
	if (h->error)
		return h->error;
	return h->transport->rewind(h);
}

EXPORT int expiry_post(struct expiry *h, const struct expiry_record *records,
		       uint32_t count)
{
	if (h->error)
		return h->error;
	if (count > INT32_MAX || !request_ok(records, count))
		return -EINVAL;
	return h->transport->post(h, records, count);
}

EXPORT int expiry_flush(struct expiry *h)
{
	if (h->error)
		return h->error;
	return h->transport->flush(h);
}

EXPORT short expiry_events(const struct expiry *h)
{
	return h->transport->events(h);
}

EXPORT uint32_t expiry_pending(const struct expiry *h)
{
	return ring_nr(&h->inbox) + h->transport->pending(h);
}

EXPORT int expiry_wait(struct expiry *h, int timeout_ms)
{
	struct pollfd pfd = { .fd = h->fd };
	int ret;

	if (expiry_pending(h) || h->error)
		return 1;
	ret = h->transport->flush(h);
	/* Look again: a reconnect meanwhile may have put records into the handle, and
	 * the fd does not report these.
	 */
	if (expiry_pending(h) || h->error)
		return 1;
	if (!ret && h->post_short) {
		/* There is room again; no event reports that. */
		h->post_short = false;
		return 1;
	}
	pfd.events = h->transport->events(h);
	ret = poll(&pfd, 1, timeout_ms);
	return ret < 0 ? -errno : ret;
}
