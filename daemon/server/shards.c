// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/queue/declaration.h"
#include "daemon/server/handshake.h"
#include "daemon/server/server.h"
#include "daemon/server/shards.h"
#include "daemon/util/log.h"

/* Align each server to avoid false sharing. */
#define SHARD_ALIGN	128

/**
 * struct shard - a server and its thread
 * @config: its first settings
 * @begun: the server runs, or failed with @result
 * @result: 0 or -errno, of the start and the run
 * @stop: posted to end it
 * @failed: posted to the first server after a failure
 */
struct shard {
	struct server server;
	const struct config *config;
	pthread_t thread;
	sem_t begun;
	int result;
	struct mail stop;
	struct mail failed;
};

static struct shard *shard_of(struct server *server)
{
	return container_of(server, struct shard, server);
}

static void shard_stop(struct server *server, struct mail *mail)
{
	(void)mail;
	server_stop(server);
}

static struct shard *shard_new(struct shards *shards, uint32_t number)
{
	size_t size = (sizeof(struct shard) + SHARD_ALIGN - 1) &
		      ~(size_t)(SHARD_ALIGN - 1);
	struct shard *shard = aligned_alloc(SHARD_ALIGN, size);

	if (!shard) {
		log_err("thread %u: %s", number, strerror(ENOMEM));
		return NULL;
	}
	memset(shard, 0, size);
	shard->stop.deliver = shard_stop;
	shard->failed.deliver = shard_stop;
	shards->servers[number] = &shard->server;
	return shard;
}

/* Runs a server. All its steps run in this thread: a ring belongs to its maker.
 */
static void *shard_main(void *data)
{
	struct shard *shard = data;
	struct server *server = &shard->server;
	struct shards *shards = server->shards;
	char name[16];

	snprintf(name, sizeof(name), "expiryd-%u", server->number);
	pthread_setname_np(pthread_self(), name);
	shard->result = server_init(server, shards, server->number,
				    shard->config);
	sem_post(&shard->begun);
	if (!shard->result) {
		shard->result = server_run(server);
		if (shard->result < 0)
			mail_post(&shards->servers[0]->mailbox,
				  &shard->failed);
	}
	server_deinit(server);
	return NULL;
}

/* Starts a server's thread. Returns 0 once it runs, or -errno. */
static int shard_start(struct shards *shards, uint32_t number,
		       const struct config *config)
{
	struct shard *shard = shard_new(shards, number);
	sigset_t all, before;
	int r;

	if (!shard)
		return -ENOMEM;
	shard->server.shards = shards;
	shard->server.number = number;
	shard->config = config;
	sem_init(&shard->begun, 0, 0);
	/* Only the first thread takes signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&shard->thread, NULL, shard_main, shard);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		log_err("thread %u: %s", number, strerror(-r));
		shards->servers[number] = NULL;
		free(shard);
		return r;
	}
	while (sem_wait(&shard->begun) < 0)
		;
	return shard->result;
}

/* Ends all started threads but the first, and returns the error of any of them.
 */
static int shards_stop(struct shards *shards)
{
	uint32_t i;
	int r = 0;

	for (i = 1; i < shards->nr && shards->servers[i]; i++) {
		struct shard *shard = shard_of(shards->servers[i]);

		mail_post(&shard->server.mailbox, &shard->stop);
	}
	for (i = 1; i < shards->nr && shards->servers[i]; i++) {
		struct shard *shard = shard_of(shards->servers[i]);

		pthread_join(shard->thread, NULL);
		sem_destroy(&shard->begun);
		r = r ? r : shard->result;
	}
	return r;
}

/* Reads the files of declared queues. Faults in one are logged, and do not
 * affect other queues.
 */
static int shards_declare(struct shards *shards, const struct config *config)
{
	uint32_t faults;

	shards->declared = declarations_read(config, shards->nr > 1 ?
					     &shards->directory : NULL,
					     &faults);
	if (!shards->declared)
		return -ENOMEM;
	if (shards->declared->nr)
		log_info("declared queues: %u", shards->declared->nr);
	return 0;
}

static int shards_init(struct shards *shards, const struct config *config)
{
	int r;

	*shards = (struct shards) { .nr = config->threads };
	shards->started_ns = loop_now_exactly(CLOCK_BOOTTIME);
	accounts_init(&shards->accounts);
	pthread_mutex_init(&shards->handshake_lock, NULL);
	/* A handshake is a connection; those are limited. */
	pool_init(&shards->handshake_pool, sizeof(struct handshake),
		  UINT64_MAX);
	loss_init(&shards->loss);
	memory_plan_init(&shards->plan, config, "");
	budget_init(&shards->memory, shards->plan.timers);
	r = directory_init(&shards->directory, shards->nr, config->queues);
	if (r < 0) {
		log_err("queues: %s", strerror(-r));
		return r;
	}
	r = store_init(&shards->store, shards);
	if (r < 0)
		return r;
	return shards_declare(shards, config);
}

static void shards_deinit(struct shards *shards)
{
	uint32_t i;

	declarations_free(shards->declared_before);
	declarations_free(shards->declared);
	store_deinit(&shards->store);
	loss_log(&shards->loss);
	loss_deinit(&shards->loss);
	directory_deinit(&shards->directory);
	accounts_deinit(&shards->accounts);
	pool_deinit(&shards->handshake_pool);
	pthread_mutex_destroy(&shards->handshake_lock);
	for (i = 0; i < shards->nr && shards->servers[i]; i++) {
		/* Free mailboxes only after all posting has ended. */
		mailbox_deinit(&shards->servers[i]->mailbox);
		free(shard_of(shards->servers[i]));
	}
}

/* Logs the use of memory, once the embedded engine is chosen. */
static void shards_tell_memory(const struct shards *shards)
{
	const struct memory_plan *plan = &shards->plan;

	if (shards->ops->kind == EXPIRY_ENGINE_EMBEDDED)
		log_info("memory: up to %llu MiB for timers, %llu MiB for records that clients do not read; %s %llu MiB",
			 (unsigned long long)(plan->timers >> 20),
			 (unsigned long long)(plan->backlog >> 20),
			 plan->is_group ? "the control group may have" :
					  "the machine has",
			 (unsigned long long)(plan->limit >> 20));
}

static int shards_start(struct shards *shards, const struct config *config)
{
	struct shard *first = shard_new(shards, 0);
	uint32_t i;
	int r = -ENOMEM;

	if (first)
		r = server_init(&first->server, shards, 0, config);
	if (!r)
		shards_tell_memory(shards);
	for (i = 1; !r && i < shards->nr; i++)
		r = shard_start(shards, i, config);
	if (!r) {
		store_taken(shards);
		r = listener_init(&first->server.listener, &first->server);
	}
	return r;
}

int shards_run(const struct config *config,
	       int (*configure)(struct config *config))
{
	struct shards shards;
	struct server *first;
	int r, end;

	r = shards_init(&shards, config);
	if (!r)
		r = shards_start(&shards, config);
	first = shards.servers[0];
	if (!r)
		r = service_init(&first->service, first, configure);
	if (!r) {
		r = server_run(first);
		service_stopping(&first->service);
	}
	end = shards_stop(&shards);
	if (first)
		server_deinit(first);
	shards_deinit(&shards);
	return r ? r : end;
}
