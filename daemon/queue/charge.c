// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Charges: the timers of each queue are charged to its owner, in all threads
 * together. Far from the owner's limit that is done after the engine; near it,
 * before.
 */
#include <assert.h>
#include <stdbool.h>
#include <time.h>

#include "daemon/engine/engine.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/user.h"
#include "daemon/util/util.h"

/* Least time between two recounts of a user at the limit. */
#define RECOUNT_NS	100000000

static void set_charged(struct queue *queue, uint64_t timers)
{
	if (queue->journal_number)
		counter_add(&queue->context->stat.durable_timers,
			    timers - queue->charged);
	queue->charged = timers;
}

void charge_update(struct queue *queue)
{
	uint64_t timers = queue->engine_queue->timers + queue->pending;

	if (timers == queue->charged)
		return;
	share_add(&queue->user->account->timers, timers - queue->charged);
	set_charged(queue, timers);
}

void charge_complete(struct queue *queue, uint32_t arms)
{
	assert(queue->pending >= arms);
	queue->pending -= arms;
	charge_update(queue);
}

/* Returns whether a keyed queue has this timer: arming it then adds none. */
static bool charge_has_timer(struct queue *queue, uint64_t id)
{
	struct expiry_record record = { .op = EXPIRY_OP_QUERY, .id = id };
	struct engine_io io = { .records = &record, .count = 1 };
	int r = queue->context->engine->ops->submit_now(queue->engine_queue,
							&io);

	return !r && !record.status;
}

static void charge_recount(struct queue *queue)
{
	if (!queue->context->engine->ops->recount(queue->engine_queue))
		charge_update(queue);
}

uint64_t charge_count_timers(struct queue *queue)
{
	charge_recount(queue);
	return queue->engine_queue->timers;
}

void charges_recount_durable(struct context *context)
{
	struct pool *pool = &context->queues->pool;
	struct queue *queue;
	uint32_t i;

	for (i = 0; (queue = pool_at(pool, i)); i++)
		if (queue->user && queue->journal_number)
			charge_recount(queue);
}

static void user_recount(struct user *user)
{
	struct list *entry;

	for (entry = user->queues.next; entry != &user->queues;
	     entry = entry->next)
		charge_recount(container_of(entry, struct queue, of_user));
}

void charges_recount(struct context *context, struct mail *mail)
{
	uint64_t now_ns = loop_now_exactly(CLOCK_MONOTONIC);
	struct list *bucket, *entry;
	uint32_t i;

	(void)mail;
	for (i = 0; i < USERS_BUCKETS; i++) {
		bucket = &context->users.buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			struct user *user =
				container_of(entry, struct user, all);

			if (now_ns - user->account->recounted_ns < RECOUNT_NS)
				user_recount(user);
		}
	}
}

/* Recounts all the user's timers, since an engine's own count may be too high:
 * this thread's now, the others' soon.
 */
static void account_recount(struct context *context, struct user *user)
{
	uint64_t now_ns = loop_now(&context->loop, CLOCK_MONOTONIC);
	struct shared *shared = context->shared;
	uint64_t last_ns = user->account->recounted_ns;
	uint32_t i;

	/* Signed: another thread's turn may have a later time. */
	if ((int64_t)(now_ns - last_ns) < RECOUNT_NS ||
	    !atomic_compare_exchange_strong(&user->account->recounted_ns,
					    &last_ns, now_ns))
		return;
	user_recount(user);
	for (i = 0; i < shared->nr; i++)
		if (shared->contexts[i] != context)
			mail_post(&shared->contexts[i]->mailbox,
				  &shared->contexts[i]->recount);
}

/* Returns whether the user stays below the limit with all requests in flight:
 * those in the buffers of all threads, and in the private memory of clients.
 * The sum is below 2^49, see MOST in config.c.
 */
static bool user_has_headroom(const struct context *context,
			      const struct user *user)
{
	uint64_t now = share_read(&user->account->timers);
	uint64_t limit = context->config.timers_per_user;
	uint64_t bytes = (uint64_t)context->shared->nr *
				 context->buffers.nr_ring *
				 context->buffers.size +
			 context_backlog_max(context);

	return now < limit &&
	       limit - now > bytes / sizeof(struct expiry_record);
}

/* Charges the owner with @arms timers. Returns false if that is too many. */
static bool charge_take(struct queue *queue, uint32_t arms)
{
	uint64_t limit = queue->context->config.timers_per_user;

	if (arms && !share_take(&queue->user->account->timers, arms, limit))
		return false;
	set_charged(queue, queue->charged + arms);
	queue->pending += arms;
	return true;
}

uint32_t charge_admit(struct queue *queue, const struct expiry_record *records,
		      uint32_t count, uint32_t *armsp)
{
	uint32_t arms = 0, i;

	*armsp = 0;
	if (user_has_headroom(queue->context, queue->user))
		return count;

	/* Near the limit each record counts. */
	for (i = 0; i < count; i++)
		arms += records[i].op == EXPIRY_OP_ARM;
	*armsp = arms;
	if (charge_take(queue, arms))
		return count;
	charge_recount(queue);
	if (charge_take(queue, arms))
		return count;
	account_recount(queue->context, queue->user);
	*armsp = 0;
	for (i = 0; i < count; i++) {
		if (records[i].op != EXPIRY_OP_ARM)
			continue;
		if (!charge_take(queue, 1))
			break;
		++*armsp;
	}
	/* Records before the first one above the limit may make room. */
	if (i)
		return i;
	return queue->mode & EXPIRY_MODE_KEYED &&
			       charge_has_timer(queue, records[0].id) ?
		       1 :
		       0;
}
