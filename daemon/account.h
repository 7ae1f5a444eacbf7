/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accounts: how much a user has of what is limited, in all threads together.
 * Each thread has a struct user of its own (user.h) that refers to the account.
 */
#ifndef DAEMON_ACCOUNT_H
#define DAEMON_ACCOUNT_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/counter.h"
#include "daemon/pool.h"
#include "daemon/util.h"

#define ACCOUNTS_BUCKETS	256

/**
 * struct account - one user
 * @all: in its bucket; likewise @references, under the lock of all accounts
 * @uid: const
 * @connections: open now, those included that have yet to say HELLO
 * @queues: it owns
 * @timers: in those queues, or on their way into them
 * @kept: of the queues, in the service manager's store; under the store's lock
 * @recounted_ns: when @timers was last made the truth, CLOCK_MONOTONIC
 */
struct account {
	struct list all;
	uint64_t references;
	uid_t uid;
	share_t connections;
	share_t queues;
	share_t timers;
	uint64_t kept;
	_Atomic uint64_t recounted_ns;
};

/**
 * struct accounts - all of them
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

/* Whether @uid may look at everything and is always let in, to find out what is
 * wrong: root and the daemon's own user.
 */
static inline bool accounts_privileged(const struct accounts *accounts,
				       uid_t uid)
{
	return !uid || uid == accounts->own;
}

/* A reference to the account of @uid; NULL: no memory. */
struct account *account_get(struct accounts *accounts, uid_t uid);

/* One reference less; without any the account must be even, and is forgotten. */
void account_put(struct accounts *accounts, struct account *account);

/* How many timers all of them have. */
uint64_t accounts_timers(struct accounts *accounts);

#endif /* DAEMON_ACCOUNT_H */
