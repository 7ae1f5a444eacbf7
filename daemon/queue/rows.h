/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows of a checkpoint: each durable queue of the thread, and its timers. They are
 * taken in bounded steps, while requests go on.
 */
#ifndef DAEMON_ROWS_H
#define DAEMON_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/format.h"

struct checkpoint;
struct context;
struct queue;

/**
 * struct rows - how far the checkpoint in progress is
 * @context: const; likewise @checkpoint
 * @index: of the next queue in the pool; likewise @number, @cursor: where in that
 *	queue, 0 = its beginning
 * @limit_number: queues from here on are younger than the checkpoint
 */
struct rows {
	struct context *context;
	struct checkpoint *checkpoint;
	uint64_t index;
	uint64_t number;
	uint64_t cursor;
	uint64_t limit_number;
};

/* Returns the record that makes the queue anew. */
struct journal_make rows_describe(const struct queue *queue);

/* Begins anew, for a checkpoint that has begun. */
void rows_begin(struct rows *rows, uint64_t limit_number);

/* Puts some rows of the checkpoint in progress, at most @max, not 0, and a queue's two
 * at its beginning. Ends it behind the last one.
 */
void rows_put(struct rows *rows, uint64_t max);

#endif /* DAEMON_ROWS_H */
