// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <time.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/input.h"
#include "daemon/client/summary.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

/* With more queues in a thread the earliest deadline is not computed. */
#define SUMMARY_QUEUES	256

/* Most age of figures for a client: for each queue, and for each thread but the first.
 * Summing up takes a small fraction of it, however often clients ask.
 */
#define SUMMARY_AGE_QUEUE_NS	40000
#define SUMMARY_AGE_THREAD_NS	1000000

static void summarize_queue(const struct queue *queue, struct summary *summary,
			    uint64_t now_ns)
{
	struct expiry_stat stat;
	uint64_t next_ns;

	if (queue->context->engine->ops->stat(queue->engine_queue, &stat) < 0)
		return;
	summary->timers += stat.armed + stat.unacked;
	if (!stat.armed || stat.next_ns == EXPIRY_NEVER)
		return;
	next_ns = stat.next_ns;
	if (queue->clock_id != CLOCK_REALTIME)
		next_ns += now_ns - stat.now_ns;
	summary->next_ns = min_u64(summary->next_ns, next_ns);
}

static void summarize_user(const struct user *user, struct summary *summary,
			   uint64_t now_ns)
{
	const struct list *entry;

	for (entry = user->queues.next; entry != &user->queues;
	     entry = entry->next)
		summarize_queue(container_of(entry, struct queue, of_user),
				summary, now_ns);
}

void summary_update(struct context *context)
{
	uint64_t now_ns = loop_now(&context->loop, CLOCK_REALTIME);
	struct summary summary = { .next_ns = EXPIRY_NEVER };
	struct summaries *summaries = context->summaries;
	const struct list *bucket, *entry;
	uint32_t i;

	if (context->queues->pool.nr > SUMMARY_QUEUES)
		summary.next_ns = 0;
	for (i = 0; summary.next_ns && i < USERS_BUCKETS; i++) {
		bucket = &context->users.buckets[i];
		for (entry = bucket->next; entry != bucket; entry = entry->next)
			summarize_user(container_of(entry, struct user, all),
				       &summary, now_ns);
	}
	counter_set(&summaries->timers, summary.timers);
	counter_set(&summaries->next_ns, summary.next_ns);
	summaries->summed_ns = loop_now(&context->loop, CLOCK_MONOTONIC);
}

static bool recent(struct context *context, uint64_t ns)
{
	struct shared *shared = context->shared;
	uint64_t queues = min_u64(share_read(&shared->queues) + 1,
				  SUMMARY_QUEUES);
	uint64_t age_ns = queues * SUMMARY_AGE_QUEUE_NS +
			  (shared->nr - 1) * (uint64_t)SUMMARY_AGE_THREAD_NS;

	return ns && loop_now(&context->loop, CLOCK_MONOTONIC) - ns < age_ns;
}

void summary_sum(const struct context *context, struct summary *summary)
{
	struct shared *shared = context->shared;
	uint32_t i;

	*summary = (struct summary) { .next_ns = EXPIRY_NEVER };
	for (i = 0; i < shared->nr; i++) {
		const struct context *one = shared->contexts[i];
		uint64_t late_ns = counter_read(&one->stat.lateness_max_ns);

		summary->timers += counter_read(&one->summaries->timers);
		summary->next_ns =
			min_u64(summary->next_ns,
				counter_read(&one->summaries->next_ns));
		if (late_ns > summary->lateness_max_ns)
			summary->lateness_max_ns = late_ns;
	}
	if (!summary->next_ns)
		summary->timers = accounts_timers(&shared->accounts);
}

/* Ends a pass through all threads: the waiting clients continue. */
static void pass_end(struct context *context)
{
	struct summaries *summaries = context->summaries;
	struct list *entry;

	assert(summaries->passing);
	summaries->passing = false;
	summaries->passed_ns = loop_now(&context->loop, CLOCK_MONOTONIC);
	while ((entry = list_pop(&summaries->waiting))) {
		struct client *client =
			container_of(entry, struct client, parked);

		client_unpark(client);
		client->summary_ready = true;
		client_update(client);
	}
}

static void pass_on(struct context *context, struct mail *pass)
{
	struct shared *shared = context->shared;
	uint32_t next = (context->number + 1) % shared->nr;

	mail_post(&shared->contexts[next]->mailbox, pass);
}

static void pass_arrived(struct context *context, struct mail *mail)
{
	if (!recent(context, context->summaries->summed_ns))
		summary_update(context);
	if (mail == &context->summaries->pass)
		pass_end(context);
	else
		pass_on(context, mail);
}

bool summary_recent(struct client *client)
{
	struct context *context = client->context;
	struct summaries *summaries = context->summaries;

	if (context->shared->nr == 1) {
		if (!recent(context, summaries->summed_ns))
			summary_update(context);
		return true;
	}
	/* Accept sums of any age now: the client has waited once. */
	if (client->summary_ready || recent(context, summaries->passed_ns)) {
		client->summary_ready = false;
		return true;
	}
	client_park(client, &summaries->waiting);
	if (!summaries->passing) {
		summaries->passing = true;
		pass_on(context, &summaries->pass);
	}
	return false;
}

void summaries_init(struct context *context)
{
	struct summaries *summaries = context->summaries;

	*summaries = (struct summaries) { .pass.deliver = pass_arrived };
	list_init(&summaries->waiting);
	summary_update(context);
}
