// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Requests that may have to be sent again.
 */
#include <assert.h>
#include <errno.h>

#include "replay.h"

const struct expiry_record *replay_next(const struct replay *replay,
					uint32_t *nr)
{
	const struct ring *ring = &replay->ring;
	uint32_t start = (ring->head + replay->sent) & ring->mask;

	*nr = replay_unsent(replay);
	assert(*nr);
	if (*nr > ring->mask + 1 - start)
		*nr = ring->mask + 1 - start;
	return &ring->records[start];
}

uint32_t replay_answered(struct replay *replay, uint32_t awaited)
{
	uint32_t nr = replay->sent - awaited;

	assert(awaited <= replay->sent && replay->sent <= ring_nr(&replay->ring));
	replay->ring.head += nr;
	replay->sent = awaited;
	return nr;
}

void replay_make_absolute(struct expiry_record *records, uint32_t nr,
			  uint64_t now_ns)
{
	struct expiry_record *record;

	for (record = records; record < records + nr; record++) {
		if (!(record->flags & EXPIRY_F_RELATIVE) ||
		    (record->op != EXPIRY_OP_ARM &&
		     record->op != EXPIRY_OP_REFRESH))
			continue;
		record->flags &= ~EXPIRY_F_RELATIVE;
		if (__builtin_add_overflow(now_ns, record->deadline_ns,
					   &record->deadline_ns))
			record->deadline_ns = EXPIRY_NEVER;
	}
}

/* Returns whether a request is idempotent. CANCEL and ACK may then answer
 * -ENOENT, which only says that the timer is gone.
 */
static bool is_idempotent(const struct expiry_record *record, bool keyed)
{
	switch (record->op) {
	case EXPIRY_OP_ARM:
		/* Not idempotent: a plain queue would give a second id, and NEW
		 * would find its own first one.
		 */
		return keyed && !(record->flags & EXPIRY_F_NEW);
	case EXPIRY_OP_REFRESH:
	case EXPIRY_OP_CANCEL:
	case EXPIRY_OP_ACK:
	case EXPIRY_OP_QUERY:
		return true;
	}
	/* CLEAR would also remove what others have armed since. */
	return false;
}

uint32_t replay_not_idempotent(const struct expiry_record *records, uint32_t nr,
			       bool keyed)
{
	while (nr && is_idempotent(&records[nr - 1], keyed))
		nr--;
	return nr;
}

void replay_lost(struct replay *replay, bool keyed, struct ring *replies)
{
	const struct ring *ring = &replay->ring;
	struct expiry_record record;
	uint32_t i, last = 0;

	assert(replay->sent <= ring_nr(ring));
	for (i = 0; i < replay->sent; i++) {
		if (!is_idempotent(&ring->records[(ring->head + i) & ring->mask],
				   keyed))
			last = i + 1;
	}
	for (i = 0; i < last; i++) {
		ring_take(&replay->ring, &record, 1);
		record.status = -ECONNRESET;
		ring_put(replies, &record);
	}
	replay->sent = 0;
}
