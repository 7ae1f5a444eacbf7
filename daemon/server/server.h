/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The server: the state that the parts of the daemon share within one thread,
 * so no locks. There is one for each thread, see shards.h.
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/client/listing.h"
#include "daemon/engine/engine.h"
#include "daemon/loop/buffer.h"
#include "daemon/loop/clock.h"
#include "daemon/loop/loop.h"
#include "daemon/loop/mailbox.h"
#include "daemon/queue/queue.h"
#include "daemon/server/listen.h"
#include "daemon/server/round.h"
#include "daemon/server/service.h"
#include "daemon/server/shards.h"
#include "daemon/util/config.h"
#include "daemon/util/counter.h"
#include "daemon/util/histogram.h"
#include "daemon/util/pool.h"
#include "daemon/util/user.h"
#include "daemon/util/util.h"

struct declarations;

/**
 * struct server_stat - counters of one thread, all since the start
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
 *
 * @lateness_max_ns leaves out redeliveries, timers armed in the past, and
 * timers held without a consumer or credit.
 */
struct server_stat {
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
};

/**
 * struct server - a server
 * @shards: all servers and their shared state (const)
 * @number: of this server, 0 = it listens (const)
 * @declared: all threads' declared queues
 * @config: changed by server_reconfigure() alone
 * @engine: const after start
 * @multishot: multishot receive is reliable (const)
 * @skip_success: non-blocking sends post a CQE only on failure (const)
 *
 * @clients: all, by their @all
 * @handshakes: connections before their HELLO, by their @all
 * @hello_limit: of the time limits of all handshakes
 * @ready: clients with records to process, by their @ready
 * @ready_small: those with few records, likewise
 * @writers: clients with something to send, by their @writer
 * @sent: clients whose send skips its CQE, by their @sent
 * @starved: clients that found no receive buffer, by their @starved
 * @blocked_lru: blocked clients, by their @blocked_lru
 * @dead: ended clients before their last completion, by @all
 * @due: queues for delivery_run(), by their @due
 * @turn_ns: as in struct expiry_server_stat; likewise @batch, @request_ns
 * @written_ns: when the previous turn's answers were ready to submit
 * @stop: the server must end
 *
 * The first client in @blocked_lru has read nothing for the longest time.
 */
struct server {
	struct shards *shards;
	uint32_t number;
	struct config config;
	const struct declarations *declared;
	struct loop loop;
	struct buffers buffers;
	struct engine *engine;
	struct listener listener;
	struct clock_watch clock;
	struct users users;
	struct queues queues;
	struct service service;
	struct mailbox mailbox;
	struct mail recount;
	struct round round;
	struct listing listing;
	struct pool client_pool;
	bool multishot;
	bool skip_success;

	struct list clients;
	struct list handshakes;
	struct loop_op hello_limit;
	struct list ready;
	struct list ready_small;
	struct list writers;
	struct list sent;
	struct list starved;
	struct list blocked_lru;
	struct list dead;
	struct list due;

	struct server_stat stat;
	struct histogram turn_ns;
	struct histogram batch;
	struct histogram request_ns;
	uint64_t written_ns;
	bool stop;
};

/* Initializes the server, in the thread that runs it. Logs a failure. */
int server_init(struct server *server, struct shards *shards, uint32_t number,
		const struct config *config);
void server_deinit(struct server *server);

/* Sets other limits from now on; granted resources stay. The first server gets
 * them from the reader, the others from it.
 */
void server_reconfigure(struct server *server, const struct config *config);

/* Returns the most queues in all threads together. */
uint64_t server_queues_max(const struct server *server);

/* Returns the most unread bytes of clients, in all threads together. */
uint64_t server_backlog_max(const struct server *server);

/* Serves until server_stop(). Returns 0 or a fatal -errno. */
int server_run(struct server *server);
void server_stop(struct server *server);

#endif /* DAEMON_SERVER_H */
