// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <unistd.h>

#include "daemon/util/account.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

void accounts_init(struct accounts *accounts)
{
	size_t i;

	accounts->own = geteuid();
	pthread_mutex_init(&accounts->lock, NULL);
	/* Every account has a connection or a queue: those are limited. */
	pool_init(&accounts->pool, sizeof(struct account), UINT64_MAX);
	for (i = 0; i < ACCOUNTS_BUCKETS; i++)
		list_init(&accounts->buckets[i]);
}

void accounts_deinit(struct accounts *accounts)
{
	pool_deinit(&accounts->pool);
	pthread_mutex_destroy(&accounts->lock);
}

static struct account *account_find(struct list *bucket, uid_t uid)
{
	struct list *entry;

	for (entry = bucket->next; entry != bucket; entry = entry->next) {
		struct account *account = container_of(entry, struct account,
						       all);

		if (account->uid == uid)
			return account;
	}
	return NULL;
}

struct account *account_get(struct accounts *accounts, uid_t uid)
{
	struct list *bucket = &accounts->buckets[uid % ACCOUNTS_BUCKETS];
	struct account *account;

	pthread_mutex_lock(&accounts->lock);
	account = account_find(bucket, uid);
	if (!account) {
		account = pool_get(&accounts->pool);
		if (account) {
			account->uid = uid;
			list_add(bucket, &account->all);
		}
	}
	if (account)
		account->references++;
	pthread_mutex_unlock(&accounts->lock);
	return account;
}

void account_put(struct accounts *accounts, struct account *account)
{
	pthread_mutex_lock(&accounts->lock);
	assert(account->references);
	if (!--account->references) {
		assert(!share_read(&account->connections));
		assert(!share_read(&account->queues));
		assert(!share_read(&account->timers));
		list_del(&account->all);
		pool_put(&accounts->pool, account);
	}
	pthread_mutex_unlock(&accounts->lock);
}

uint64_t accounts_timers(struct accounts *accounts)
{
	uint64_t timers = 0;
	size_t i;

	pthread_mutex_lock(&accounts->lock);
	for (i = 0; i < ACCOUNTS_BUCKETS; i++) {
		const struct list *bucket = &accounts->buckets[i], *entry;

		for (entry = bucket->next; entry != bucket;
		     entry = entry->next)
			timers += share_read(&container_of(entry,
							   struct account,
							   all)->timers);
	}
	pthread_mutex_unlock(&accounts->lock);
	return timers;
}
