// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/loss.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

/* Most bytes of ", NAME NUMBER", and of the sums at the end. */
#define ROW_TEXT	(EXPIRY_NAME_MAX + 32)

void loss_init(struct loss *loss)
{
	*loss = (struct loss) { 0 };
	pthread_mutex_init(&loss->lock, NULL);
}

void loss_deinit(struct loss *loss)
{
	pthread_mutex_destroy(&loss->lock);
}

/* Inserts a queue among the fullest, if it is one of them; called with the
 * lock.
 */
static void add_row(struct loss *loss, const char *name, uint64_t timers)
{
	uint32_t i = loss->nr_rows;

	if (i == LOSS_NAMES && timers <= loss->rows[i - 1].timers)
		return;
	if (i == LOSS_NAMES)
		i--;
	else
		loss->nr_rows++;
	for (; i && loss->rows[i - 1].timers < timers; i--)
		loss->rows[i] = loss->rows[i - 1];
	memcpy(loss->rows[i].name, name, EXPIRY_NAME_MAX);
	loss->rows[i].timers = timers;
}

static void count_queue(struct loss *loss, struct queue *queue)
{
	uint64_t timers = queue->stored || queue->journal_number ?
				  0 : charge_count_timers(queue);

	if (!timers)
		return;
	pthread_mutex_lock(&loss->lock);
	if (queue->name[0]) {
		loss->named += timers;
		loss->queues++;
		add_row(loss, queue->name, timers);
	} else {
		loss->nameless += timers;
	}
	pthread_mutex_unlock(&loss->lock);
}

void loss_count(struct context *context)
{
	struct queues *queues = context->queues;
	struct list *bucket, *entry;
	uint32_t i;

	/* The last bucket has the anonymous queues. */
	for (i = 0; queues->buckets && i <= queues->mask + 1; i++) {
		bucket = &queues->buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next)
			count_queue(context->shared->loss,
				    container_of(entry, struct queue, all));
	}
}

/* Writes names into @text, as many as fit into the line. */
static void print_rows(const struct loss *loss, char *text, size_t size)
{
	uint64_t rest = loss->named;
	size_t len = 0;
	uint32_t i;

	*text = '\0';
	for (i = 0; i < loss->nr_rows; i++) {
		const struct loss_row *row = &loss->rows[i];

		len += snprintf(text + len, size - len, ", %.*s %" PRIu64,
				EXPIRY_NAME_MAX, row->name, row->timers);
		rest -= row->timers;
	}
	if (loss->queues > loss->nr_rows)
		len += snprintf(text + len, size - len,
				", %" PRIu64 " other queues %" PRIu64,
				loss->queues - loss->nr_rows, rest);
	if (loss->nameless)
		snprintf(text + len, size - len,
			 ", queues without a name %" PRIu64, loss->nameless);
}

void loss_log(const struct loss *loss)
{
	static const struct log_about lost = { .id = LOG_TIMERS_LOST };
	uint64_t timers = loss->named + loss->nameless;
	char text[(LOSS_NAMES + 2) * ROW_TEXT];

	if (!timers)
		return;
	print_rows(loss, text, sizeof(text));
	/* Leave out the first separator. */
	log_at(LOG_LEVEL_WARNING, &lost,
	       "%" PRIu64 " timer%s with the daemon: %s", timers,
	       timers == 1 ? " ends" : "s end", text + 2);
}
