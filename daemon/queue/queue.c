// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/engine.h"
#include "daemon/queue/context.h"
#include "daemon/queue/queue.h"
#include "daemon/util/group.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

int queues_init(struct queues *queues, uint64_t nr_max)
{
	uint32_t i, buckets = 64;
	int r;

	pool_init(&queues->pool, sizeof(struct queue), nr_max);
	list_init(&queues->due);
	list_init(&queues->no_spare);
	r = name_key_init(&queues->key);
	if (r < 0)
		return r;
	while (buckets < nr_max)
		buckets *= 2;
	queues->mask = buckets - 1;
	queues->buckets = calloc(buckets + 1, sizeof(*queues->buckets));
	if (!queues->buckets)
		return -ENOMEM;
	for (i = 0; i <= buckets; i++)
		list_init(&queues->buckets[i]);
	return 0;
}

static struct list *queue_bucket(struct queues *queues, const char *name)
{
	if (!name[0])
		return &queues->buckets[queues->mask + 1];
	return &queues->buckets[name_hash(&queues->key, name) & queues->mask];
}

struct queue *queue_find(struct queues *queues, const char *name)
{
	struct list *bucket = queue_bucket(queues, name), *entry;

	for (entry = bucket->next; entry != bucket; entry = entry->next) {
		struct queue *queue = container_of(entry, struct queue, all);

		if (!memcmp(queue->name, name, sizeof(queue->name)))
			return queue;
	}
	return NULL;
}

void queue_forget(struct queue *queue)
{
	struct context *context = queue->context;

	assert(!queue->user && !queue->reading);
	assert(list_empty(&queue->all) && list_empty(&queue->due));
	context->engine->ops->queue_free(queue->engine_queue);
	pool_put(&context->queues->pool, queue);
	share_put(&context->shared->queues, 1);
}

void queue_set_journal(struct queue *queue, uint64_t number)
{
	struct context_stat *stat = &queue->context->stat;

	if (!number == !queue->journal_number)
		return;
	queue->journal_number = number;
	counter_add(&stat->durable_queues, number ? 1 : -1);
	counter_add(&stat->durable_timers,
		    number ? queue->charged : -queue->charged);
}

void queue_remove(struct queue *queue)
{
	struct account *account = queue->user->account;
	struct context *context = queue->context;

	assert(!queue->consumer && list_empty(&queue->observers));
	assert(queue->user->nr_queues);
	list_del(&queue->all);
	list_del(&queue->of_user);
	list_del(&queue->due);
	queue_set_journal(queue, 0);
	share_put(&account->timers, queue->charged);
	share_put(&account->queues, 1);
	queue->user->nr_queues--;
	user_put(&context->users, queue->user);
	directory_unref(&context->shared->directory, queue->in_directory);
	queue->user = NULL;
	queue->charged = 0;
	if (queue->reading) {
		queue->dying = true;
		return;
	}
	queue_forget(queue);
}

void queues_deinit(struct queues *queues)
{
	uint32_t i;

	for (i = 0; queues->buckets && i <= queues->mask + 1; i++) {
		struct list *bucket = &queues->buckets[i];

		while (!list_empty(bucket)) {
			struct queue *queue = container_of(bucket->next,
							   struct queue, all);

			/* The ring ends now: the read does not complete. */
			queue->reading = false;
			queue_remove(queue);
		}
	}
	free(queues->buckets);
	queues->buckets = NULL;
	pool_deinit(&queues->pool);
}

/* Adds a queue to its lists. Its engine's queue, clock and mode are set. */
static void queue_add(struct queue *queue, struct context *context,
		      struct user *user, struct directory_entry *entry,
		      const char *name)
{
	assert(queue->engine_queue && !queue->user);
	queue->engine_queue->owner = queue;
	queue->context = context;
	queue->user = user;
	queue->gid = GROUP_NONE;
	queue->access = ACCESS_OWNER_ALL;
	queue->number = context->queues->made++ * context->shared->nr +
			context->number + 1;
	memcpy(queue->name, name, sizeof(queue->name));
	queue->in_directory = directory_ref(&context->shared->directory, entry);
	list_init(&queue->due);
	list_init(&queue->observers);
	list_add(queue_bucket(context->queues, queue->name), &queue->all);
	list_add(&user->queues, &queue->of_user);
	user->nr_queues++;
}

int queue_new(struct context *context, const struct queue_plan *plan,
	      struct queue **queuep)
{
	struct expiry_config config = plan->config;
	struct account *account = plan->user->account;
	struct shared *shared = context->shared;
	struct queue *queue;
	int r;

	if (!share_take(&account->queues, 1,
			plan->is_restored ? UINT64_MAX :
					    context->config.queues_per_user)) {
		counter_add(&context->stat.refused_queues, 1);
		return -EDQUOT;
	}
	if (!share_take(&shared->queues, 1, context->queues->pool.nr_max)) {
		r = -ENOSPC;
		goto err_account;
	}
	queue = pool_get(&context->queues->pool);
	if (!queue) {
		r = -ENOMEM;
		goto err_queues;
	}
	r = context->engine->ops->queue_new(context->engine, &config,
					    plan->layout, &queue->engine_queue);
	if (r < 0)
		goto err_pool;
	queue->clock_id = config.clock_id;
	queue->mode = config.mode;
	queue_add(queue, context, plan->user, plan->in_directory, plan->name);
	*queuep = queue;
	return 0;

err_pool:
	pool_put(&context->queues->pool, queue);
err_queues:
	share_put(&shared->queues, 1);
err_account:
	counter_add(&context->stat.refused_queues, 1);
	share_put(&account->queues, 1);
	return r;
}

int queue_renew(struct queue *queue, const struct queue_plan *plan,
		struct engine_queue **oldp)
{
	struct engine *engine = queue->context->engine;
	struct expiry_config config = plan->config;
	struct engine_queue *renewed;
	int r = engine->ops->queue_new(engine, &config, plan->layout, &renewed);

	if (r < 0)
		return r;
	*oldp = queue->engine_queue;
	renewed->owner = queue;
	queue->engine_queue = renewed;
	return 0;
}

int queue_adopt(struct context *context, int fd, struct directory_entry *entry,
		const char *name, uid_t uid, struct queue **queuep)
{
	struct user *user;
	struct queue *queue;
	struct expiry_stat stat;
	int r = -ENOMEM;

	if (queue_find(context->queues, name))
		return -EEXIST;
	user = user_get(&context->users, uid);
	if (!user)
		return -ENOMEM;
	queue = pool_get(&context->queues->pool);
	if (!queue)
		goto err_user;
	r = context->engine->ops->queue_adopt(context->engine, fd, &stat,
					      &queue->engine_queue);
	if (r < 0)
		goto err_queue;
	queue->clock_id = stat.clock_id;
	queue->mode = stat.mode;
	share_add(&context->shared->queues, 1);
	share_add(&user->account->queues, 1);
	queue_add(queue, context, user, entry, name);
	*queuep = queue;
	return 0;

err_queue:
	pool_put(&context->queues->pool, queue);
err_user:
	user_put(&context->users, user);
	return r;
}

void queue_detach_consumer(struct queue *queue)
{
	const struct engine_ops *ops = queue->context->engine->ops;

	assert(queue->consumer);
	queue->consumer = NULL;
	queue->credit = 0;
	queue->rewinding = false;
	queue->clock_set = false;
	queue->unsent = 0;
	queue->takes = false;
	list_del(&queue->due);
	if (queue->waiting) {
		queue->waiting = false;
		ops->unwait(queue->engine_queue);
	}
	if (queue->reading && ops->stop)
		ops->stop(queue->engine_queue, &queue->read);
}

int queue_give(struct queue *queue, uid_t uid)
{
	struct users *users = &queue->context->users;
	struct user *from = queue->user, *to = user_get(users, uid);

	if (!to)
		return -ENOMEM;
	assert(from->nr_queues);
	share_add(&to->account->queues, 1);
	share_add(&to->account->timers, queue->charged);
	share_put(&from->account->queues, 1);
	share_put(&from->account->timers, queue->charged);
	list_del(&queue->of_user);
	list_add(&to->queues, &queue->of_user);
	to->nr_queues++;
	from->nr_queues--;
	user_put(users, from);
	queue->user = to;
	return 0;
}
