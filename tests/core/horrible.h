/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The naive twin of struct timers: an array with linear search. It is short
 * enough to be verified by reading; the real code must do the same.
 */
#ifndef TESTS_CORE_HORRIBLE_H
#define TESTS_CORE_HORRIBLE_H

#include "core.h"

struct horrible_timer {
	u64 id;
	u64 deadline;
	u64 cookie;
	u32 period_ms;
	bool armed;
	bool unacked;
	bool past;	/* its deadline had passed when it was set */
	bool redeliver;	/* its next delivery is marked */
	u64 again;	/* what a periodic one's is then due for */
	u64 held_next;	/* @deadline after its last held delivery */
};

/**
 * struct horrible - a queue
 * @mode: EXPIRY_MODE_*
 * @limit: most timers
 * @timer: of these, @nr are in use
 * @held: timers before each held delivery, @nr_held of them
 * @given: every id that a plain queue ever gave, @nr_given of them
 */
struct horrible {
	u32 mode;
	u64 limit;
	u32 nr;
	u32 nr_given;
	u32 given_max;
	struct horrible_timer *timer;
	struct horrible_timer *held;
	u32 nr_held;
	u64 *given;
	u64 arms;
	u64 refreshes;
	u64 cancels;
	u64 acks;
	u64 delivered;
	u64 redelivered;
	u64 past;
	u64 refused;
	u64 refused_limit;
};

void horrible_init(struct horrible *horrible, u32 mode, u64 limit);
void horrible_free(struct horrible *horrible);

struct horrible_timer *horrible_find(struct horrible *horrible, u64 id);

/* Returns the flags of the timer's row in a scan. */
u8 horrible_row_flags(const struct horrible *horrible,
		      const struct horrible_timer *timer);

/* Processes one record; @given is the id that a plain queue has given to a
 * successful ARM, else 0. Asserts that it was never given before.
 */
void horrible_submit(struct horrible *horrible, struct expiry_record *record,
		     u64 now_ns, u64 given);

/* Checks one expiration: NULL, or the fault. */
const char *horrible_deliver(struct horrible *horrible,
			     const struct expiry_record *expired, u64 now_ns,
			     bool hold);

void horrible_release(struct horrible *horrible, u64 id);
void horrible_restore(struct horrible *horrible,
		      const struct expiry_record *expired);
/* Ends all held deliveries: released or restored. */
void horrible_end_held(struct horrible *horrible);
void horrible_rewind(struct horrible *horrible, u64 now_ns);

/* Returns the earliest deadline, EXPIRY_NEVER if nothing is armed. */
u64 horrible_next_ns(const struct horrible *horrible);
u32 horrible_armed(const struct horrible *horrible);

#endif /* TESTS_CORE_HORRIBLE_H */
