/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The list of queues, by the rights of the client: QUEUES.
 *
 * Each thread lists its own queues. The cursor names the thread and an index in
 * its pool of queues; a reply has queues of one thread only. If that is not the
 * client's thread, a mail goes there and returns with the rows. A thread has
 * one such mail in flight, which bounds the load on the others; clients wait
 * for it in order.
 */
#ifndef DAEMON_LISTING_H
#define DAEMON_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <expiry/wire.h>

#include "daemon/loop/mailbox.h"
#include "daemon/util/list.h"

/* Most queues of one reply. */
#define LISTING_QUEUES	24

struct client;
struct queue;
struct context;

/* A queue in the reply. */
struct listing_row {
	struct expiry_queues_row head;
	struct expiry_stat stat;
	struct expiry_queue_stat queue;
};

/**
 * struct listing_question - what a client asks
 * @uid: the client's user
 * @fd: its socket, for its groups; open until the answer
 * @own: its queue; never dereferenced
 * @max: most queues
 * @cursor: where to continue, 0 to start
 *
 * Root and the daemon's own user see all queues. Other users see their own and
 * those that they may look at. An anonymous @own is left out.
 */
struct listing_question {
	uid_t uid;
	int fd;
	const struct queue *own;
	uint32_t max;
	uint64_t cursor;
};

/**
 * struct listing - a thread's question to others
 * @context: of the thread that asks (const)
 * @mail: to the thread in question, and back
 * @client: the client that asks, NULL = none
 * @waiting: other clients, by their @parked
 * @rows: the answer, @len bytes, with its last record
 *
 * The thread that has @mail owns the other fields, too.
 */
struct listing {
	struct context *context;
	struct mail mail;
	struct client *client;
	struct list waiting;
	struct listing_question question;
	size_t len;
	char rows[LISTING_QUEUES * sizeof(struct listing_row) +
		  sizeof(struct expiry_record)]
		__attribute__((aligned(8)));
};

void listing_init(struct listing *listing, struct context *context);

/* Answers QUEUES, the first record of @client's first buffer. It does so now
 * or, with the client @busy meanwhile, after another thread. Returns false if
 * there is no room in this turn.
 *
 * A queue that exists throughout is listed once. The work is bounded: before
 * the end there may be fewer queues than fit, even none.
 */
bool listing_reply(struct client *client);

#endif /* DAEMON_LISTING_H */
