// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The daemon's journals and durable queues: what the simulator knows of their structs.
 */
#include "daemon/client/client.h"
#include "daemon/queue/context.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"
#include "tests/sim/inside.h"
#include "tests/sim/lives.h"

bool inside_is_durable(const void *owner)
{
	const struct queue *queue = owner;

	return queue && queue->journal_number;
}

void inside_mark(const void *owner, struct expiry_record *records, uint32_t nr)
{
	const struct queue *queue = owner;
	uint32_t i;

	for (i = 0; i < nr && queue->journal_number; i++) {
		if (records[i].deadline_ns < queue->late_before_ns)
			records[i].flags |= EXPIRY_F_LATE;
		if (records[i].deadline_ns < queue->again_before_ns)
			records[i].flags |= EXPIRY_F_REDELIVERED;
	}
}

/* Returns the only client of the queue that is no observer. */
static struct peer *only_client(const struct queue *queue)
{
	const struct list *all = &queue->context->connections->clients;
	const struct list *entry;

	for (entry = all->next; entry != all; entry = entry->next) {
		const struct client *client =
			container_of(entry, struct client, all);

		if (client->queue == queue && !client->observes)
			return stream_of(client->fd)->peer;
	}
	sim_fail("queue %.24s is dropped by nobody", queue->name);
}

void inside_want_checkpoint(struct rng *rng)
{
	uint32_t i = rng_below(rng, 8);

	if (inside_shared && i < inside_shared->nr && rng_hits(rng, 200) &&
	    inside_shared->contexts[i]->durable)
		inside_shared->contexts[i]->durable->wants_checkpoint = true;
}

bool inside_journal_fails(void)
{
	uint32_t i;

	for (i = 0; inside_shared && i < inside_shared->nr; i++) {
		const struct durable *durable =
			inside_shared->contexts[i]->durable;

		if (durable && (durable->journal.state > JOURNAL_OPEN ||
				durable->journal.is_full ||
				durable->journal.retry_ns > sim.mono_ns))
			return true;
	}
	return false;
}

static void trace_journal(const struct context *context)
{
	const struct durable *durable = context->durable;
	const struct journal *journal = &durable->journal;

	trace("thread %u: journal state %u, blocks %llu written, %llu durable, %llu answered of %llu; %u records gather, %u segments ahead, retry at %llu%s%s%s%s",
	      context->number, journal->state,
	      (unsigned long long)journal->written,
	      (unsigned long long)journal->durable,
	      (unsigned long long)journal->acked,
	      (unsigned long long)journal->next_lsn - 1,
	      journal->gather[journal->gathering].block->count,
	      journal->nr_ahead, (unsigned long long)journal->retry_ns,
	      journal->committing ? ", commits" : "",
	      journal->flushing ? ", flushes" : "",
	      journal->making ? ", makes a segment" : "",
	      journal->is_full ? ", is full" : "");
	trace("thread %u: checkpoint state %u, room for %u, again at %llu%s%s",
	      context->number, durable->checkpoint.state,
	      checkpoint_room(&durable->checkpoint),
	      (unsigned long long)durable->retry_ns,
	      durable->checkpoint.writing ? ", writes" : "",
	      durable->wants_checkpoint ? ", wanted" : "");
}

void inside_trace(void)
{
	uint32_t i;

	for (i = 0; inside_shared && i < inside_shared->nr; i++)
		if (inside_shared->contexts[i] &&
		    inside_shared->contexts[i]->durable)
			trace_journal(inside_shared->contexts[i]);
}

/**
 * struct ending - the last end of a durable queue of one name
 * @durable: of the thread whose journal has it, in block @lsn; NULL: there is none
 */
struct ending {
	const struct durable *durable;
	uint64_t lsn;
};

/* Names that clients use, a to e; another one is a liar's. */
static struct ending endings[5];

static struct ending *ending_of(const char *name)
{
	uint32_t i = name[0] - 'a';

	return i < ARRAY_SIZE(endings) && !name[1] ? &endings[i] : NULL;
}

/* Fails if a loss of power may leave the name in the journals of two threads. The
 * queue that was dropped is there again then, or the daemon does not start.
 */
static void check_name_is_free(const struct queue *queue)
{
	const struct durable *durable = queue->context->durable;
	const struct ending *ending = ending_of(queue->name);

	if (ending && ending->durable && ending->durable != durable &&
	    ending->durable->journal.durable < ending->lsn)
		sim_fail("queue %.24s is made in thread %u before its end in thread %u is durable",
			 queue->name, queue->context->number,
			 ending->durable->context->number);
}

void __real_durable_make(struct queue *queue);
void __wrap_durable_make(struct queue *queue);
void __real_durable_drop(struct queue *queue);
void __wrap_durable_drop(struct queue *queue);

void __wrap_durable_make(struct queue *queue)
{
	check_name_is_free(queue);
	__real_durable_make(queue);
	past_made(queue->name);
}

void __wrap_durable_drop(struct queue *queue)
{
	const struct durable *durable = queue->context->durable;
	struct ending *ending = ending_of(queue->name);
	struct peer *peer = only_client(queue);

	peer->has_dropped = true;
	peer->dropped = past_dropped(queue->name);
	__real_durable_drop(queue);
	if (ending)
		*ending = (struct ending) {
			durable, journal_pending(&durable->journal),
		};
}
