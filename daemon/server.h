/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The server: the state that the parts of the daemon share within one thread,
 * so no locks. There is one for each thread, see shards.h.
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/buffer.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/counter.h"
#include "daemon/engine.h"
#include "daemon/histogram.h"
#include "daemon/listen.h"
#include "daemon/listing.h"
#include "daemon/loop.h"
#include "daemon/mailbox.h"
#include "daemon/pool.h"
#include "daemon/queue.h"
#include "daemon/round.h"
#include "daemon/service.h"
#include "daemon/shards.h"
#include "daemon/user.h"
#include "daemon/util.h"

struct declarations;

/**
 * struct server_stat - counters of one thread, all since the start
 * @records: requests answered
 * @expirations: handed to consumers
 * @refused_connections: for a limit; likewise @refused_queues, @refused_timers
 * @refused_busy: requests answered -EBUSY
 * @refused_credit: times that credit was cut to its limit
 * @closed_protocol: clients ended for breaking the protocol; @closed_backlog:
 *	for what they did not read; @closed_hello: connections for no HELLO
 * @refused_observers: for the limit of a queue; @copies_missed: copies that
 *	observers did not get
 * @lateness_max_ns: of all expirations but those that were delivered again,
 *	armed in the past, or held without a consumer or credit
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
 * @shards: all servers, and what they share (const); this is @number (const) of
 *	them, 0 = the one that listens
 * @declared: queues that files declare, all threads'
 * @config: changed by server_reconfigure() alone
 * @engine: const after start
 * @multishot: clients may be received from by multishot (const)
 * @quiet: non-blocking sends post a CQE only on failure (const)
 *
 * @clients: all, by their @all
 * @arrivals: connections that have yet to say HELLO, by their @all
 * @hello_limit: of the time limits of them all
 * @ready: clients with records to be processed, by their @ready; @few: those
 *	with few of them
 * @writers: clients with something to send, by their @writer
 * @sent: clients whose send was submitted quietly, by their @sent
 * @starved: clients that found no buffer to receive into, by their @starved
 * @stuck: clients that are blocked, by their @stuck, who took nothing for the
 *	longest first
 * @dead: clients that have ended and wait for their last completion, by @all
 * @due: queues with something for their consumer, by their @due
 * @turn_ns: as in struct expiry_server_stat; likewise @batch, @request_ns
 * @written_ns: when the turn before had its answers ready for the kernel
 * @stop: asked to
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
	bool quiet;

	struct list clients;
	struct list arrivals;
	struct loop_op hello_limit;
	struct list ready;
	struct list few;
	struct list writers;
	struct list sent;
	struct list starved;
	struct list stuck;
	struct list dead;
	struct list due;

	struct server_stat stat;
	struct histogram turn_ns;
	struct histogram batch;
	struct histogram request_ns;
	uint64_t written_ns;
	bool stop;
};

/* Sets it up, in the thread that runs it. Says on stderr what failed. */
int server_init(struct server *server, struct shards *shards, uint32_t number,
		const struct config *config);
void server_deinit(struct server *server);

/* Sets other limits from now on; granted resources stay. The first server gets
 * them from the reader, the others from it.
 */
void server_reconfigure(struct server *server, const struct config *config);

/* Most queues in all threads together. */
uint64_t server_queues_max(const struct server *server);

/* Returns the most unread bytes of clients, in all threads together. */
uint64_t server_backlog_max(const struct server *server);

/* Serves until server_stop(); 0 or a fatal -errno. */
int server_run(struct server *server);
void server_stop(struct server *server);

#endif /* DAEMON_SERVER_H */
