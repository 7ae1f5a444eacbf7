/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Users: every resource that a client can make grow is charged to its user,
 * known by the credentials of its socket. A struct user is one thread's part;
 * the sums are in its account.
 */
#ifndef DAEMON_USER_H
#define DAEMON_USER_H

#include <stdint.h>
#include <sys/types.h>

#include "daemon/util/account.h"
#include "daemon/util/list.h"
#include "daemon/util/pool.h"

#define USERS_BUCKETS	256

/**
 * struct user - one user, in one thread
 * @all: in its bucket
 * @uid: const; likewise @account, a reference
 * @connections: open now
 * @queues: owned by it, by their @of_user; @nr_queues of them
 */
struct user {
	struct list all;
	uid_t uid;
	struct account *account;
	uint64_t connections;
	struct list queues;
	uint64_t nr_queues;
};

struct users {
	struct accounts *accounts;
	struct pool pool;
	struct list buckets[USERS_BUCKETS];
};

void users_init(struct users *users, struct accounts *accounts,
		uint64_t nr_max);
void users_deinit(struct users *users);

/* Returns the user, which stays as long as anything is charged; NULL: no
 * memory.
 */
struct user *user_get(struct users *users, uid_t uid);

/* Frees the user if this thread has no charge of it any more. */
void user_put(struct users *users, struct user *user);

#endif /* DAEMON_USER_H */
