/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A worker: one thread that serves. It owns what the thread's context refers to,
 * and runs its turns. There is one for each thread, see server.h.
 */
#ifndef DAEMON_WORKER_H
#define DAEMON_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/client/client.h"
#include "daemon/client/listing.h"
#include "daemon/client/summary.h"
#include "daemon/loop/clock-watch.h"
#include "daemon/queue/context.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"

/**
 * struct worker - a worker
 * @context: the thread's, with pointers to the following
 * @turn_end: called at the end of each turn (const after start)
 * @stop: the worker must end
 */
struct worker {
	struct context context;
	struct queues queues;
	struct connections connections;
	struct listing listing;
	struct summaries summaries;
	struct clock_watch clock;
	struct durable durable;
	void (*turn_end)(struct worker *worker);
	bool stop;
};

/* Initializes the worker, in the thread that runs it. Logs a failure. */
int worker_init(struct worker *worker, struct shared *shared, uint32_t number,
		const struct config *config,
		void (*turn_end)(struct worker *worker));
void worker_deinit(struct worker *worker);

/* Sets other limits from now on; granted resources stay. The first worker gets
 * them from the reader, the others from it.
 */
void worker_reconfigure(struct worker *worker, const struct config *config);

/* Serves until worker_stop(). Returns 0 or a fatal -errno. */
int worker_run(struct worker *worker);
void worker_stop(struct worker *worker);

#endif /* DAEMON_WORKER_H */
