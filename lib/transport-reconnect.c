// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport: that of transport-unix.c, reconnecting as often as needed.
 *
 * Posted requests wait in the replay ring until they are answered. The caller
 * keeps the requests of a synchronous call. That call sends again the requests
 * after the last answer.
 */
#include <errno.h>
#include <poll.h>

#include "link.h"
#include "transport-unix.h"

/* Posted requests that are sent without a flush. */
#define POST_BATCH	64

static int lasting_open(struct expiry *h, const char *path,
			const struct expiry_options *options)
{
	int ret;

	ret = transport_unix.open(h, path, options);
	if (ret)
		return ret;
	ret = reconnect_open(h, path, options);
	if (ret)
		transport_unix.close(h);
	return ret;
}

static void lasting_close(struct expiry *h)
{
	reconnect_close(h);
	transport_unix.close(h);
}

/**
 * struct submission - a synchronous call in progress
 * @begun_ns: when it began, on the queue's clock
 * @connection: the connection at that time
 * @doubt: remaining records that may have been carried out
 */
struct submission {
	uint64_t begun_ns;
	uint32_t connection;
	uint32_t doubt;
};

/* Continues on one connection, which may break. Returns how many of @records
 * were answered, or an errno.
 */
static int submit_once(struct expiry *h, struct submission *s,
		       struct expiry_record *records, uint32_t count)
{
	struct reconnect *r = h->reconnect;
	uint32_t refused, i, done = 0;
	int ret;

	r->repeating = s->doubt;
	ret = reconnect_wait(h);
	if (ret)
		return ret;
	if (r->count != s->connection)
		replay_fix(records, count, s->begun_ns);

	/* Send requests in doubt alone: credit follows them. */
	ret = transport_unix.submit(h, records, s->doubt ?: count);
	if (ret > 0)
		done = ret;
	reconnect_heard(h, records, done);
	s->doubt = s->doubt > done ? s->doubt - done : 0;
	if (!h->error)
		return done;

	if (!s->doubt)
		s->doubt = h->in_doubt;
	ret = reconnect_lost(h);
	if (ret)
		return done ? (int)done : ret;
	refused = replay_refused(records + done, s->doubt,
				 h->mode & EXPIRY_MODE_KEYED);
	for (i = 0; i < refused; i++)
		records[done++].status = -ECONNRESET;
	s->doubt -= refused;
	return done;
}

static int lasting_submit(struct expiry *h, struct expiry_record *records,
			  uint32_t count)
{
	struct reconnect *r = h->reconnect;
	struct submission s = {
		.begun_ns = expiry_now(h),
		.connection = r->count,
	};
	uint32_t done = 0;
	int ret = 0;

	while (done < count) {
		ret = submit_once(h, &s, records + done, count - done);
		if (ret < 0)
			break;
		done += ret;
	}
	/* Nothing is in doubt any more, or the caller has the errno. */
	r->repeating = false;
	if (r->credit)
		reconnect_step(h);
	return done ? (int)done : ret;
}

static int lasting_post(struct expiry *h, const struct expiry_record *records,
			uint32_t count)
{
	struct replay *replay = &h->reconnect->replay;
	const uint64_t now_ns = expiry_now(h);
	struct expiry_record record;
	uint32_t i;

	if (count > h->window - h->posted)
		count = h->window - h->posted;
	for (i = 0; i < count; i++) {
		record = records[i];
		replay_fix(&record, 1, now_ns);
		ring_put(&replay->ring, &record);
	}
	h->posted += count;
	if (replay_unsent(replay) >= POST_BATCH)
		reconnect_step(h);
	return count;
}

static int lasting_flush(struct expiry *h)
{
	if (!reconnect_step(h))
		return h->error ?: 1;
	return stream_unsent(&h->stream) || replay_unsent(&h->reconnect->replay);
}

static int lasting_take(struct expiry *h, struct expiry_record *records,
			uint32_t max)
{
	int ret, lost;

	if (!reconnect_step(h))
		return h->error;
	/* Events that came with the greeting go first. */
	if (ring_nr(&h->kept))
		return 0;
	ret = transport_unix.take(h, records, max);
	reconnect_heard(h, records, ret > 0 ? ret : 0);
	if (!h->error)
		return ret;
	lost = reconnect_lost(h);
	return ret > 0 ? ret : lost;
}

static uint32_t lasting_pending(const struct expiry *h)
{
	return h->reconnect->state == LINK_UP ? stream_nr(&h->stream) : 0;
}

static short lasting_events(const struct expiry *h)
{
	reconnect_poll(h);
	return POLLIN;
}

/* Returns whether to repeat a call of the protocol's own that returned *@ret:
 * the connection broke before its reply.
 */
static bool broke(struct expiry *h, int *ret)
{
	reconnect_heard(h, NULL, 0);
	if (!h->error || *ret >= 0)
		return false;
	*ret = reconnect_lost(h);
	return !*ret;
}

static int lasting_scan(struct expiry *h, uint64_t *cursor,
			struct expiry_record *rows, uint32_t max)
{
	int ret;

	do {
		ret = reconnect_wait(h);
		if (ret)
			return ret;
		ret = transport_unix.scan(h, cursor, rows, max);
	} while (broke(h, &ret));
	return ret;
}

static int lasting_stat(struct expiry *h, struct expiry_stat *stat,
			struct expiry_server_stat *server, size_t server_size)
{
	int ret;

	do {
		ret = reconnect_wait(h);
		if (ret)
			return ret;
		ret = transport_unix.stat(h, stat, server, server_size);
	} while (broke(h, &ret));
	return ret;
}

static int lasting_queues(struct expiry *h, uint64_t *cursor,
			  struct expiry_queue *rows, uint32_t max)
{
	int ret;

	do {
		ret = reconnect_wait(h);
		if (ret)
			return ret;
		ret = transport_unix.queues(h, cursor, rows, max);
	} while (broke(h, &ret));
	return ret;
}

static int lasting_drop(struct expiry *h)
{
	int ret;

	do {
		ret = reconnect_wait(h);
		if (ret)
			return ret;
		ret = transport_unix.drop(h);
	} while (broke(h, &ret));
	return ret;
}

static int lasting_rewind(struct expiry *h)
{
	return transport_unix.rewind(h);
}

const struct transport transport_lasting = {
	.open = lasting_open,
	.close = lasting_close,
	.submit = lasting_submit,
	.post = lasting_post,
	.flush = lasting_flush,
	.take = lasting_take,
	.pending = lasting_pending,
	.events = lasting_events,
	.scan = lasting_scan,
	.stat = lasting_stat,
	.queues = lasting_queues,
	.drop = lasting_drop,
	.rewind = lasting_rewind,
};
