/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service manager's store of descriptors (sd_pid_notify_with_fds(3)), and
 * the descriptors it passes at the start. These are the listening socket, and
 * the named queues of an earlier daemon.
 *
 * A queue of the kernel engine lives as long as its descriptor is open. So each
 * named queue's goes to the store before its first client gets an answer, under
 * the name QUEUE@UID, or QUEUE@UID@THREAD if it is durable. The kernel knows clock
 * and mode.
 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <expiry/wire.h>

struct directory_entry;
struct queue;
struct context;
struct shared;

/**
 * struct store - the store, as far as the daemon knows it
 * @fds: passed at the start, from SD_LISTEN_FDS_START on
 * @nr_fds: their number
 * @names: their names
 * @entries: of the queues, if there are several threads
 * @nr_queues: queues among @fds
 * @listener: the socket among them, or -1
 * @max: most descriptors that the manager takes
 * @stored: queues in the store
 * @bytes: of their names, at most STORE_BYTES
 * @store_pending: queues that the manager did not take in time
 * @lock: of @stored, @bytes and @store_pending, and of users' shares
 *
 * The names become one variable of the next daemon's environment. The daemon
 * tries @store_pending queues again.
 */
struct store {
	char **names;
	struct directory_entry **entries;
	int nr_fds;
	int nr_queues;
	int listener;
	uint64_t max;
	uint64_t stored;
	uint64_t bytes;
	uint64_t store_pending;
	pthread_mutex_t lock;
};

/* Size of a queue's name in the store, and its end. */
#define STORE_NAME	(EXPIRY_NAME_MAX + 2 * 11 + 1)

/* Writes the queue's name in the store to @name. */
void store_name(char *name, const struct queue *queue);

/* Checks the descriptors passed at the start. Returns 0, or -errno after a line
 * in the log.
 */
int store_init(struct store *store, struct shared *shared);
void store_deinit(struct store *store);

/* Makes the thread's queues. Its engine is open. */
int store_take(struct context *context);

/* Logs the number of queues taken over, after all threads have theirs. */
void store_taken(struct shared *shared);

/* Stores a named queue. Returns whether it is kept; if not, it ends with the
 * daemon.
 */
bool store_keep(struct queue *queue);

/* Removes a dropped queue from the store. */
void store_forget(struct queue *queue);

/* Removes a queue from the store because its name there will change; its timers
 * stay. Returns false if the service manager does not read.
 */
bool store_leave(struct queue *queue);

/* Tries again to store the thread's @store_pending queues. */
void store_retry(struct context *context);

/* Returns how many queues are in the store, and how many are missing there. */
void store_count(struct store *store, uint64_t *storedp, uint64_t *pendingp);

#endif /* DAEMON_STORE_H */
