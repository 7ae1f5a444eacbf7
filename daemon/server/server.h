/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The server: the workers of this process, a thread each, and the state that
 * they share. A queue belongs to one of them with all its connections. So a
 * request needs no lock and no other thread (docs/decisions/0011-threads.md).
 *
 * The first worker's thread is the process' own: it listens, takes the signals
 * and talks to the service manager.
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <stdint.h>

#include "daemon/queue/context.h"
#include "daemon/journal/directory.h"
#include "daemon/queue/loss.h"
#include "daemon/queue/store.h"
#include "daemon/server/handshake.h"
#include "daemon/server/heartbeat.h"
#include "daemon/server/listen.h"
#include "daemon/server/service.h"
#include "daemon/util/config.h"

struct thread;

/**
 * struct server - the server
 * @shared: the state of all threads, with pointers to @store,
 *	@loss and @journal
 * @threads: one for each worker
 */
struct server {
	struct shared shared;
	struct thread *threads[THREADS_MAX];
	struct store store;
	struct loss loss;
	struct journal_directory journal;
	struct handshakes handshakes;
	struct heartbeats heartbeats;
	struct listener listener;
	struct service service;
};

/* Serves until the first worker is stopped or one of them fails. Returns 0, or
 * -errno after a line in the log. @configure: as in struct service.
 */
int server_run(const struct config *config,
	       int (*configure)(struct config *config));

#endif /* DAEMON_SERVER_H */
