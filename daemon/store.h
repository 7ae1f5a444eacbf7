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

#include <stdbool.h>
#include <stdint.h>

struct queue;
struct server;

/**
 * struct store - the store as we know it
 * @fds: what we were handed, the first of them SD_LISTEN_FDS_START; @nr_fds of
 *	them, their names in @names
 * @nr_queues: queues among @fds
 * @listener: the socket among them, or -1
 * @max: most descriptors that the manager takes
 * @kept: queues in the store
 * @bytes: of their names, which must fit into one variable of the environment
 *	of the next daemon
 * @missed: queues that the manager did not take in time; tried again
 */
struct store {
	char **names;
	int nr_fds;
	int nr_queues;
	int listener;
	uint64_t max;
	uint64_t kept;
	uint64_t bytes;
	uint64_t missed;
};

/* Look at what we were handed. Says on stderr what is wrong; 0 or -errno. */
int store_init(struct store *store);
void store_deinit(struct store *store);

/* Make the queues among it the server's, whose engine is open. */
int store_take(struct server *server);

/* Have a named queue kept; whether it is. What is not kept ends with us. */
bool store_keep(struct queue *queue);

/* The queue is dropped. */
void store_forget(struct queue *queue);

/* Try again to have kept what was @missed. */
void store_retry(struct server *server);

#endif /* DAEMON_STORE_H */
