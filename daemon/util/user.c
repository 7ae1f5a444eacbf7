// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>

#include "daemon/util/list.h"
#include "daemon/util/user.h"
#include "daemon/util/util.h"

void users_init(struct users *users, struct accounts *accounts,
		uint64_t nr_max)
{
	size_t i;

	users->accounts = accounts;
	pool_init(&users->pool, sizeof(struct user), nr_max);
	for (i = 0; i < USERS_BUCKETS; i++)
		list_init(&users->buckets[i]);
}

void users_deinit(struct users *users)
{
	pool_deinit(&users->pool);
}

struct user *user_get(struct users *users, uid_t uid)
{
	struct list *bucket = &users->buckets[uid % USERS_BUCKETS], *entry;
	struct user *user;

	for (entry = bucket->next; entry != bucket; entry = entry->next) {
		user = container_of(entry, struct user, all);
		if (user->uid == uid)
			return user;
	}
	user = pool_get(&users->pool);
	if (!user)
		return NULL;
	user->account = account_get(users->accounts, uid);
	if (!user->account) {
		pool_put(&users->pool, user);
		return NULL;
	}
	user->uid = uid;
	list_init(&user->queues);
	list_add(bucket, &user->all);
	return user;
}

void user_put(struct users *users, struct user *user)
{
	if (user->connections || user->nr_queues)
		return;
	assert(list_empty(&user->queues));
	list_del(&user->all);
	account_put(users->accounts, user->account);
	pool_put(&users->pool, user);
}
