/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests that may have to be sent again, because the connection broke before
 * their answers came. Whether they were carried out is not known: only what may
 * be carried out twice is sent twice.
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
 * @sent: of these, how many the present connection was given
 */
struct replay {
	struct ring ring;
	uint32_t sent;
};

static inline uint32_t replay_unsent(const struct replay *replay)
{
	return ring_nr(&replay->ring) - replay->sent;
}

/* The next requests that are to be sent, *@nr of them side by side. */
const struct expiry_record *replay_run(const struct replay *replay,
				       uint32_t *nr);

/* The oldest were answered, all but @awaited of those that were sent. Returns
 * how many that is.
 */
uint32_t replay_answered(struct replay *replay, uint32_t awaited);

/* Deadlines from now become absolute, so that being sent again does not make
 * them later.
 */
void replay_fix(struct expiry_record *records, uint32_t nr, uint64_t now_ns);

/* Of @nr requests in doubt, those up to the last that must not be carried out
 * twice are not to be sent again. Returns how many these are.
 */
uint32_t replay_refused(const struct expiry_record *records, uint32_t nr,
			bool keyed);

/* The connection broke: what was sent is to be sent again. What must not be
 * goes to @kept, answered -ECONNRESET.
 */
void replay_lost(struct replay *replay, bool keyed, struct ring *kept);

#endif /* LIB_REPLAY_H */
