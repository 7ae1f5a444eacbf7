/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Users: everything that a client can make grow is charged to the user behind
 * it, who is known by the credentials of its socket.
 */
#ifndef DAEMON_USER_H
#define DAEMON_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/pool.h"
#include "daemon/util.h"

#define USERS_BUCKETS	256

/**
 * struct user - one user
 * @all: in its bucket
 * @uid: const
 * @connections: open now
 * @queues: queues it owns, by their @of_user; @nr_queues of them
 * @kept: of these, in the service manager's store
 * @timers: in those queues
 * @recounted_ns: when that was last made the truth, CLOCK_MONOTONIC
 */
struct user {
	struct list all;
	uid_t uid;
	uint64_t connections;
	struct list queues;
	uint64_t nr_queues;
	uint64_t kept;
	uint64_t timers;
	uint64_t recounted_ns;
};

struct users {
	struct pool pool;
	struct list buckets[USERS_BUCKETS];
};

void users_init(struct users *users, uint64_t nr_max);
void users_deinit(struct users *users);

/* The user, who stays as long as anything is charged; NULL: no memory. */
struct user *user_get(struct users *users, uid_t uid);

/* Forget the user if nothing is charged any more. */
void user_put(struct users *users, struct user *user);

/* How many timers all of them have. */
uint64_t users_timers(const struct users *users);

#endif /* DAEMON_USER_H */
