/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accounts: a user's share of the limited resources, in all threads together.
 * Each thread has a struct user of its own (user.h) that refers to the account.
 */
#ifndef DAEMON_ACCOUNT_H
#define DAEMON_ACCOUNT_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/util/counter.h"
#include "daemon/util/list.h"
#include "daemon/util/pool.h"

#define ACCOUNTS_BUCKETS	256

/**
 * struct account - one user
 * @all: in its bucket, under the lock of all accounts
 * @references: likewise
 * @uid: const
 * @connections: open now, including those before their HELLO
 * @queues: it owns
 * @timers: in those queues, or about to be
 * @stored: its queues in the service manager's store, under its lock
 * @recounted_ns: last recount of @timers, CLOCK_MONOTONIC
 */
struct account {
	struct list all;
	uint64_t references;
	uid_t uid;
	share_t connections;
	share_t queues;
	share_t timers;
	uint64_t stored;
	_Atomic uint64_t recounted_ns;
};

/**
 * struct accounts - the accounts of all users
 * @own: the daemon's own user (const)
 */
struct accounts {
	uid_t own;
	pthread_mutex_t lock;
	struct pool pool;
	struct list buckets[ACCOUNTS_BUCKETS];
};

void accounts_init(struct accounts *accounts);
void accounts_deinit(struct accounts *accounts);

/* Returns whether @uid may see everything and is always admitted, for
 * diagnosis: root and the daemon's own user.
 */
static inline bool accounts_privileged(const struct accounts *accounts,
				       uid_t uid)
{
	return !uid || uid == accounts->own;
}

/* Returns a reference to the account of @uid; NULL: no memory. */
struct account *account_get(struct accounts *accounts, uid_t uid);

/* Drops a reference. The last one frees the account; its charges must be 0. */
void account_put(struct accounts *accounts, struct account *account);

/* Returns the number of timers of all users. */
uint64_t accounts_timers(struct accounts *accounts);

#endif /* DAEMON_ACCOUNT_H */
