// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/client/client.h"
#include "daemon/client/declare.h"
#include "daemon/client/observer.h"
#include "daemon/client/permission.h"
#include "daemon/engine/engine.h"
#include "daemon/queue/access.h"
#include "daemon/queue/context.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/store.h"
#include "daemon/util/group.h"
#include "daemon/util/util.h"

/* Least time between two recounts of a user at the limit. */
#define RECOUNT_NS	100000000

/* Flags of HELLO that are the queue's mode. */
#define HELLO_MODE	(EXPIRY_HELLO_ACK | EXPIRY_HELLO_KEYED)

int queues_init(struct queues *queues, uint64_t nr_max)
{
	uint32_t i, buckets = 64;
	int r;

	pool_init(&queues->pool, sizeof(struct queue), nr_max);
	list_init(&queues->due);
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

static bool queue_named(const struct queue *queue)
{
	return queue->name[0];
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

	context->engine->ops->queue_free(queue->engine_queue);
	pool_put(&context->queues->pool, queue);
	share_put(&context->shared->queues, 1);
}

/* Removes the queue; the engine's reads for it end first. */
static void queue_free(struct queue *queue)
{
	struct account *account = queue->user->account;
	struct context *context = queue->context;

	list_del(&queue->all);
	list_del(&queue->of_user);
	list_del(&queue->due);
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
			queue_free(queue);
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
	queue->engine_queue->owner = queue;
	queue->engine_queue->due = delivery_due;
	queue->context = context;
	queue->user = user;
	queue->gid = GROUP_NONE;
	queue->access = ACCESS_OWNER_ALL;
	queue->number = context->queues->made++ * context->shared->nr +
			context->number + 1;
	memcpy(queue->name, name, sizeof(queue->name));
	queue->in_directory = directory_ref(&context->shared->directory, entry);
	queue->read.done = delivery_read_done;
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

	if (!share_take(&account->queues, 1, context->config.queues_per_user)) {
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
	charge_update(queue);
	*queuep = queue;
	return 0;

err_queue:
	pool_put(&context->queues->pool, queue);
err_user:
	user_put(&context->users, user);
	return r;
}

/* Makes the queue that HELLO names; it does not exist yet. */
static int queue_make(struct client *client, const struct expiry_hello *hello,
		      struct queue **queuep)
{
	const struct context *context = client->context;
	const struct declaration *declaration = NULL;
	const struct queue_plan plan = {
		.name = hello->name,
		.in_directory = client->in_directory,
		.user = client->user,
		.config = {
			.clock_id = hello->clock_id,
			.mode = hello->flags & HELLO_MODE,
			.limit = context->config.timers_per_queue,
		},
		.layout = config_layout(&context->config),
	};
	int r;

	if (hello->name[0])
		declaration = declarations_find(context->declared, hello->name);
	if (declaration)
		return declare_queue(client->context, declaration, queuep);
	if (hello->flags & (EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_OBSERVE))
		return -ENOENT;
	if (hello->name[0] && !permission_to_make(client))
		return -EACCES;
	r = queue_new(client->context, &plan, queuep);
	if (r < 0)
		return r;
	/* Store the queue before the client gets HELLO's reply. */
	if (queue_named(*queuep))
		store_keep(*queuep);
	return 0;
}

/* Returns the bits that the flags of a HELLO need. */
static uint8_t hello_access(const struct expiry_hello *hello)
{
	if (hello->flags & EXPIRY_HELLO_OBSERVE)
		return ACCESS_LOOK;
	return hello->flags & EXPIRY_HELLO_CONSUME ? ACCESS_CONSUME :
						     ACCESS_NONE;
}

int queue_attach(struct client *client, const struct expiry_hello *hello)
{
	uint32_t mode = hello->flags & HELLO_MODE;
	struct queue *queue = NULL;
	struct access_peer peer;
	int r = 0;

	client->access = ACCESS_ALL;
	if (hello_wants_no_queue(hello)) {
		client->queueless = true;
		return 0;
	}
	if (hello->name[0])
		queue = queue_find(client->context->queues, hello->name);
	if (!queue)
		r = queue_make(client, hello, &queue);
	if (r < 0)
		return r;
	access_peer_init(&peer, client->user->uid, client->fd);
	client->access = access_of(queue, &peer);
	if (!client->access || hello_access(hello) & ~client->access)
		return -EACCES;
	if (queue->clock_id != hello->clock_id || queue->mode != mode)
		return -EINVAL;
	if (hello->flags & EXPIRY_HELLO_CONSUME && queue->consumer)
		return -EBUSY;
	if (hello->flags & EXPIRY_HELLO_OBSERVE) {
		r = observer_join(client, queue);
		if (r < 0)
			return r;
		/* An observer may look and nothing else. */
		client->access &= ACCESS_LOOK;
		client->queue = queue;
		return 0;
	}
	client->queue = queue;
	queue->clients++;
	if (hello->flags & EXPIRY_HELLO_CONSUME) {
		queue->consumer = client;
		queue->epoch++;
		queue->credit = 0;
		queue->rewinding = queue->mode & EXPIRY_MODE_ACK;
		delivery_kick(queue);
	}
	return 0;
}

void queue_detach(struct client *client)
{
	struct queue *queue = client->queue;

	if (!queue)
		return;
	if (client->observes) {
		observer_leave(client);
		client->queue = NULL;
		return;
	}
	client->queue = NULL;
	queue->clients--;
	if (queue->consumer == client)
		delivery_detach(queue);
	if (!queue_named(queue))
		queue_free(queue);
}

int queue_drop(struct client *client)
{
	struct context *context = client->context;
	struct queue *queue = client->queue;
	const struct declaration *declaration;
	int r;

	if (!queue_named(queue))
		return -EINVAL;
	if (queue->clients > 1)
		return -EBUSY;
	r = observers_end(queue);
	if (r < 0)
		return r;
	declaration = declarations_find(context->declared, queue->name);
	store_forget(queue);
	queue_detach(client);
	queue_free(queue);
	if (declaration)
		declare_anew(context, declaration);
	return 0;
}

int queue_give(struct queue *queue, uid_t uid)
{
	struct users *users = &queue->context->users;
	struct user *from = queue->user, *to = user_get(users, uid);

	if (!to)
		return -ENOMEM;
	if (!store_leave(queue)) {
		user_put(users, to);
		return -EAGAIN;
	}
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
	store_keep(queue);
	return 0;
}

void charge_update(struct queue *queue)
{
	uint64_t timers = queue->engine_queue->timers + queue->pending;

	if (timers == queue->charged)
		return;
	share_add(&queue->user->account->timers, timers - queue->charged);
	queue->charged = timers;
}

void charge_complete(struct queue *queue, uint32_t arms)
{
	queue->pending -= arms;
	charge_update(queue);
}

/* Returns whether a keyed queue has this timer: arming it then adds none. */
static bool queue_has(struct queue *queue, uint64_t id)
{
	struct expiry_record record = { .op = EXPIRY_OP_QUERY, .id = id };
	int r = queue->context->engine->ops->submit_now(queue->engine_queue,
							&record, 1);

	return !r && !record.status;
}

static void queue_recount(struct queue *queue)
{
	if (!queue->context->engine->ops->recount(queue->engine_queue))
		charge_update(queue);
}

uint64_t queue_count_timers(struct queue *queue)
{
	queue_recount(queue);
	return queue->engine_queue->timers;
}

static void user_recount(struct user *user)
{
	struct list *entry;

	for (entry = user->queues.next; entry != &user->queues;
	     entry = entry->next)
		queue_recount(container_of(entry, struct queue, of_user));
}

void users_recount(struct context *context, struct mail *mail)
{
	uint64_t now_ns = loop_now_exactly(CLOCK_MONOTONIC);
	struct list *bucket, *entry;
	uint32_t i;

	(void)mail;
	for (i = 0; i < USERS_BUCKETS; i++) {
		bucket = &context->users.buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			struct user *user = container_of(entry, struct user,
							 all);

			if (now_ns - user->account->recounted_ns < RECOUNT_NS)
				user_recount(user);
		}
	}
}

/* Recounts all the user's timers, since an engine's own count may be too high:
 * this thread's now, the others' soon.
 */
static void account_recount(struct context *context, struct user *user)
{
	uint64_t now_ns = loop_now(&context->loop, CLOCK_MONOTONIC);
	struct shared *shared = context->shared;
	uint64_t last_ns = user->account->recounted_ns;
	uint32_t i;

	/* Signed: another thread's turn may have a later time. */
	if ((int64_t)(now_ns - last_ns) < RECOUNT_NS ||
	    !atomic_compare_exchange_strong(&user->account->recounted_ns,
					    &last_ns, now_ns))
		return;
	user_recount(user);
	for (i = 0; i < shared->nr; i++)
		if (shared->contexts[i] != context)
			mail_post(&shared->contexts[i]->mailbox,
				  &shared->contexts[i]->recount);
}

/* Returns whether the user stays below the limit with all requests in flight:
 * those in the buffers of all threads, and in the private memory of clients.
 * The sum is below 2^49, see MOST in config.c.
 */
static bool user_has_headroom(const struct context *context,
			      const struct user *user)
{
	uint64_t now = share_read(&user->account->timers);
	uint64_t limit = context->config.timers_per_user;
	uint64_t bytes = (uint64_t)context->shared->nr *
				 context->buffers.nr_ring *
				 context->buffers.size +
			 context_backlog_max(context);

	return now < limit &&
	       limit - now > bytes / sizeof(struct expiry_record);
}

/* Charges the owner with @arms timers. Returns false if that is too many. */
static bool charge_take(struct queue *queue, uint32_t arms)
{
	uint64_t limit = queue->context->config.timers_per_user;

	if (arms && !share_take(&queue->user->account->timers, arms, limit))
		return false;
	queue->charged += arms;
	queue->pending += arms;
	return true;
}

uint32_t charge_admit(struct queue *queue, const struct expiry_record *records,
		      uint32_t count, uint32_t *armsp)
{
	uint32_t arms = 0, i;

	*armsp = 0;
	if (user_has_headroom(queue->context, queue->user))
		return count;

	/* Near the limit each record counts. */
	for (i = 0; i < count; i++)
		arms += records[i].op == EXPIRY_OP_ARM;
	*armsp = arms;
	if (charge_take(queue, arms))
		return count;
	queue_recount(queue);
	if (charge_take(queue, arms))
		return count;
	account_recount(queue->context, queue->user);
	*armsp = 0;
	for (i = 0; i < count; i++) {
		if (records[i].op != EXPIRY_OP_ARM)
			continue;
		if (!charge_take(queue, 1))
			break;
		++*armsp;
	}
	/* Records before the first one above the limit may make room. */
	if (i)
		return i;
	return queue->mode & EXPIRY_MODE_KEYED &&
	       queue_has(queue, records[0].id) ? 1 : 0;
}
