// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/engine/engine.h"
#include "daemon/client/declare.h"
#include "daemon/queue/context.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/loss.h"
#include "daemon/queue/store.h"
#include "daemon/server/server.h"
#include "daemon/server/worker.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

/* Align each worker to avoid false sharing. */
#define THREAD_ALIGN	128

/**
 * struct thread - a worker and its thread
 * @heartbeat: the worker's part in it
 * @config: its first settings
 * @begun: the worker runs, or failed with @result
 * @result: 0 or -errno, of the start and the run
 * @declared: the set of declared queues that it begins with
 * @declare: posted once all have their durable queues, for the declared ones
 * @stop: posted to end it
 * @failed: posted to the first worker after a failure
 */
struct thread {
	struct worker worker;
	struct server *server;
	struct heartbeat heartbeat;
	uint32_t number;
	const struct config *config;
	pthread_t thread;
	sem_t begun;
	int result;
	const struct declarations *declared;
	struct mail declare;
	struct mail stop;
	struct mail failed;
};

static void thread_stop(struct context *context, struct mail *mail)
{
	(void)mail;
	worker_stop(container_of(context, struct worker, context));
}

static void thread_declare(struct context *context, struct mail *mail)
{
	declare_all(context, container_of(mail, struct thread, declare)->declared);
}

static struct thread *thread_new(struct server *server, uint32_t number)
{
	size_t size = (sizeof(struct thread) + THREAD_ALIGN - 1) &
		      ~(size_t)(THREAD_ALIGN - 1);
	struct thread *thread = aligned_alloc(THREAD_ALIGN, size);

	assert(number < THREADS_MAX);
	if (!thread) {
		log_err("thread %u: %s", number, strerror(ENOMEM));
		return NULL;
	}
	memset(thread, 0, size);
	thread->server = server;
	thread->number = number;
	thread->declare.deliver = thread_declare;
	thread->stop.deliver = thread_stop;
	thread->failed.deliver = thread_stop;
	heartbeat_init(&thread->heartbeat, &server->heartbeats,
		       &thread->worker);
	server->threads[number] = thread;
	server->shared.contexts[number] = &thread->worker.context;
	return thread;
}

static void first_turn_end(struct worker *worker)
{
	service_turn(&container_of(worker, struct thread, worker)
			      ->server->service);
}

static void thread_turn_end(struct worker *worker)
{
	heartbeat_turn(&container_of(worker, struct thread, worker)->heartbeat);
}

/* Runs a worker. All its steps run in this thread: a ring belongs to its maker.
 */
static void *thread_main(void *data)
{
	struct thread *thread = data;
	struct worker *worker = &thread->worker;
	struct shared *shared = &thread->server->shared;
	char name[16];

	snprintf(name, sizeof(name), "expiryd-%u", thread->number);
	pthread_setname_np(pthread_self(), name);
	thread->result = worker_init(worker, shared, thread->number,
				     thread->config, thread_turn_end);
	sem_post(&thread->begun);
	if (!thread->result) {
		thread->result = worker_run(worker);
		if (thread->result < 0)
			mail_post(&shared->contexts[0]->mailbox,
				  &thread->failed);
	}
	worker_deinit(worker);
	return NULL;
}

/* Starts a worker's thread. Returns 0 once it runs, or -errno. */
static int thread_start(struct server *server, uint32_t number,
			const struct config *config)
{
	struct thread *thread = thread_new(server, number);
	sigset_t all, before;
	int r;

	if (!thread)
		return -ENOMEM;
	thread->config = config;
	sem_init(&thread->begun, 0, 0);
	/* Only the first thread takes signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread->thread, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0) {
		log_err("thread %u: %s", number, strerror(-r));
		server->threads[number] = NULL;
		server->shared.contexts[number] = NULL;
		free(thread);
		return r;
	}
	while (sem_wait(&thread->begun) < 0)
		;
	return thread->result;
}

/* Ends all started threads but the first, and returns the error of any of them.
 */
static int server_stop(struct server *server)
{
	struct thread *thread;
	uint32_t i;
	int r = 0;

	for (i = 1; i < server->shared.nr && server->threads[i]; i++) {
		thread = server->threads[i];
		/* One that did not begin has none, and has ended. */
		if (thread->worker.context.mailbox.fd >= 0)
			mail_post(&thread->worker.context.mailbox,
				  &thread->stop);
	}
	for (i = 1; i < server->shared.nr && server->threads[i]; i++) {
		thread = server->threads[i];
		pthread_join(thread->thread, NULL);
		sem_destroy(&thread->begun);
		r = r ? r : thread->result;
	}
	return r;
}

/* Makes the declared queues, each in its thread: a durable one is where its journal is. */
static int server_declare(struct server *server)
{
	struct shared *shared = &server->shared;
	uint32_t i;
	int r = 0;

	if (shared->nr > 1)
		r = declarations_place(shared->declared, &shared->directory);
	if (r < 0)
		return r;
	if (shared->declared->nr)
		log_info("declared queues: %u", shared->declared->nr);
	declare_all(shared->contexts[0], shared->declared);
	for (i = 1; i < shared->nr; i++) {
		server->threads[i]->declared = shared->declared;
		mail_post(&shared->contexts[i]->mailbox,
			  &server->threads[i]->declare);
	}
	return 0;
}

static int server_init(struct server *server, const struct config *config)
{
	struct shared *shared = &server->shared;
	uint32_t faults;
	int r;

	*server = (struct server) {
		.shared.nr = config->threads,
		.shared.store = &server->store,
		.shared.loss = &server->loss,
		.listener.fd = -1,
		.listener.reserve = -1,
		.listener.file.lock_fd = -1,
		.service.fd = -1,
		.journal.fd = -1,
	};
	shared->started_ns = loop_now_exactly(CLOCK_BOOTTIME);
	accounts_init(&shared->accounts);
	loss_init(&server->loss);
	memory_plan_init(&shared->plan, config, "");
	budget_init(&shared->memory, shared->plan.timers);
	r = directory_init(&shared->directory, shared->nr, config->queues);
	if (r < 0) {
		log_err("queues: %s", strerror(-r));
		return r;
	}
	r = store_init(&server->store, shared);
	if (r < 0)
		return r;
	if (strcmp(config->journal, "none")) {
		r = durable_open(&server->journal, config->journal);
		if (!r)
			r = durable_check_threads(&server->journal, shared->nr);
		if (r < 0)
			return r;
		shared->journal = &server->journal;
	}
	/* Faults in one are logged, and do not affect other queues. Those of the journal
	 * are made as these files say, too.
	 */
	shared->declared = declarations_read(config, &faults);
	return shared->declared ? 0 : -ENOMEM;
}

static void server_deinit(struct server *server)
{
	struct shared *shared = &server->shared;
	uint32_t i;

	declarations_free(shared->declared_before);
	declarations_free(shared->declared);
	store_deinit(&server->store);
	loss_log(&server->loss);
	loss_deinit(&server->loss);
	directory_deinit(&shared->directory);
	journal_directory_close(&server->journal);
	accounts_deinit(&shared->accounts);
	for (i = 0; i < shared->nr && server->threads[i]; i++) {
		/* Free mailboxes only after all posting has ended. */
		mailbox_deinit(&shared->contexts[i]->mailbox);
		free(server->threads[i]);
	}
}

/* Logs the use of memory, once the embedded engine is chosen. */
static void server_log_memory(const struct shared *shared)
{
	const struct memory_plan *plan = &shared->plan;

	if (shared->engine_ops->kind == EXPIRY_ENGINE_EMBEDDED)
		log_info("memory: up to %llu MiB for timers, %llu MiB for records that clients do not read; %s %llu MiB",
			 (unsigned long long)(plan->timers >> 20),
			 (unsigned long long)(plan->backlog >> 20),
			 plan->is_group ? "the control group may have" :
					  "the machine has",
			 (unsigned long long)(plan->limit >> 20));
}

/* Starts all workers, then listens. */
static int server_start(struct server *server, struct worker *first,
			const struct config *config)
{
	struct shared *shared = &server->shared;
	uint32_t i;
	int r;

	handshakes_init(&server->handshakes, &first->context);
	r = worker_init(first, shared, 0, config, first_turn_end);
	if (!r)
		server_log_memory(shared);
	for (i = 1; !r && i < shared->nr; i++)
		r = thread_start(server, i, config);
	if (!r)
		r = server_declare(server);
	if (!r) {
		store_taken(shared);
		r = listener_init(&server->listener, &server->handshakes);
	}
	return r;
}

/* Ends the first worker and what is its alone. */
static void server_end_first(struct server *server, struct worker *first)
{
	service_deinit(&server->service);
	listener_deinit(&server->listener);
	worker_deinit(first);
	handshakes_deinit(&server->handshakes);
}

int server_run(const struct config *config,
	       int (*configure)(struct config *config))
{
	struct thread *thread = NULL;
	struct worker *first = NULL;
	struct server server;
	int r, end;

	r = server_init(&server, config);
	if (!r) {
		thread = thread_new(&server, 0);
		r = thread ? 0 : -ENOMEM;
	}
	if (!r) {
		first = &thread->worker;
		r = server_start(&server, first, config);
	}
	if (!r)
		r = service_init(&server.service, first, &server.heartbeats,
				 configure);
	if (!r) {
		r = worker_run(first);
		service_stopping(&server.service);
	}
	end = server_stop(&server);
	if (first)
		server_end_first(&server, first);
	server_deinit(&server);
	return r ? r : end;
}
