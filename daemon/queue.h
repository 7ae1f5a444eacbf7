/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queues: named and anonymous, their access, and their consumers. */
#ifndef DAEMON_QUEUE_H
#define DAEMON_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <expiry/wire.h>

#include "daemon/engine.h"
#include "daemon/name-hash.h"
#include "daemon/pool.h"
#include "daemon/util.h"

struct buffer;
struct client;
struct declaration;
struct mail;
struct place;
struct server;
struct user;

/**
 * struct queue - one queue
 * @server: const; likewise @name (all NUL: anonymous), @clock_id, @mode
 * @user: the owner, who is charged; NULL once the queue is removed
 * @gid: the group, ACCESS_NO_GROUP = none; @access: who may do what, as chmod(2)
 * @declared: there is a file for it, or was when it was last read without a fault
 * @engine_queue: the engine's
 * @clients: connections attached, the consumer included and observers left out
 * @charged: timers charged to the owner; @pending of them are on their way in
 * @number: given to no other queue of any thread (const)
 * @place: in the directory, a reference
 * @all: in its bucket, an anonymous one in the last
 * @of_user: among the owner's
 * @observers: clients that observe it, by their @observer, @nr_observers of them
 *
 * @consumer: who gets the expirations, or NULL
 * @epoch: counts the consumers that there were; @read_epoch: which of them
 *	@read is for
 * @credit: how many more the consumer will take
 * @due: on the server's list: consumer_run() will look at it
 * @read: a collect() and the buffer it fills, while @reading
 * @unsent: of a plain queue: the consumer's socket has yet to take what was
 *	collected last
 * @takes: the consumer has given credit and its socket takes what it is sent
 * @waiting: the engine will say when something is due; nothing was before
 * @rewinding: what an earlier consumer left is being made due again
 * @clock_set: the consumer must get a CLOCK_SET
 * @doomed: removed, once @reading is over
 * @kept: in the service manager's store; @missed: should be
 */
struct queue {
	struct server *server;
	struct user *user;
	struct engine_queue *engine_queue;
	char name[EXPIRY_NAME_MAX];
	uint32_t clock_id;
	uint32_t mode;
	gid_t gid;
	uint16_t access;
	bool declared;
	uint32_t clients;
	uint64_t charged;
	uint64_t pending;
	uint64_t number;
	struct place *place;
	struct list all;
	struct list of_user;
	struct list observers;
	uint32_t nr_observers;

	struct client *consumer;
	uint32_t epoch;
	uint32_t read_epoch;
	uint32_t credit;
	struct list due;
	struct engine_io read;
	struct buffer *read_buffer;
	bool reading;
	bool unsent;
	bool takes;
	bool waiting;
	bool rewinding;
	bool clock_set;
	bool doomed;
	bool kept;
	bool missed;
};

/**
 * struct queues - all queues
 * @key: of @buckets
 * @buckets: lists of queues by the hash of their names, @mask + 1 of them, and
 *	one more for anonymous ones
 * @made: how many there ever were
 */
struct queues {
	struct pool pool;
	struct name_key key;
	struct list *buckets;
	uint32_t mask;
	uint64_t made;
};

/* -ENOMEM */
int queues_init(struct queues *queues, uint64_t nr_max);
/* Frees every queue; no client may be left. */
void queues_deinit(struct queues *queues);

/**
 * struct queue_plan - what a new queue is to be
 * @name: EXPIRY_NAME_MAX bytes
 * @place: in the directory; the queue takes a reference of its own
 * @user: the owner
 * @config: clock, mode, limit, slack
 * @layout: EXPIRY_LAYOUT_*
 */
struct queue_plan {
	const char *name;
	struct place *place;
	struct user *user;
	struct expiry_config config;
	uint32_t layout;
};

/* queue.c: life and membership ------------------------------------------- */

/* Returns the server's queue @name, EXPIRY_NAME_MAX bytes, or NULL. */
struct queue *queue_find(struct queues *queues, const char *name);

/* Makes a queue, charged to its owner. -EDQUOT: the owner's limit of queues;
 * -ENOSPC: the server's; or the engine's error.
 */
int queue_new(struct server *server, const struct queue_plan *plan,
	      struct queue **queuep);

/* Makes @uid the owner: what was charged to the old one is charged to @uid, whatever
 * the limits. -ENOMEM; -EAGAIN: the service manager does not take the new name.
 */
int queue_give(struct queue *queue, uid_t uid);

/**
 * queue_attach - join the queue that a (checked) HELLO names, or make it
 *
 * -ENOENT: EXISTING or OBSERVE, and there is none.
 * -EACCES: the client has no right to it; -EINVAL: of another clock or mode; -EBUSY:
 * it has a consumer, or as many observers as it may; -EDQUOT: the user's limit of
 * queues; -ENOSPC: the server's; or the engine's error.
 */
int queue_attach(struct client *client, const struct expiry_hello *hello);

/* Make a queue of what an earlier daemon left, the engine's file @fd, which is
 * taken unless this fails. -EEXIST: there is one of this name.
 */
int queue_adopt(struct server *server, int fd, struct place *place,
		const char *name, uid_t uid, struct queue **queuep);

/* Frees a removed queue, as the last step. */
void queue_forget(struct queue *queue);

/* Leaves; an anonymous queue ends with its client. */
void queue_detach(struct client *client);

/* Removes the client's queue; its observers end. A declared queue is made anew,
 * as its file says now. -EINVAL: it is anonymous; -EBUSY: other clients are
 * attached, or the engine works on a request of an observer.
 */
int queue_drop(struct client *client);

/* Charges the owner for the timers in the queue now. */
void queue_settle(struct queue *queue);

/* Returns how many timers are in the queue now, as its engine counts them anew. */
uint64_t queue_count_timers(struct queue *queue);

/* Returns how many of @count records of one run may go to the engine without
 * exceeding the owner's limit of timers; 0: refuse the first one. Near the
 * limit timers are charged for beforehand: *@armsp is their number, until
 * queue_done().
 */
uint32_t queue_allowed(struct queue *queue,
		       const struct expiry_record *records, uint32_t count,
		       uint32_t *armsp);

/* Replaces the charge of @arms timers by the real number, after the engine. */
void queue_done(struct queue *queue, uint32_t arms);

/* Recounts this thread's timers of a user at the limit. */
void users_recount(struct server *server, struct mail *mail);

/* consumer.c: expirations on their way ------------------------------------ */

/* Handles a change (credit, room, a due timer) in this turn. */
void consumer_kick(struct queue *queue);

/* Handles the client's credit. */
void consumer_credit(struct queue *queue, uint32_t credit);

/* Called when the consumer's socket took everything; returns whether more is
 * collected at once.
 */
void consumer_sent(struct queue *queue);
bool consumer_continues(const struct queue *queue);

/* Ends the consumer. */
void consumer_leave(struct queue *queue);

/* Expirations handed out in one turn: a storm of them must not starve requests.
 */
#define TURN_EXPIRATIONS	2048

/* Hands out due timers, about @budget expirations. Returns the rest of the
 * budget.
 */
uint32_t consumers_run(struct server *server, uint32_t budget);

/* Reports a step of CLOCK_REALTIME to the consumers concerned. */
void consumers_clock_set(struct server *server);

/* Called by the engine, for queue.c, when a timer is due and when a read is
 * done.
 */
void consumer_due(struct engine_queue *engine_queue);
void consumer_read_done(struct engine_io *io, int result);

#endif /* DAEMON_QUEUE_H */
