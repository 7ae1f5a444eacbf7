/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The server: what the parts of the daemon share. One thread, so no locks.
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/buffer.h"
#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/engine.h"
#include "daemon/histogram.h"
#include "daemon/listen.h"
#include "daemon/loop.h"
#include "daemon/pool.h"
#include "daemon/queue.h"
#include "daemon/service.h"
#include "daemon/store.h"
#include "daemon/user.h"
#include "daemon/util.h"

/**
 * struct server_stat - counters, all since the start
 * @records: requests answered
 * @expirations: handed to consumers
 * @refused_connections: for a limit; likewise @refused_queues, @refused_timers
 * @refused_credit: times that credit was cut to its limit
 * @closed_protocol: clients ended for breaking the protocol
 * @lateness_max_ns: of all expirations, those delivered again left out
 */
struct server_stat {
	uint64_t records;
	uint64_t expirations;
	uint64_t refused_connections;
	uint64_t refused_queues;
	uint64_t refused_timers;
	uint64_t refused_credit;
	uint64_t closed_protocol;
	uint64_t lateness_max_ns;
};

/**
 * struct server - the server
 * @config: changed by server_reconfigure() alone
 * @engine: const after start
 * @multishot: clients may be received from by multishot (const)
 * @quiet: what is sent without waiting speaks up only if it went wrong (const)
 * @started_ns: CLOCK_BOOTTIME
 *
 * @clients: all, by their @all; @nr_clients of them
 * @ready: clients with records to be processed, by their @ready
 * @writers: clients with something to send, by their @writer
 * @sent: clients whose send was submitted quietly, by their @sent
 * @starved: clients that found no buffer to receive into, by their @starved
 * @dead: clients that have ended and wait for their last completion, by @all
 * @due: queues with something for their consumer, by their @due
 * @turn_ns: as in struct expiry_server_stat; likewise @batch, @request_ns
 * @written_ns: when this turn's answers are handed to the kernel
 * @stop: asked to
 */
struct server {
	struct config config;
	struct loop loop;
	struct buffers buffers;
	struct engine *engine;
	struct listener listener;
	struct clock_watch clock;
	struct users users;
	struct queues queues;
	struct store store;
	struct service service;
	struct pool client_pool;
	uint64_t started_ns;
	bool multishot;
	bool quiet;

	struct list clients;
	uint64_t nr_clients;
	struct list ready;
	struct list writers;
	struct list sent;
	struct list starved;
	struct list dead;
	struct list due;

	struct server_stat stat;
	struct histogram turn_ns;
	struct histogram batch;
	struct histogram request_ns;
	uint64_t written_ns;
	bool stop;
};

/* server.c: takes @config. Says on stderr what went wrong. */
int server_init(struct server *server, const struct config *config);
void server_deinit(struct server *server);

/* Other limits from now on; what has been granted stays. */
void server_reconfigure(struct server *server, const struct config *config);

/* Serve until server_stop(); 0 or a fatal -errno. */
int server_run(struct server *server);
void server_stop(struct server *server);

#endif /* DAEMON_SERVER_H */
