/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The heartbeat: every thread reports its state, and takes new settings if there
 * are any. It answers at the end of a turn and nowhere else, so a stuck loop is
 * detected. The service manager's watchdog is answered after all threads.
 */
#ifndef DAEMON_HEARTBEAT_H
#define DAEMON_HEARTBEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/loop/mailbox.h"
#include "daemon/util/config.h"

struct declarations;
struct heartbeats;
struct worker;

/**
 * struct heartbeat - a thread's part in it
 * @heartbeats: of all threads (const); likewise @worker, its own
 * @request: posted to it
 * @answer: posted to the first thread
 * @is_due: an answer is due at this turn's end
 * @config: settings from now on, NULL = as before
 * @declared: declared queues from now on, with @config
 * @stale: posted to the first thread after a change
 */
struct heartbeat {
	struct heartbeats *heartbeats;
	struct worker *worker;
	struct mail request;
	struct mail answer;
	bool is_due;
	const struct config *config;
	const struct declarations *declared;
	struct mail stale;
};

/**
 * struct heartbeats - all threads' parts
 * @all: @nr of them (const once all have begun)
 * @answered: called in the first thread for each answer, with @data
 * @stale: another thread's state changed since the last report
 */
struct heartbeats {
	struct heartbeat *all[THREADS_MAX];
	uint32_t nr;
	void (*answered)(void *data);
	void *data;
	atomic_bool stale;
};

/* Adds the part of a thread; in the first thread. */
void heartbeat_init(struct heartbeat *heartbeat, struct heartbeats *heartbeats,
		    struct worker *worker);

/* Asks all threads; called by the first one. @config: NULL, or settings that it
 * has taken over already and that stay until the last answer. Returns how many
 * answers will come.
 */
uint32_t heartbeats_begin(struct heartbeats *heartbeats,
			  const struct config *config);

/* Answers at the end of a turn; called by the other threads. */
void heartbeat_turn(struct heartbeat *heartbeat);

#endif /* DAEMON_HEARTBEAT_H */
