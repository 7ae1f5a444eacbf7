/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timers that the program yields again when its queue is empty or lost.
 *
 * A connection that needs them is not up before all of them are armed: they
 * precede requests in doubt, and credit.
 */
#ifndef LIB_RESTORE_H
#define LIB_RESTORE_H

#include "internal.h"

/* Most timers asked for at once, and sent together. */
#define RESTORE_BATCH	512

/**
 * struct restore
 * @next: the program's function; likewise @arg
 * @nr: records of @batch
 * @size: records that the program fills in at once
 * @wanted: the queue was empty or lost, and not all timers are armed
 * @cursor: the program's
 * @sent: @batch is sent
 * @answered: of @batch
 * @busy: of these, refused for now; they are at the beginning of @batch
 * @pause_ms: pause before the next attempt with @batch; 0 = none was refused
 * @retry_ns: when that is, on CLOCK_MONOTONIC
 * @refused_ns: since when the server armed none; 0 = it does
 * @armed: timers armed, to be counted by the caller
 * @batch: records that are being armed
 */
struct restore {
	expiry_restore_fn *next;
	void *arg;
	uint32_t nr;
	uint32_t size;
	bool wanted;
	bool sent;
	uint64_t cursor;
	uint32_t answered;
	uint32_t busy;
	uint32_t pause_ms;
	uint64_t retry_ns;
	uint64_t refused_ns;
	uint64_t armed;
	struct expiry_record batch[RESTORE_BATCH];
};

/* Makes a handle one whose program yields timers. 0 or -ENOMEM. */
int restore_init(struct expiry *h, const struct expiry_options *options);

/* Returns whether timers are to be armed before the connection is up. */
static inline bool restore_is_wanted(const struct expiry *h)
{
	return h->restore && h->restore->wanted;
}

/* Begins again with the program's first timer, on a new connection. */
void restore_begin(struct expiry *h);

/* Continues as far as possible without waiting. Returns 1 when all are armed, 0
 * to wait for the socket or for restore_pause_ns(), or -errno of the connection.
 * A refusal, and an error of the program's function, break the handle.
 */
int restore_step(struct expiry *h);

/* Returns the time until the next attempt, at least 1, or 0 if an answer is awaited. */
uint64_t restore_pause_ns(const struct expiry *h);

/* Does all of it on a connection that is not replaced. 0 or -errno. */
int restore_run(struct expiry *h);

#endif /* LIB_RESTORE_H */
