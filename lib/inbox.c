// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records that the server sent: accounted for, kept, taken and dropped. */
#include <assert.h>
#include <errno.h>

#include "inbox.h"

/* Returns whether @reply answers @request. */
static bool is_answer(const struct expiry *h, const struct expiry_record *reply,
		      const struct expiry_record *request)
{
	if (reply->op != request->op || reply->status > 0)
		return false;
	/* The daemon's own requests get another number there, and so does a plain queue's ARM:
	 * the new timer's.
	 */
	return reply->id == request->id || request->op >= EXPIRY_OP_HELLO ||
	       (request->op == EXPIRY_OP_ARM && !(h->mode & EXPIRY_MODE_KEYED));
}

/* Returns whether a record may answer a posted request, whose record the handle did not keep.
 */
static bool may_answer(const struct expiry_record *reply)
{
	return reply->op < EXPIRY_OP_HELLO && reply->status <= 0;
}

/* Accounts for an event: 0 or -EPROTO. None comes before HELLO's reply, when there is no ring
 * yet; MISSED is an observer's. A status would make it a reply.
 */
static int event_account(struct expiry *h, const struct expiry_record *record)
{
	if (record->status)
		return -EPROTO;
	if (h->observe && h->inbox.records)
		return 0;
	if (!h->consume || !h->inbox.records || record->op == EXPIRY_OP_MISSED)
		return -EPROTO;
	if (record->op == EXPIRY_OP_EXPIRED) {
		if (!h->granted)
			return -EPROTO;
		h->granted--;
		assert(credit_is_bounded(h));
	}
	return 0;
}

/* Keeps a copy. No credit bounds an observer's
 * records: copies that do not fit into the ring count as missed, as in the server.
 */
static void copy_keep(struct expiry *h, const struct expiry_record *record)
{
	struct expiry_record missed = { .op = EXPIRY_OP_MISSED, .cookie = 1 };
	__u64 *sum;

	if (h->held + 1 < h->credit) {
		h->missed_held = false;
		h->held++;
		ring_put(&h->inbox, record);
		return;
	}
	if (record->op == EXPIRY_OP_MISSED)
		missed.cookie = record->cookie;
	if (h->missed_held) {
		assert(h->missed - h->inbox.head < ring_nr(&h->inbox));
		sum = &h->inbox.records[h->missed & h->inbox.mask].cookie;
		/* A server may say any number. */
		if (__builtin_add_overflow(*sum, missed.cookie, sum))
			*sum = UINT64_MAX;
		return;
	}
	h->missed = h->inbox.tail;
	h->missed_held = true;
	h->held++;
	ring_put(&h->inbox, &missed);
}

/* Keeps an event while a synchronous call waits. */
static void event_keep(struct expiry *h, const struct expiry_record *record)
{
	if (h->observe) {
		copy_keep(h, record);
		return;
	}
	if (record->op == EXPIRY_OP_EXPIRED) {
		h->held++;
		assert(credit_is_bounded(h));
		ring_put(&h->inbox, record);
		return;
	}
	/* The program needs only the last of several steps. */
	if (h->clock_set_held) {
		assert(h->clock_set - h->inbox.head < ring_nr(&h->inbox));
		h->inbox.records[h->clock_set & h->inbox.mask] = *record;
		return;
	}
	h->clock_set = h->inbox.tail;
	h->clock_set_held = true;
	ring_put(&h->inbox, record);
}

int inbox_sort(struct expiry *h, struct expiry_record *replies, uint32_t max)
{
	const struct expiry_record *record = stream_units(&h->stream);
	uint32_t nr = stream_nr(&h->stream);
	uint32_t i, found = 0;

	for (i = 0; i < nr && (!max || found < max); i++, record++) {
		if (is_event(record)) {
			if (event_account(h, record))
				goto broken;
			event_keep(h, record);
		} else if (h->awaited) {
			if (!may_answer(record))
				goto broken;
			h->awaited--;
			ring_put(&h->inbox, record);
		} else if (max) {
			if (!is_answer(h, record, &replies[found]))
				goto broken;
			replies[found++] = *record;
		} else {
			break;
		}
	}
	stream_skip(&h->stream, i);
	return found;
broken:
	break_handle(h, -EPROTO);
	return found ? (int)found : h->error;
}

int inbox_account(struct expiry *h, const struct expiry_record *records,
		  uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		if (is_event(&records[i])) {
			if (event_account(h, &records[i]))
				return -EPROTO;
		} else if (h->awaited && may_answer(&records[i])) {
			assert(h->awaited <= h->posted);
			h->awaited--;
			h->posted--;
		} else {
			return -EPROTO;
		}
	}
	return 0;
}

uint32_t inbox_take(struct expiry *h, struct expiry_record *records,
		    uint32_t max)
{
	uint32_t i, nr = ring_take(&h->inbox, records, max);

	/* The MISSED that counts further copies may be handed out now. */
	h->missed_held = h->missed_held && (int32_t)(h->missed - h->inbox.head) >= 0;
	for (i = 0; i < nr; i++) {
		if (records[i].op == EXPIRY_OP_EXPIRED ||
		    (h->observe && is_event(&records[i]))) {
			assert(h->held);
			h->held--;
		} else if (records[i].op == EXPIRY_OP_CLOCK_SET) {
			assert(h->clock_set_held);
			h->clock_set_held = false;
		} else {
			assert(h->posted);
			h->posted--;
		}
	}
	return nr;
}

void inbox_drop_expirations(struct expiry *h)
{
	uint32_t i, nr = ring_nr(&h->inbox);
	struct expiry_record record;

	if (h->observe)
		return;
	for (i = 0; i < nr; i++) {
		ring_take(&h->inbox, &record, 1);
		if (record.op == EXPIRY_OP_EXPIRED)
			continue;
		if (record.op == EXPIRY_OP_CLOCK_SET)
			h->clock_set = h->inbox.tail;
		ring_put(&h->inbox, &record);
	}
	h->granted += h->held;
	h->held = 0;
	assert(credit_is_bounded(h));
	h->credit_due = 0;
}
