/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The summary of all queues. Each thread sums up its own; a mail that passes
 * through all threads brings their sums up to date.
 */
#ifndef DAEMON_SUMMARY_H
#define DAEMON_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/loop/mailbox.h"
#include "daemon/util/counter.h"
#include "daemon/util/list.h"

struct client;
struct context;

/**
 * struct summary - of all queues
 * @timers: armed, or delivered and not acknowledged
 * @next_ns: the earliest deadline as time of day
 * @lateness_max_ns: of all expirations but redeliveries
 *
 * @next_ns is EXPIRY_NEVER if there is none, and 0 if it is not known: there
 * are too many queues to check each. @timers may be too high then.
 */
struct summary {
	uint64_t timers;
	uint64_t next_ns;
	uint64_t lateness_max_ns;
};

/**
 * struct summaries - a thread's part
 * @timers: of its queues, for all threads; likewise @next_ns
 * @summed_ns: time of that sum, CLOCK_MONOTONIC, 0 = never
 * @pass: mail through all threads, each sums its queues
 * @passing: @pass is in progress
 * @passed_ns: when the last @pass returned, 0 = never
 * @waiting: clients that wait for @pass, by their @parked
 */
struct summaries {
	counter_t timers;
	counter_t next_ns;
	uint64_t summed_ns;
	struct mail pass;
	bool passing;
	uint64_t passed_ns;
	struct list waiting;
};

/* Initializes the thread's part, after its queues. */
void summaries_init(struct context *context);

/* Sums up the thread's queues. */
void summary_update(struct context *context);

/* Returns whether summary_sum() is recent: 40 us old for each of up to 256 queues. If
 * not, the client is @busy until all threads have summed up, and its request
 * follows then. Any number of clients' requests share one pass.
 */
bool summary_recent(struct client *client);

/* Returns the last sums of all threads; in any thread. */
void summary_sum(const struct context *context, struct summary *summary);

#endif /* DAEMON_SUMMARY_H */
