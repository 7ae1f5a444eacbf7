// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/delivery.h"
#include "daemon/client/observer.h"
#include "daemon/client/session.h"
#include "daemon/queue/context.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/queue.h"
#include "daemon/util/account.h"
#include "daemon/util/user.h"

void session_detach(struct client *client)
{
	struct queue *queue = client->queue;

	if (!queue)
		return;
	if (client->observes) {
		observer_leave(client);
		return;
	}
	client->queue = NULL;
	assert(queue->clients);
	queue->clients--;
	if (queue->consumer == client)
		queue_detach_consumer(queue);
	if (!queue_is_named(queue))
		queue_remove(queue);
}

static void session_consumer_changed(struct client *client)
{
	delivery_kick(client->queue);
}

static void session_copies_missed(struct client *client)
{
	observer_tell_missed(client);
}

/* Frees the role of the consumer at once. */
static void session_ended(struct client *client)
{
	if (client->queue && client->queue->consumer == client)
		queue_detach_consumer(client->queue);
}

static void session_freed(struct client *client)
{
	struct context *context = client->context;
	struct user *user = client->user;

	session_detach(client);
	directory_unref(&context->shared->directory, client->in_directory);
	share_put(&user->account->connections, 1);
	share_put(&context->shared->connections, 1);
	assert(user->connections);
	user->connections--;
	user_put(&context->users, user);
}

static const struct connection_ops session_ops = {
	.consumer_changed = session_consumer_changed,
	.copies_missed = session_copies_missed,
	.ended = session_ended,
	.freed = session_freed,
};

void sessions_init(struct connections *connections, struct context *context,
		   uint64_t nr_max)
{
	connections_init(connections, context, &session_ops, nr_max);
}

int session_begin(struct context *context, struct connection_start *start)
{
	struct user *user = user_get(&context->users, start->account->uid);
	struct client *client;

	if (!user)
		return -ENOMEM;
	client = client_new(context->connections, start);
	if (!client) {
		user_put(&context->users, user);
		return -ENOMEM;
	}
	start->in_directory = NULL;
	client->user = user;
	user->connections++;
	client_update(client);
	return 0;
}
