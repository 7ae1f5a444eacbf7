/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shards: the servers of this process, a thread each, and the state that they
 * share. A queue belongs to one of them with all its connections. So a request
 * needs no lock and no other thread (docs/decisions/0011-threads.md).
 *
 * The first server's thread is the process' own: it listens, takes the signals
 * and talks to the service manager.
 */
#ifndef DAEMON_SHARDS_H
#define DAEMON_SHARDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "daemon/engine/arena.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/loss.h"
#include "daemon/queue/store.h"
#include "daemon/util/account.h"
#include "daemon/util/config.h"
#include "daemon/util/counter.h"
#include "daemon/util/memory-limit.h"
#include "daemon/util/pool.h"

struct declarations;
struct engine_ops;
struct loop_ops;
struct server;

/**
 * struct shards - all servers
 * @servers: @nr of them (const once all have begun)
 * @loop: of all threads (const)
 * @ops: of the engine that the first server opened (const)
 * @started_ns: CLOCK_BOOTTIME (const)
 * @accounts: of all users; likewise @connections, @queues
 * @handshake_pool: memory of handshakes; under @handshake_lock
 * @directory: the threads of queues
 * @store: queues that the service manager keeps
 * @declared: queues that files declare
 * @declared_before: the previous set, until all threads have @declared
 * @loss: timers that end with the daemon
 * @plan: use of memory (const)
 * @memory: of the timers of the embedded engine
 * @stale: the state changed since the last report
 *
 * Any thread may free a handshake. The first thread replaces @declared; each
 * other thread has its own pointer to it. @stale is about the other threads'
 * events.
 */
struct shards {
	struct server *servers[THREADS_MAX];
	uint32_t nr;
	const struct loop_ops *loop;
	const struct engine_ops *ops;
	uint64_t started_ns;
	struct accounts accounts;
	share_t connections;
	share_t queues;
	pthread_mutex_t handshake_lock;
	struct pool handshake_pool;
	struct directory directory;
	struct store store;
	struct declarations *declared;
	struct declarations *declared_before;
	struct loss loss;
	struct memory_plan plan;
	struct budget memory;
	atomic_bool stale;
};

/* Serves until the first server is stopped or one of them fails. Returns 0, or
 * -errno after a line in the log. @configure: as in struct service.
 */
int shards_run(const struct config *config,
	       int (*configure)(struct config *config));

#endif /* DAEMON_SHARDS_H */
