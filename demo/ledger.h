/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ledger records requests of a queue and their results, timer by timer, to
 * check every expiration against the contract:
 *
 * - never before its deadline, which is the last one that was answered with
 *   success;
 * - in order of deadline;
 * - every timer once; those whose cancelling succeeded: never.
 *
 * Requests and expirations travel on different connections and may cross. A
 * request that was answered -ENOENT is right if the timer had expired with its
 * former values, and the ledger checks that.
 *
 * A durable queue may outlive its server. What was not answered then is *in doubt*:
 * it may have been carried out before it was sent again. Expirations that were not
 * acknowledged come again, marked, and those that are marked are in order of deadline.
 */
#ifndef DEMO_LEDGER_H
#define DEMO_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <expiry/expiry.h>

/**
 * struct ledger_timer - one timer; its number in the ledger is its cookie
 * @id: as the queue named it, 0 until it did
 * @deadline: the one in force; once delivered, its expiration's
 * @asked: the one a refresh in flight requests
 * @in_flight: op of the unanswered request, 0 = none
 * @armed: an ARM was sent and not refused
 * @changed: a REFRESH or CANCEL was sent
 * @delivered: its expiration came
 * @cancelled: cancelling it succeeded
 * @timely: @deadline was in force before it came
 * @in_doubt: a request was not answered when the server ended
 */
struct ledger_timer {
	uint64_t id;
	uint64_t deadline;
	uint64_t asked;
	uint8_t in_flight;
	bool armed;
	bool changed;
	bool delivered;
	bool cancelled;
	bool timely;
	bool in_doubt;
};

/**
 * struct ledger - all of them, and the sums
 * @timers: @nr_max of them; @nr armed, the first @named answered
 * @lateness: of the expirations, in nanoseconds, @delivered of them
 * @last: latest deadline delivered so far; @last_again: of those marked
 * @unanswered: requests in flight
 * @outstanding: armed, not cancelled, not delivered; at the end: lost
 * @armed: timers armed; likewise @refreshed, @cancelled
 * @too_late: refreshes and cancels of a timer just expired
 * @refused: other refused requests; @refusal is the first's reason
 * @delivered: expirations of a timer that was due one
 * @early: before the deadline
 * @misdated: for another deadline or with another id than the timer's
 * @disorder: after one with a later deadline
 * @again: a second time, marked or in doubt
 * @duplicate: a second time otherwise
 * @cancelled_delivered: although cancelling had succeeded
 * @unknown: of a timer that was never armed
 */
struct ledger {
	struct ledger_timer *timers;
	uint32_t nr_max;
	uint32_t nr;
	uint32_t named;
	uint64_t *lateness;
	uint64_t last;
	uint64_t last_again;
	uint64_t unanswered;
	uint64_t outstanding;
	uint64_t armed;
	uint64_t refreshed;
	uint64_t cancelled;
	uint64_t too_late;
	uint64_t refused;
	int refusal;
	uint64_t delivered;
	uint64_t early;
	uint64_t misdated;
	uint64_t disorder;
	uint64_t again;
	uint64_t duplicate;
	uint64_t cancelled_delivered;
	uint64_t unknown;
};

/* Initializes a ledger. 0 or -ENOMEM. */
int ledger_init(struct ledger *ledger, uint32_t nr_max);
void ledger_deinit(struct ledger *ledger);

/* Records that the server has ended: all that is not answered is in doubt. */
void ledger_broken(struct ledger *ledger);

/* Records @record as sent: an ARM of the next timer (sets the cookie), or a
 * REFRESH or CANCEL of the timer of its cookie.
 */
void ledger_sent(struct ledger *ledger, struct expiry_record *record);

/* Records its answer, which arrived at @now_ns. */
void ledger_answer(struct ledger *ledger, const struct expiry_record *record,
		   uint64_t now_ns);

/* Records an expiration, which arrived at @now_ns. */
void ledger_expired(struct ledger *ledger, const struct expiry_record *record,
		    uint64_t now_ns);

/* Adds the sums of @ledger to those of @sums. */
void ledger_add(struct ledger *sums, const struct ledger *ledger);

/* Returns whether everything was as the contract requires. */
bool ledger_clean(const struct ledger *ledger);

/* Sorts @lateness, for ledger_percentile(). */
void ledger_sort(struct ledger *ledger);

/* Returns the lateness that @permille of the expirations did not exceed; 1000 =
 * the greatest.
 */
uint64_t ledger_percentile(const struct ledger *ledger, unsigned int permille);

#endif /* DEMO_LEDGER_H */
