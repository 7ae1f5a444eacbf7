// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "daemon/engine/engine.h"
#include "daemon/journal/checkpoint.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/rows.h"
#include "daemon/util/util.h"

/* Rows of a checkpoint in one turn. */
#define SCAN_ROWS	512U

struct journal_make rows_describe(const struct queue *queue)
{
	struct journal_make make = {
		.op = JOURNAL_OP_MAKE,
		.mode = queue->mode,
		.clock_id = queue->clock_id,
		.uid = queue->user->uid,
	};

	memcpy(make.name, queue->name, sizeof(make.name));
	return make;
}

void rows_begin(struct rows *rows, uint64_t limit_number)
{
	rows->index = 0;
	rows->number = 0;
	rows->cursor = 0;
	rows->limit_number = limit_number;
}

/* Puts rows of one queue, up to @count. Returns whether it has more. */
static bool scan_queue(struct rows *rows, struct queue *queue, uint32_t count)
{
	const struct engine_ops *ops = rows->context->engine->ops;
	struct expiry_record records[SCAN_ROWS];
	struct journal_make make;
	int n;

	if (rows->number != queue->journal_number) {
		rows->number = queue->journal_number;
		rows->cursor = 0;
		make = rows_describe(queue);
		checkpoint_make(rows->checkpoint, queue->journal_number, &make,
				charge_count_timers(queue));
		return true;
	}
	n = ops->scan(queue->engine_queue, records, count, &rows->cursor);
	if (n < 0) {
		checkpoint_abandon(rows->checkpoint, n);
		return true;
	}
	checkpoint_put(rows->checkpoint, queue->journal_number, records, n);
	return rows->cursor;
}

/* A queue that is younger than the checkpoint is in the journal as a whole. */
void rows_put(struct rows *rows, uint64_t max)
{
	struct pool *pool = &rows->context->queues->pool;
	uint32_t room = checkpoint_room(rows->checkpoint);
	struct queue *queue;

	while (room && (queue = pool_at(pool, rows->index))) {
		if (queue->user && queue->journal_number &&
		    queue->journal_number < rows->limit_number) {
			max = min_u64(max, SCAN_ROWS);
			if (scan_queue(rows, queue, min_u64(room, max)))
				return;
			room = 0;
		}
		rows->number = 0;
		rows->index++;
	}
	if (room && !pool_at(pool, rows->index))
		checkpoint_end(rows->checkpoint);
}
