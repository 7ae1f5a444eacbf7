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
#include <string.h>

#include "acks.h"
#include "clock.h"
#include "link.h"
#include "transport-unix.h"

/* Posted requests that are sent without a flush. */
#define POST_BATCH	64

/* Timers of ACKs that are looked for at once. */
#define ACK_BATCH	64

/* Requests of a call that are sent at once on a later connection. */
#define COPIES		512

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
 * @records: the caller's, @count of them; likewise
 * @begun_ns: when it began, on the queue's clock
 * @connection: the connection at that time
 * @done: records that are answered
 * @doubt: records before this one may have been carried out on an earlier connection
 * @checked: no ACK before this one is in doubt
 */
struct submission {
	struct expiry_record *records;
	uint32_t count;
	uint64_t begun_ns;
	uint32_t connection;
	uint32_t done;
	uint32_t doubt;
	uint32_t checked;
};

/* Returns whether the ACK was sent again and found no delivery. */
static bool is_missed(const struct expiry_record *record)
{
	return record->op == EXPIRY_OP_ACK && record->status == -ENOENT;
}

/* Looks for the timers of some ACKs that were sent again and found no delivery. Where
 * none is due, the first attempt was carried out, and the ACK has succeeded. One that is
 * due comes again: a restarted daemon does not know what it had delivered. No credit was
 * given yet, so that it cannot be on its way.
 */
static void check_acks(struct expiry *h, struct submission *s)
{
	struct expiry_record queries[ACK_BATCH];
	uint32_t found[ACK_BATCH], i, k, count = 0;
	uint64_t now_ns;
	int ret = 0;

	for (i = s->checked; i < s->done && count < ACK_BATCH; i++) {
		if (!is_missed(&s->records[i]))
			continue;
		queries[count] = acks_query(&s->records[i]);
		found[count++] = i;
	}
	if (count)
		ret = transport_unix.submit(h, queries, count);
	now_ns = clock_now_ns(h->clock_id);
	for (k = 0; (int)k < ret; k++)
		if (acks_is_over(&queries[k], now_ns))
			s->records[found[k]].status = 0;
	/* The connection may have ended before the others were answered. */
	s->checked = k < count ? found[k] : i;
	/* A QUERY leaves nothing in doubt. */
	h->in_doubt = 0;
}

/* Submits copies whose deadlines are absolute, as many as there is room for. A request
 * without an answer stays as the caller made it: a retry must not find a relative
 * deadline made absolute.
 */
static int submit_copies(struct expiry *h, struct expiry_record *records,
			 uint32_t count, uint64_t begun_ns)
{
	struct expiry_record copies[COPIES];
	int ret;

	if (count > COPIES)
		count = COPIES;
	memcpy(copies, records, count * sizeof(*copies));
	replay_make_absolute(copies, count, begun_ns);
	ret = transport_unix.submit(h, copies, count);
	if (ret > 0)
		memcpy(records, copies, ret * sizeof(*copies));
	return ret;
}

/* Sends what is in doubt, or else the rest. */
static void submit_some(struct expiry *h, struct submission *s)
{
	struct expiry_record *records = s->records + s->done;
	bool is_in_doubt = s->done < s->doubt;
	uint32_t end = is_in_doubt ? s->doubt : s->count;
	int ret;

	if (h->link->count == s->connection)
		ret = transport_unix.submit(h, records, end - s->done);
	else
		ret = submit_copies(h, records, end - s->done, s->begun_ns);
	assert(ret <= (int)(end - s->done));
	if (ret < 0)
		ret = 0;
	link_acked(h, records, ret);
	s->done += ret;
	/* Requests that are answered at the first attempt are in no doubt. */
	if (!is_in_doubt)
		s->checked = s->done;
}

/* Continues on another connection than that which h->error ended. Returns 0, or the
 * errno that ends the call.
 */
static int submit_lost(struct expiry *h, struct submission *s)
{
	uint32_t rejected, i;
	int ret;

	if (s->doubt < s->done + h->in_doubt)
		s->doubt = s->done + h->in_doubt;
	ret = link_lost(h);
	if (ret || s->doubt <= s->done)
		return ret;
	rejected = replay_not_idempotent(s->records + s->done,
					 s->doubt - s->done,
					 h->mode & EXPIRY_MODE_KEYED);
	assert(rejected <= s->doubt - s->done && s->doubt <= s->count);
	for (i = 0; i < rejected; i++)
		s->records[s->done++].status = -ECONNRESET;
	return 0;
}

/* Takes one step on one connection, which may break: requests in doubt alone, so that
 * credit follows them, then their ACKs, then the rest. Returns 0, or the errno that ends
 * the call.
 */
static int submit_once(struct expiry *h, struct submission *s)
{
	struct link *link = h->link;
	int ret;

	link->repeating = s->checked < s->doubt;
	ret = link_wait(h);
	if (ret)
		return ret;
	if (s->checked < s->done && s->done >= s->doubt)
		check_acks(h, s);
	else
		submit_some(h, s);
	return h->error ? submit_lost(h, s) : 0;
}

static int reconnect_submit(struct expiry *h, struct expiry_record *records,
			    uint32_t count)
{
	struct link *link = h->link;
	struct submission s = {
		.records = records,
		.count = count,
		.begun_ns = clock_now_ns(h->clock_id),
		.connection = link->count,
	};
	int ret = 0;

	while (!ret && s.checked < count)
		ret = submit_once(h, &s);
	/* Nothing is in doubt any more, or the caller has the errno. */
	link->repeating = false;
	if (link->credit)
		link_step(h);
	return s.done ? (int)s.done : ret;
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
