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
#include "daemon/listen.h"
#include "daemon/loop.h"
#include "daemon/pool.h"
#include "daemon/queue.h"
#include "daemon/user.h"
#include "daemon/util.h"

/**
 * struct server_stat - counters, all since the start
 * @records: requests answered
 * @expirations: handed to consumers
 * @refused_connections: for a limit; likewise @refused_queues, @refused_timers
 * @refused_credit: times that credit was cut to its limit
 * @closed_protocol: clients ended for breaking the protocol
 */
struct server_stat {
	uint64_t records;
	uint64_t expirations;
	uint64_t refused_connections;
	uint64_t refused_queues;
	uint64_t refused_timers;
	uint64_t refused_credit;
	uint64_t closed_protocol;
};

/**
 * struct server - the server
 * @config: const after start; likewise @engine
 * @multishot: clients may be received from by multishot (const)
 * @started_ns: CLOCK_BOOTTIME
 *
 * @clients: all, by their @all; @nr_clients of them
 * @ready: clients with records to be processed, by their @ready
 * @writers: clients with something to send, by their @writer
 * @starved: clients that found no buffer to receive into, by their @starved
 * @dead: clients that have ended and wait for their last completion, by @all
 * @due: queues with something for their consumer, by their @due
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
	struct pool client_pool;
	uint64_t started_ns;
	bool multishot;

	struct list clients;
	uint64_t nr_clients;
	struct list ready;
	struct list writers;
	struct list starved;
	struct list dead;
	struct list due;

	struct server_stat stat;
	bool stop;
};

/* server.c: takes @config. Says on stderr what went wrong. */
int server_init(struct server *server, const struct config *config);
void server_deinit(struct server *server);

/* Serve until server_stop(); 0 or a fatal -errno. */
int server_run(struct server *server);
void server_stop(struct server *server);

#endif /* DAEMON_SERVER_H */
