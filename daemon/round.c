// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/notify.h"
#include "daemon/server.h"

/* With more queues than this in a thread they are not asked one by one. */
#define SUMMARY_QUEUES	256

static void summarize_queue(const struct queue *queue, struct summary *summary,
			    uint64_t now_ns)
{
	struct expiry_stat stat;
	int64_t in_ns;
	time_t next_s;

	if (queue->server->engine->ops->stat(queue->engine_queue, &stat) < 0)
		return;
	summary->timers += stat.armed + stat.unacked;
	if (!stat.armed || stat.next_ns == EXPIRY_NEVER)
		return;
	in_ns = stat.next_ns - stat.now_ns;
	next_s = ((int64_t)now_ns + in_ns + 500000000) / 1000000000;
	if (!summary->next || next_s < summary->next_s)
		summary->next_s = next_s;
	summary->next = true;
}

static void summarize(struct server *server, struct summary *summary)
{
	uint64_t now_ns = loop_now(&server->loop, CLOCK_REALTIME);
	struct list *bucket, *entry;
	uint32_t i;

	*summary = (struct summary) { 0 };
	if (server->queues.pool.nr > SUMMARY_QUEUES)
		return;
	summary->asked = true;
	for (i = 0; i <= server->queues.mask + 1; i++) {
		bucket = &server->queues.buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next)
			summarize_queue(container_of(entry, struct queue, all),
					summary, now_ns);
	}
}

void round_sum(const struct server *server, struct summary *summary)
{
	struct shards *shards = server->shards;
	uint32_t i;

	*summary = (struct summary) { .asked = true };
	for (i = 0; i < shards->nr; i++) {
		const struct summary *one = &shards->servers[i]->round.summary;

		summary->timers += one->timers;
		summary->asked = summary->asked && one->asked;
		if (one->next &&
		    (!summary->next || one->next_s < summary->next_s)) {
			summary->next_s = one->next_s;
			summary->next = true;
		}
	}
	if (!summary->asked)
		summary->timers = accounts_timers(&shards->accounts);
}

static void round_asked(struct server *server, struct mail *mail)
{
	(void)mail;
	server->round.asked = true;
}

static void round_answered(struct server *server, struct mail *mail)
{
	(void)mail;
	service_answered(&server->service);
}

/* Only to have a turn of the first server, which asks for a tick. */
static void round_stale(struct server *server, struct mail *mail)
{
	(void)server;
	(void)mail;
}

void round_init(struct server *server)
{
	server->round = (struct round) {
		.ask.deliver = round_asked,
		.answer.deliver = round_answered,
		.stale.deliver = round_stale,
	};
	summarize(server, &server->round.summary);
}

static void round_answer(struct server *server)
{
	struct round *round = &server->round;

	if (round->config)
		server_reconfigure(server, round->config);
	round->config = NULL;
	store_retry(server);
	summarize(server, &round->summary);
}

uint32_t round_begin(struct server *server, const struct config *config)
{
	struct shards *shards = server->shards;
	uint32_t i;

	atomic_store(&shards->stale, false);
	for (i = 1; i < shards->nr; i++) {
		struct server *other = shards->servers[i];

		other->round.config = config;
		mail_post(&other->mailbox, &other->round.ask);
	}
	round_answer(server);
	return shards->nr - 1;
}

void round_turn(struct server *server)
{
	struct shards *shards = server->shards;
	struct mailbox *first = &shards->servers[0]->mailbox;

	if (server->round.asked) {
		server->round.asked = false;
		round_answer(server);
		mail_post(first, &server->round.answer);
	} else if (notify_enabled() &&
		   !atomic_load_explicit(&shards->stale,
					 memory_order_relaxed)) {
		atomic_store(&shards->stale, true);
		mail_post(first, &server->round.stale);
	}
}
