/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Queues: named and anonymous, their owners and their access. */
#ifndef DAEMON_QUEUE_H
#define DAEMON_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <expiry/wire.h>

#include "daemon/engine/engine.h"
#include "daemon/queue/access.h"
#include "daemon/util/list.h"
#include "daemon/util/name.h"
#include "daemon/util/pool.h"
#include "daemon/util/user.h"

struct buffer;
struct client;
struct directory_entry;
struct context;

/**
 * struct queue - one queue
 * @context: const; likewise @name (all NUL: anonymous), @clock_id, @mode
 * @user: the owner, charged; NULL = the queue is removed
 * @gid: the group, GROUP_NONE = none
 * @access: mode, as chmod(2)
 * @declared: a file declares it
 * @engine_queue: the engine's
 * @clients: connections attached, with the consumer, without observers
 * @charged: timers charged to the owner
 * @pending: of these, in transit to the engine
 * @number: unique among all threads' queues (const)
 * @in_directory: its entry in the directory, a reference
 * @all: in its bucket, an anonymous one in the last
 * @of_user: among the owner's
 * @observers: its observers, by their @observer, @nr_observers of them
 *
 * @consumer: the client that gets the expirations, or NULL
 * @epoch: number of consumers so far
 * @read_epoch: @epoch when @read began
 * @credit: expirations that the consumer will still take
 * @due: in the thread's list for deliveries_run()
 * @read: a collect() and the buffer it fills, while @reading
 * @unsent: bytes the consumer's socket has not taken, up to the last expirations
 * @takes: the consumer has credit and room in its socket
 * @waiting: the engine will report the next due timer
 * @rewinding: deliveries to an earlier consumer are made due again
 * @clock_set: the consumer must get a CLOCK_SET
 * @dying: removed, once @reading is over
 * @journal_number: of a durable queue, in the thread's journal; 0 = it is none
 * @made_lsn: the journal's block with its creation
 * @late_before_ns: what was due before is LATE; of a durable queue only, likewise
 * @again_before_ns: what was due before may have been delivered
 * @stored: in the service manager's store; @store_pending: should be
 * @store_thread: its thread plus 1, if its name there has it; else 0
 *
 * @declared stays true while the queue's file has a fault. @unsent is used for
 * plain queues only.
 */
struct queue {
	struct context *context;
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
	struct directory_entry *in_directory;
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
	uint64_t unsent;
	bool reading;
	bool takes;
	bool waiting;
	bool rewinding;
	bool clock_set;
	bool dying;
	bool stored;
	uint32_t store_thread;
	bool store_pending;

	uint64_t journal_number;
	uint64_t made_lsn;
	uint64_t late_before_ns;
	uint64_t again_before_ns;
};

/**
 * struct queues - all queues
 * @key: random key of the hash of @buckets
 * @buckets: by the hash of the name, @mask + 1 of them
 * @made: number of queues ever made
 * @due: queues with work for deliveries_run(), by their @due
 * @no_spare: those that found no spare buffer, likewise
 *
 * One more bucket, the last one, has the anonymous queues.
 */
struct queues {
	struct pool pool;
	struct name_key key;
	struct list *buckets;
	uint32_t mask;
	uint64_t made;
	struct list due;
	struct list no_spare;
};

/* Initializes the queues. Returns 0 or -ENOMEM. */
int queues_init(struct queues *queues, uint64_t nr_max);
/* Frees every queue; no client may be left. */
void queues_deinit(struct queues *queues);

/**
 * struct queue_plan - properties of a new queue
 * @name: EXPIRY_NAME_MAX bytes
 * @in_directory: its entry there; the queue takes a reference of its own
 * @user: the owner
 * @config: clock, mode, limit, slack
 * @layout: EXPIRY_LAYOUT_*, 0 = the engine's own
 * @is_restored: it was made before: the limits of queues do not count
 */
struct queue_plan {
	const char *name;
	struct directory_entry *in_directory;
	struct user *user;
	struct expiry_config config;
	uint32_t layout;
	bool is_restored;
};

/* Returns the thread's queue @name, EXPIRY_NAME_MAX bytes, or NULL. */
struct queue *queue_find(struct queues *queues, const char *name);

/* Makes a queue, charged to its owner. -EDQUOT: the owner's limit of queues;
 * -ENOSPC: the daemon's; or the engine's error.
 */
int queue_new(struct context *context, const struct queue_plan *plan,
	      struct queue **queuep);

/* Gives the queue an empty one of the engine's, made as @plan says. The caller frees *@oldp.
 * Returns 0, or the engine's error, after which nothing has changed.
 */
int queue_renew(struct queue *queue, const struct queue_plan *plan,
		struct engine_queue **oldp);

/* Makes @uid the owner. The charges of the old owner move to @uid, whatever the
 * limits. -ENOMEM.
 */
int queue_give(struct queue *queue, uid_t uid);

/* Makes a queue of an earlier daemon's, the engine's file @fd. Takes @fd unless
 * it fails. -EEXIST: there is one of this name.
 */
int queue_adopt(struct context *context, int fd, struct directory_entry *entry,
		const char *name, uid_t uid, struct queue **queuep);

/* Frees a removed queue, as the last step. */
void queue_forget(struct queue *queue);

/* Makes the queue durable, with that number in the journal, or ends that: 0. */
void queue_set_journal(struct queue *queue, uint64_t number);

/* Removes the queue; the engine's reads for it end first. */
void queue_remove(struct queue *queue);

/* Detaches the consumer from the queue. */
void queue_detach_consumer(struct queue *queue);

static inline bool queue_is_named(const struct queue *queue)
{
	return queue->name[0];
}

/* Returns which bits of ACCESS_ALL the peer has on the queue. */
static inline uint8_t queue_access_of(const struct queue *queue,
				      struct access_peer *peer)
{
	return access_of(queue->user->uid, queue->gid, queue->access, peer);
}

/* Returns whether more is collected once the consumer's socket took all. */
static inline bool queue_continues(const struct queue *queue)
{
	return queue->unsent && queue->credit && !queue->waiting;
}

#endif /* DAEMON_QUEUE_H */
