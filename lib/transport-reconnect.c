// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transport: that of transport-unix.c, reconnecting as often as needed.
 *
 * Posted requests wait in the replay ring until they are answered. The caller
 * keeps the requests of a synchronous call. That call sends again the requests
 * after the last answer.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>

#include "clock.h"
#include "link.h"
#include "transport-unix.h"

/* Posted requests that are sent without a flush. */
#define POST_BATCH	64

/* Timers of ACKs that are looked for at once. */
#define ACK_BATCH	64

static int reconnect_open(struct expiry *h, const char *path,
			  const struct expiry_options *options)
{
	int ret;

	ret = transport_unix.open(h, path, options);
	if (ret)
		return ret;
	ret = link_open(h, path, options);
	if (ret)
		transport_unix.close(h);
	return ret;
}

static void reconnect_close(struct expiry *h)
{
	link_close(h);
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

/* Returns whether the timer cannot come by the delivery that an ACK found no more. */
static bool is_over(const struct expiry_record *query, uint64_t now_ns)
{
	return query->op == EXPIRY_OP_QUERY &&
	       (query->status == -ENOENT ||
		(!query->status && query->deadline_ns > now_ns));
}

/* Looks for the timers of ACKs that were sent again and found no delivery. Where none
 * is due, the first attempt was carried out, and the ACK has succeeded. One that is due
 * comes again: a restarted daemon does not know what it had delivered. No credit was
 * given yet, so that it cannot be on its way.
 */
static void check_acks(struct expiry *h, struct expiry_record *records,
		       uint32_t nr)
{
	struct expiry_record queries[ACK_BATCH];
	uint32_t found[ACK_BATCH], i = 0, k, count;
	uint64_t now_ns;

	while (i < nr && !h->error) {
		for (count = 0; i < nr && count < ACK_BATCH; i++) {
			if (records[i].op != EXPIRY_OP_ACK ||
			    records[i].status != -ENOENT)
				continue;
			queries[count] = (struct expiry_record) {
				.op = EXPIRY_OP_QUERY,
				.id = records[i].id,
			};
			found[count++] = i;
		}
		if (!count ||
		    transport_unix.submit(h, queries, count) != (int)count)
			continue;
		now_ns = clock_now_ns(h->clock_id);
		for (k = 0; k < count; k++)
			if (is_over(&queries[k], now_ns))
				records[found[k]].status = 0;
	}
	/* A QUERY leaves nothing in doubt. */
	h->in_doubt = 0;
}

/* Continues on one connection, which may break. Adds to *@donep how many of
 * @records were answered. Returns 0, or the errno that ends the call.
 */
static int submit_once(struct expiry *h, struct submission *s,
		       struct expiry_record *records, uint32_t count,
		       uint32_t *donep)
{
	struct link *link = h->link;
	uint32_t rejected, i, done = 0;
	int ret;

	link->repeating = s->doubt;
	ret = link_wait(h);
	if (ret)
		return ret;
	if (link->count != s->connection)
		replay_make_absolute(records, count, s->begun_ns);

	/* Send requests in doubt alone: credit follows them. */
	ret = transport_unix.submit(h, records, s->doubt ?: count);
	if (ret > 0)
		done = ret;
	assert(done <= count);
	link_acked(h, records, done);
	if (s->doubt && !h->error)
		check_acks(h, records, done < s->doubt ? done : s->doubt);
	s->doubt = s->doubt > done ? s->doubt - done : 0;
	*donep += done;
	if (!h->error)
		return 0;

	if (!s->doubt)
		s->doubt = h->in_doubt;
	ret = link_lost(h);
	if (ret)
		return ret;
	rejected = replay_not_idempotent(records + done, s->doubt,
					 h->mode & EXPIRY_MODE_KEYED);
	assert(done + rejected <= count && rejected <= s->doubt);
	for (i = 0; i < rejected; i++)
		records[done + i].status = -ECONNRESET;
	s->doubt -= rejected;
	*donep += rejected;
	return 0;
}

static int reconnect_submit(struct expiry *h, struct expiry_record *records,
			    uint32_t count)
{
	struct link *link = h->link;
	struct submission s = {
		.begun_ns = clock_now_ns(h->clock_id),
		.connection = link->count,
	};
	uint32_t done = 0;
	int ret = 0;

	while (!ret && done < count)
		ret = submit_once(h, &s, records + done, count - done, &done);
	/* Nothing is in doubt any more, or the caller has the errno. */
	link->repeating = false;
	if (link->credit)
		link_step(h);
	return done ? (int)done : ret;
}

static int reconnect_post(struct expiry *h, const struct expiry_record *records,
			  uint32_t count)
{
	struct replay *replay = &h->link->replay;
	const uint64_t now_ns = clock_now_ns(h->clock_id);
	struct expiry_record record;
	uint32_t i;

	assert(h->awaited <= h->posted && h->posted <= h->window);
	if (count > h->window - h->posted)
		count = h->window - h->posted;
	for (i = 0; i < count; i++) {
		record = records[i];
		replay_make_absolute(&record, 1, now_ns);
		ring_put(&replay->ring, &record);
	}
	h->posted += count;
	if (replay_unsent(replay) >= POST_BATCH)
		link_step(h);
	return count;
}

static int reconnect_flush(struct expiry *h)
{
	if (!link_step(h))
		return h->error ?: 1;
	return stream_unsent(&h->stream) || replay_unsent(&h->link->replay);
}

static int reconnect_take(struct expiry *h, struct expiry_record *records,
			  uint32_t max)
{
	int ret, lost;

	if (!link_step(h))
		return h->error;
	/* Events that came with the handshake go first. */
	if (ring_nr(&h->inbox))
		return 0;
	ret = transport_unix.take(h, records, max);
	link_acked(h, records, ret > 0 ? ret : 0);
	if (!h->error)
		return ret;
	lost = link_lost(h);
	return ret > 0 ? ret : lost;
}

static uint32_t reconnect_pending(const struct expiry *h)
{
	return h->link->state == LINK_UP ? stream_nr(&h->stream) : 0;
}

static short reconnect_events(const struct expiry *h)
{
	link_update_events(h);
	return POLLIN;
}

/* Repeats the query as often as the connection breaks before its reply. */
static int reconnect_query(struct expiry *h, const struct query *query)
{
	int ret;

	for (;;) {
		ret = link_wait(h);
		if (ret)
			return ret;
		ret = transport_unix.query(h, query);
		link_acked(h, NULL, 0);
		if (!h->error || ret >= 0)
			return ret;
		ret = link_lost(h);
		if (ret)
			return ret;
	}
}

static int reconnect_rewind(struct expiry *h)
{
	return transport_unix.rewind(h);
}

const struct transport transport_reconnect = {
	.open = reconnect_open,
	.close = reconnect_close,
	.submit = reconnect_submit,
	.post = reconnect_post,
	.flush = reconnect_flush,
	.take = reconnect_take,
	.pending = reconnect_pending,
	.events = reconnect_events,
	.query = reconnect_query,
	.rewind = reconnect_rewind,
};
