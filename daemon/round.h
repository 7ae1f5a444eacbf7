/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rounds: every thread is asked how it is, and given other settings if there are
 * any. Each answers at the end of a turn and nowhere else, so that a loop which
 * is stuck is found out: the service manager's watchdog is answered after a
 * round.
 */
#ifndef DAEMON_ROUND_H
#define DAEMON_ROUND_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "daemon/mailbox.h"

struct config;
struct server;

/**
 * struct summary - of queues
 * @timers: armed, or delivered and not acknowledged
 * @next_s: the earliest deadline as time of day
 * @next: there is one; @asked: @next and @next_s are known
 */
struct summary {
	uint64_t timers;
	time_t next_s;
	bool next;
	bool asked;
};

/**
 * struct round - a thread's part in it
 * @ask: posted to it; @answer: to the first server
 * @asked: to be answered at the end of this turn
 * @config: settings from now on, NULL = as before
 * @summary: of its queues, as it last answered
 * @stale: posted to the first server if something happened since
 */
struct round {
	struct mail ask;
	struct mail answer;
	bool asked;
	const struct config *config;
	struct summary summary;
	struct mail stale;
};

/* At the start, when the server has its queues. */
void round_init(struct server *server);

/* For the first server: ask all. @config, NULL or one that stays until the last
 * answer, is what it has taken over already. Returns how many will answer by
 * service_answered().
 */
uint32_t round_begin(struct server *server, const struct config *config);

/* For the others, at the end of a turn. */
void round_turn(struct server *server);

/* The sum of all summaries. */
void round_sum(const struct server *server, struct summary *summary);

#endif /* DAEMON_ROUND_H */
