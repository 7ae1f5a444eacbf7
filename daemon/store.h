/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service manager's store of descriptors (sd_pid_notify_with_fds(3)), and
 * what it hands us at the start: the listening socket, and the named queues of
 * a daemon that was here before.
 *
 * A queue of the kernel engine is a descriptor, and lives as long as anybody
 * has it. So each named queue's goes to the store before its first client gets
 * an answer, under the name QUEUE@UID; clock and mode the kernel knows.
 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct place;
struct queue;
struct server;
struct shards;

/**
 * struct store - the store as we know it
 * @fds: what we were handed, the first of them SD_LISTEN_FDS_START; @nr_fds of
 *	them, their names in @names and, if there are several threads, of
 *	queues where each goes in @places
 * @nr_queues: queues among @fds
 * @listener: the socket among them, or -1
 * @max: most descriptors that the manager takes
 * @kept: queues in the store
 * @bytes: of their names, which must fit into one variable of the environment
 *	of the next daemon
 * @missed: queues that the manager did not take in time; tried again
 * @lock: of @kept, @bytes and @missed, and of users' shares
 */
struct store {
	char **names;
	struct place **places;
	int nr_fds;
	int nr_queues;
	int listener;
	uint64_t max;
	uint64_t kept;
	uint64_t bytes;
	uint64_t missed;
	pthread_mutex_t lock;
};

/* Look at what we were handed. Says on stderr what is wrong; 0 or -errno. */
int store_init(struct store *store, struct shards *shards);
void store_deinit(struct store *store);

/* Make those queues among it the server's, whose engine is open, that its thread
 * is to have.
 */
int store_take(struct server *server);

/* All servers have theirs. */
void store_taken(struct shards *shards);

/* Have a named queue kept; whether it is. What is not kept ends with us. */
bool store_keep(struct queue *queue);

/* The queue is dropped. */
void store_forget(struct queue *queue);

/* Takes a queue out of the store, whose name there is about to change; what is in the
 * queue stays. Returns false if the service manager does not read.
 */
bool store_leave(struct queue *queue);

/* Try again to have kept what of the server's was @missed. */
void store_retry(struct server *server);

/* How many queues are in the store, and how many should be besides. */
void store_count(struct store *store, uint64_t *keptp, uint64_t *missedp);

#endif /* DAEMON_STORE_H */
