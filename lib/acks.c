// SPDX-License-Identifier: LGPL-2.1-or-later
/* ACKs that may have been carried out before the connection broke. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "acks.h"
#include "clock.h"
#include "inbox.h"

int acks_init(struct expiry *h, const struct ring *ring)
{
	size_t size = (size_t)ring->mask + 1;
	struct acks *acks = calloc(1, sizeof(*acks) + size * sizeof(bool));

	if (!acks)
		return -ENOMEM;
	acks->ring = ring;
	h->acks = acks;
	return 0;
}

struct expiry_record acks_query(const struct expiry_record *ack)
{
	return (struct expiry_record){
		.op = EXPIRY_OP_QUERY,
		.id = ack->id,
	};
}

bool acks_is_over(const struct expiry_record *reply, uint64_t now_ns)
{
	return reply->op == EXPIRY_OP_QUERY &&
	       (reply->status == -ENOENT ||
		(!reply->status && reply->deadline_ns > now_ns));
}

/* Sets what is known of the ACK at a place of the ring. */
static void set_over(struct acks *acks, uint32_t at, bool is_over)
{
	bool *place = &acks->is_over[at & acks->ring->mask];

	acks->nr_over += is_over - *place;
	*place = is_over;
}

/* Returns how many requests of the ring are in doubt since an earlier connection. */
static uint32_t nr_in_doubt(const struct acks *acks)
{
	uint32_t nr = acks->end - acks->ring->head;

	/* All of them may have been answered since. */
	return nr <= ring_nr(acks->ring) ? nr : 0;
}

void acks_lost(struct expiry *h, uint32_t sent)
{
	struct acks *acks = h->acks;

	/* It may have ended before they were all sent again. */
	if (sent > nr_in_doubt(acks))
		acks->end = acks->ring->head + sent;
}

void acks_begin(struct expiry *h)
{
	struct acks *acks = h->acks;

	acks->end = acks->ring->head + nr_in_doubt(acks);
	acks->next = acks->ring->head;
	acks->answered = acks->ring->head;
	acks->asked = 0;
}

/* Returns the next ACK in doubt from *@atp on, and moves behind it; NULL: none. */
static const struct expiry_record *next_ack(const struct acks *acks,
					    uint32_t *atp)
{
	const struct ring *ring = acks->ring;
	const struct expiry_record *record;

	while (*atp != acks->end) {
		record = &ring->records[(*atp)++ & ring->mask];
		if (record->op == EXPIRY_OP_ACK)
			return record;
	}
	return NULL;
}

/* Queues QUERYs, as many as the window and the buffer take. */
static void ask(struct expiry *h)
{
	struct acks *acks = h->acks;
	const struct expiry_record *ack;
	struct expiry_record query;

	while (acks->asked < h->window && stream_room(&h->stream)) {
		ack = next_ack(acks, &acks->next);
		if (!ack)
			return;
		query = acks_query(ack);
		stream_put(&h->stream, &query, 1);
		acks->asked++;
	}
}

/* Takes the replies in the buffer, and keeps events. 0, or the errno of a server that
 * answers something else.
 */
static int take_replies(struct expiry *h)
{
	struct acks *acks = h->acks;
	const struct expiry_record *ack, *reply;
	int ret = inbox_sort(h, NULL, 0);

	while (!ret && acks->asked && stream_nr(&h->stream)) {
		reply = stream_units(&h->stream);
		ack = next_ack(acks, &acks->answered);
		assert(ack);
		if (reply->op != EXPIRY_OP_QUERY || reply->status > 0 ||
		    reply->id != ack->id)
			return -EPROTO;
		set_over(acks, acks->answered - 1,
			 acks_is_over(reply, clock_now_ns(h->clock_id)));
		acks->asked--;
		stream_skip(&h->stream, 1);
		ret = inbox_sort(h, NULL, 0);
	}
	return ret;
}

int acks_step(struct expiry *h)
{
	const struct acks *acks = h->acks;
	int ret;

	for (;;) {
		ask(h);
		if (!acks->asked)
			return 1;
		ret = stream_flush(&h->stream);
		if (ret < 0)
			return ret;
		ret = take_replies(h);
		if (ret)
			return ret;
		if (stream_nr(&h->stream) || !acks->asked)
			continue;
		ret = stream_fill(&h->stream, false);
		if (ret <= 0)
			return ret;
	}
}

void acks_complete(struct expiry *h, struct expiry_record *records, uint32_t nr)
{
	struct acks *acks = h->acks;
	uint32_t i, at, replies = 0;

	if (!acks->nr_over)
		return;
	for (i = 0; i < nr; i++)
		replies += !is_event(&records[i]);
	/* Replies come in the order of the requests. */
	at = acks->ring->tail - h->posted - replies;
	for (i = 0; i < nr; i++) {
		if (is_event(&records[i]))
			continue;
		if (acks->is_over[at & acks->ring->mask] &&
		    records[i].op == EXPIRY_OP_ACK &&
		    records[i].status == -ENOENT)
			records[i].status = 0;
		set_over(acks, at++, false);
	}
}
