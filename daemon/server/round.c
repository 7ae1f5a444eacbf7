// SPDX-License-Identifier: LGPL-2.1-or-later
#include <time.h>

#include "daemon/client/client.h"
#include "daemon/client/declare.h"
#include "daemon/server/server.h"
#include "daemon/util/notify.h"

/* With more queues in a thread the earliest deadline is not computed. */
#define SUMMARY_QUEUES	256

/* Most age of figures for a client. */
#define SUMMARY_AGE_NS	10000000

static void summarize_queue(const struct queue *queue, struct summary *summary,
			    uint64_t now_ns)
{
	struct expiry_stat stat;
	uint64_t next_ns;

	if (queue->server->engine->ops->stat(queue->engine_queue, &stat) < 0)
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

static void summarize(struct server *server)
{
	uint64_t now_ns = loop_now(&server->loop, CLOCK_REALTIME);
	struct summary summary = { .next_ns = EXPIRY_NEVER };
	struct round *round = &server->round;
	const struct list *bucket, *entry;
	uint32_t i;

	if (server->queues.pool.nr > SUMMARY_QUEUES)
		summary.next_ns = 0;
	for (i = 0; summary.next_ns && i < USERS_BUCKETS; i++) {
		bucket = &server->users.buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next)
			summarize_user(container_of(entry, struct user, all),
				       &summary, now_ns);
	}
	counter_set(&round->timers, summary.timers);
	counter_set(&round->next_ns, summary.next_ns);
	round->summed_ns = loop_now(&server->loop, CLOCK_MONOTONIC);
}

static bool recent(struct server *server, uint64_t ns)
{
	return ns && loop_now(&server->loop, CLOCK_MONOTONIC) - ns <
		     SUMMARY_AGE_NS;
}

void round_sum(const struct server *server, struct summary *summary)
{
	struct shards *shards = server->shards;
	uint32_t i;

	*summary = (struct summary) { .next_ns = EXPIRY_NEVER };
	for (i = 0; i < shards->nr; i++) {
		const struct server *one = shards->servers[i];
		uint64_t late_ns = counter_read(&one->stat.lateness_max_ns);

		summary->timers += counter_read(&one->round.timers);
		summary->next_ns = min_u64(summary->next_ns,
					   counter_read(&one->round.next_ns));
		if (late_ns > summary->lateness_max_ns)
			summary->lateness_max_ns = late_ns;
	}
	if (!summary->next_ns)
		summary->timers = accounts_timers(&shards->accounts);
}

/* Ends a tour: the waiting clients continue. */
static void tour_ends(struct server *server)
{
	struct round *round = &server->round;
	struct list *entry;

	round->touring = false;
	round->toured_ns = loop_now(&server->loop, CLOCK_MONOTONIC);
	while ((entry = list_pop(&round->waiting))) {
		struct client *client =
			container_of(entry, struct client, parked);

		client_unpark(client);
		client->summary_ready = true;
		client_update(client);
	}
}

static void tour_on(struct server *server, struct mail *tour)
{
	struct shards *shards = server->shards;
	uint32_t next = (server->number + 1) % shards->nr;

	mail_post(&shards->servers[next]->mailbox, tour);
}

static void tour_comes(struct server *server, struct mail *mail)
{
	if (!recent(server, server->round.summed_ns))
		summarize(server);
	if (mail == &server->round.tour)
		tour_ends(server);
	else
		tour_on(server, mail);
}

bool round_recent(struct client *client)
{
	struct server *server = client->server;
	struct round *round = &server->round;

	if (server->shards->nr == 1) {
		if (!recent(server, round->summed_ns))
			summarize(server);
		return true;
	}
	/* Accept sums of any age now: the client has waited once. */
	if (client->summary_ready || recent(server, round->toured_ns)) {
		client->summary_ready = false;
		return true;
	}
	client_park(client, &round->waiting);
	if (!round->touring) {
		round->touring = true;
		tour_on(server, &round->tour);
	}
	return false;
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

/* Causes a turn of the first server, which requests a tick. */
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
		.tour.deliver = tour_comes,
	};
	list_init(&server->round.waiting);
	summarize(server);
}

static void round_answer(struct server *server)
{
	struct round *round = &server->round;

	if (round->config) {
		server_reconfigure(server, round->config);
		declare_all(server);
	}
	round->config = NULL;
	store_retry(server);
	summarize(server);
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
