/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rounds: every thread reports its state, and takes new settings if there are
 * any. It answers at the end of a turn and nowhere else, so a blocked_lru loop is
 * detected. The service manager's watchdog is answered after a round.
 */
#ifndef DAEMON_ROUND_H
#define DAEMON_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/loop/mailbox.h"
#include "daemon/util/counter.h"
#include "daemon/util/util.h"

struct client;
struct config;
struct server;

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
 * struct round - a thread's part in it
 * @ask: posted to it
 * @answer: posted to the first server
 * @asked: an answer is due at this turn's end
 * @config: settings from now on, NULL = as before
 * @stale: posted to the first server after a change
 *
 * @timers: of its queues, for all threads; likewise @next_ns
 * @summed_ns: time of that sum, CLOCK_MONOTONIC, 0 = never
 * @tour: mail through all threads, each sums its queues
 * @touring: @tour is in progress
 * @toured_ns: when the last tour returned, 0 = never
 * @waiting: clients that wait for the tour, by their @parked
 */
struct round {
	struct mail ask;
	struct mail answer;
	bool asked;
	const struct config *config;
	struct mail stale;

	counter_t timers;
	counter_t next_ns;
	uint64_t summed_ns;
	struct mail tour;
	bool touring;
	uint64_t toured_ns;
	struct list waiting;
};

/* Initializes the round, after the server's queues. */
void round_init(struct server *server);

/* Asks all threads; called by the first server. @config: NULL, or settings that
 * it has taken over already and that stay until the last answer. Returns how
 * many threads will answer by service_answered().
 */
uint32_t round_begin(struct server *server, const struct config *config);

/* Answers at the end of a turn; called by the other servers. */
void round_turn(struct server *server);

/* Returns whether round_sum() is a few hundredths of a second old at most. If
 * not, the client is @busy until all threads have summed up, and its request
 * follows then. Any number of clients' requests share one tour.
 */
bool round_recent(struct client *client);

/* Returns the last sums of all threads; in any thread. */
void round_sum(const struct server *server, struct summary *summary);

#endif /* DAEMON_ROUND_H */
