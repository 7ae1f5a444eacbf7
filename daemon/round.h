/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rounds: every thread reports its state, and gets new settings if there are
 * any. Each answers at the end of a turn and nowhere else, so a stuck loop is
 * detected: the service manager's watchdog is answered after a round.
 */
#ifndef DAEMON_ROUND_H
#define DAEMON_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/counter.h"
#include "daemon/mailbox.h"
#include "daemon/util.h"

struct client;
struct config;
struct server;

/**
 * struct summary - of all queues
 * @timers: armed, or delivered and not acknowledged; may be too high if @next_ns
 *	is 0
 * @next_ns: the earliest deadline as time of day; EXPIRY_NEVER: there is none; 0:
 *	not known, for there are too many queues to ask them one by one
 * @lateness_max_ns: of all expirations, those delivered again left out
 */
struct summary {
	uint64_t timers;
	uint64_t next_ns;
	uint64_t lateness_max_ns;
};

/**
 * struct round - a thread's part in it
 * @ask: posted to it; @answer: to the first server
 * @asked: to be answered at the end of this turn
 * @config: settings from now on, NULL = as before
 * @stale: posted to the first server if something happened since
 *
 * @timers: of its queues, as in struct summary, for all threads to read; likewise
 *	@next_ns
 * @summed_ns: when that was, CLOCK_MONOTONIC, 0 = never
 * @tour: goes through all threads, and each sums up its queues; under way if
 *	@touring
 * @toured_ns: when the last one came back, 0 = never
 * @waiting: clients that wait for it, by their @asking
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

/* Begins, when the server has its queues. */
void round_init(struct server *server);

/* For the first server: asks all. @config is NULL or settings that it has taken
 * over already and that stay until the last answer. Returns how many will
 * answer by service_answered().
 */
uint32_t round_begin(struct server *server, const struct config *config);

/* For the others, at the end of a turn. */
void round_turn(struct server *server);

/* Returns whether round_sum() is a few hundredths of a second old at most. If
 * not, the client is @busy until all threads have summed up, and its request
 * follows then. Clients may send any number of them.
 */
bool round_recent(struct client *client);

/* Returns the last sums of all threads; in any thread. */
void round_sum(const struct server *server, struct summary *summary);

#endif /* DAEMON_ROUND_H */
