/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The context: the state that the parts of the daemon share within one thread,
 * so no locks; and the state that all threads share. Each list belongs to its
 * module, not here.
 */
#ifndef DAEMON_CONTEXT_H
#define DAEMON_CONTEXT_H

#include <stdint.h>

#include "daemon/engine/arena.h"
#include "daemon/loop/buffer.h"
#include "daemon/loop/loop.h"
#include "daemon/loop/mailbox.h"
#include "daemon/journal/journal-stat.h"
#include "daemon/queue/directory.h"
#include "daemon/util/account.h"
#include "daemon/util/config.h"
#include "daemon/util/counter.h"
#include "daemon/util/histogram.h"
#include "daemon/util/memory-limit.h"
#include "daemon/util/user.h"

struct connections;
struct declarations;
struct durable;
struct engine;
struct engine_ops;
struct journal_directory;
struct listing;
struct loss;
struct queues;
struct store;
struct summaries;

/**
 * struct shared - the state that all threads share
 * @contexts: each thread's, @nr of them (const once all have begun)
 * @loop_ops: of the loop that the first thread opened (const)
 * @engine_ops: of its engine (const)
 * @memory: of the timers of the embedded engine
 * @started_ns: CLOCK_BOOTTIME (const)
 * @accounts: of all users; likewise @connections, @queues
 * @directory: the threads of queues
 * @store: queues that the service manager keeps
 * @declared: queues that files declare
 * @declared_before: the previous set, until all threads have @declared
 * @loss: timers that end with the daemon
 * @journal: directory of the journals; NULL = no queue is durable (const)
 * @plan: use of memory (const)
 *
 * The first thread replaces @declared; each other thread has its own pointer to
 * it.
 */
struct shared {
	struct context *contexts[THREADS_MAX];
	uint32_t nr;
	const struct loop_ops *loop_ops;
	const struct engine_ops *engine_ops;
	struct budget memory;
	uint64_t started_ns;
	struct accounts accounts;
	share_t connections;
	share_t queues;
	struct directory directory;
	struct store *store;
	struct declarations *declared;
	struct declarations *declared_before;
	struct loss *loss;
	struct journal_directory *journal;
	struct memory_plan plan;
};

/**
 * struct context_stat - counters of one thread, all since the start
 * @records: requests answered
 * @expirations: handed to consumers
 * @refused_connections: for a limit; likewise @refused_queues, @refused_timers
 * @refused_busy: requests answered -EBUSY
 * @refused_credit: times that credit was cut to its limit
 * @closed_protocol: clients ended for breaking the protocol
 * @closed_backlog: clients ended for unread memory
 * @closed_hello: connections ended without a timely HELLO
 * @refused_observers: for the limit of a queue
 * @copies_missed: copies dropped for observers
 * @lateness_max_ns: the most lateness of an expiration
 * @refused_journal: requests that the journal did not take
 * @durable_queues: now; likewise @durable_timers, in them
 * @overdue: of these at the start
 *
 * @lateness_max_ns leaves out redeliveries, timers armed in the past, and
 * timers held without a consumer or credit.
 */
struct context_stat {
	counter_t records;
	counter_t expirations;
	counter_t refused_connections;
	counter_t refused_queues;
	counter_t refused_timers;
	counter_t refused_busy;
	counter_t refused_credit;
	counter_t closed_protocol;
	counter_t closed_backlog;
	counter_t closed_hello;
	counter_t refused_observers;
	counter_t copies_missed;
	counter_t lateness_max_ns;
	counter_t refused_journal;
	counter_t durable_queues;
	counter_t durable_timers;
	counter_t overdue;
};

/**
 * struct context - the state of one thread
 * @shared: the state of all threads (const)
 * @number: of this thread, 0 = the one that listens (const)
 * @declared: all threads' declared queues
 * @config: changed by worker_reconfigure() alone
 * @engine: const after start
 * @recount: posted by another thread, for charges_recount()
 * @queues: its queues (const); likewise @connections, @listing, @summaries
 * @durable: the journal of its durable queues; NULL = none
 * @journal: counters of that journal
 * @turn_ns: as in struct expiry_server_stat; likewise @batch, @request_ns
 */
struct context {
	struct shared *shared;
	uint32_t number;
	struct config config;
	const struct declarations *declared;
	struct loop loop;
	struct buffers buffers;
	struct engine *engine;
	struct users users;
	struct mailbox mailbox;
	struct mail recount;
	struct queues *queues;
	struct connections *connections;
	struct listing *listing;
	struct summaries *summaries;
	struct durable *durable;
	struct context_stat stat;
	struct journal_stat journal;
	struct histogram turn_ns;
	struct histogram batch;
	struct histogram request_ns;
};

/* Returns the most unread bytes of clients, in all threads together. */
static inline uint64_t context_backlog_max(const struct context *context)
{
	uint64_t configured = context->config.backlog_memory;

	return configured ? configured : context->shared->plan.backlog;
}

#endif /* DAEMON_CONTEXT_H */
