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

#include "daemon/mailbox.h"
#include "daemon/util.h"

/* Most queues of one reply. */
#define LISTING_QUEUES	24

struct client;
struct queue;
struct server;

/* A queue in the reply. */
struct listing_row {
	struct expiry_queues_row head;
	struct expiry_stat stat;
	struct expiry_queue_stat queue;
};

/**
 * struct listing_question - what a client asks
 * @uid: the client's user: root and the daemon's own user see all queues, others
 *	their own and those that they may look at
 * @fd: its socket, which tells of its groups; stays open until the answer
 * @own: its queue, which is left out if it is anonymous; not to be looked into
 * @max: most queues
 * @cursor: where to go on, 0 to start
 */
struct listing_question {
	uid_t uid;
	int fd;
	const struct queue *own;
	uint32_t max;
	uint64_t cursor;
};

/**
 * struct listing - what a thread asks others
 * @mail: goes to the thread that is asked, and back; whose turn it is has the
 *	rest of this, too
 * @client: who asks, NULL = nobody; all others are @waiting, by their @asking
 * @rows: the answer, @len bytes: rows and the record after the last
 */
struct listing {
	struct mail mail;
	struct client *client;
	struct list waiting;
	struct listing_question question;
	size_t len;
	char rows[LISTING_QUEUES * sizeof(struct listing_row) +
		  sizeof(struct expiry_record)]
		__attribute__((aligned(8)));
};

void listing_init(struct listing *listing);

/* Answers the QUEUES that is the first record of @client's first buffer. It
 * does so now or, with the client @busy meanwhile, after another thread.
 * Returns false if there is no room for it in this turn.
 *
 * A queue that exists all the while is listed once. Bounded work: there may be
 * fewer queues than fit, even none, before the end.
 */
bool listing_reply(struct client *client);

#endif /* DAEMON_LISTING_H */
