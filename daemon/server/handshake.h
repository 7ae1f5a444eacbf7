/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Handshakes: connections before their HELLO. The first thread, which listens,
 * reads that one record. It names the queue, and so the thread of the
 * connection.
 */
#ifndef DAEMON_HANDSHAKE_H
#define DAEMON_HANDSHAKE_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/expiry.h>

#include "daemon/client/client.h"
#include "daemon/loop/loop.h"
#include "daemon/loop/mailbox.h"
#include "daemon/util/list.h"
#include "daemon/util/pool.h"

struct account;
struct context;

/**
 * struct handshakes - all connections before their HELLO
 * @context: of the thread that listens (const)
 * @all: by their @all
 * @limit: of the time limits of all
 * @lock: of @pool: any thread may free a handshake
 */
struct handshakes {
	struct context *context;
	struct list all;
	struct loop_op limit;
	pthread_mutex_t lock;
	struct pool pool;
};

/**
 * struct handshake - one connection
 * @all: in the list of handshakes
 * @start: what the connection starts with; its @account is a reference
 * @received: the receive of HELLO; @len bytes have arrived
 * @due_ns: time limit of HELLO, CLOCK_MONOTONIC; 0 = none
 * @left: time limit of the present receive
 * @handoff: posted to the thread of the queue
 */
struct handshake {
	struct handshakes *handshakes;
	struct list all;
	struct connection_start start;
	struct loop_op received;
	uint32_t len;
	uint64_t due_ns;
	struct __kernel_timespec left;
	struct mail handoff;
};

void handshakes_init(struct handshakes *handshakes, struct context *context);

/* Frees all remaining handshakes, after the loops of all threads have ended. */
void handshakes_deinit(struct handshakes *handshakes);

/* Takes @fd and the reference to @account, and charges it with a connection.
 * -ENOMEM: takes neither.
 */
int handshake_new(struct handshakes *handshakes, int fd, pid_t pid,
		  struct account *account);

/* Refuses a connection with a reply to HELLO, if it can be sent, and closes it.
 */
void connection_refuse(struct context *context, int fd, int error);

#endif /* DAEMON_HANDSHAKE_H */
