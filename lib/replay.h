/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests that may have to be sent again, because the connection broke before
 * their answers came. Whether they were carried out is unknown: only idempotent
 * requests are sent again.
 */
#ifndef LIB_REPLAY_H
#define LIB_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "ring.h"

/**
 * struct replay - posted requests without an answer, oldest first
 * @ring: sized by the window when the handle is opened
 * @sent: how many of them the present connection sent
 */
struct replay {
	struct ring ring;
	uint32_t sent;
};

static inline uint32_t replay_unsent(const struct replay *replay)
{
	return ring_nr(&replay->ring) - replay->sent;
}

/* Returns the next requests to be sent, *@nr of them contiguous. */
const struct expiry_record *replay_next(const struct replay *replay,
					uint32_t *nr);

/* Removes the answered requests: all but @awaited of those sent. Returns how
 * many that is.
 */
uint32_t replay_answered(struct replay *replay, uint32_t awaited);

/* Makes relative deadlines absolute: sending them again must not make them
 * later.
 */
void replay_make_absolute(struct expiry_record *records, uint32_t nr,
			  uint64_t now_ns);

/* Returns how many of @nr requests in doubt must not be sent again: all up to
 * the last one that is not idempotent.
 */
uint32_t replay_not_idempotent(const struct expiry_record *records, uint32_t nr,
			       bool keyed);

/* Prepares sent requests for the next connection after a loss. Those that must
 * not be sent again go to @replies, answered -ECONNRESET.
 */
void replay_lost(struct replay *replay, bool keyed, struct ring *replies);

#endif /* LIB_REPLAY_H */
