// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/permission.h"
#include "daemon/queue/access.h"
#include "daemon/queue/context.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/queue.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

bool permission_to_make(const struct client *client)
{
	const struct config *config = &client->context->config;
	struct access_peer peer;

	if (accounts_privileged(&client->context->shared->accounts,
				client->user->uid))
		return true;
	if (!strcmp(config->undeclared, "group")) {
		access_peer_init(&peer, client->user->uid, client->fd);
		return access_in_group(&peer, config->undeclared_gid);
	}
	return !strcmp(config->undeclared, "anybody");
}

/* ------------------------------------------------------------------ messages */

static void log_queue(const struct client *client, const struct queue *queue,
		      const char *what)
{
	struct log_about refused =
		client_about(client, LOG_ACCESS_REFUSED, EACCES);

	refused.queue = queue->name;
	log_peer(&refused,
		 "client of pid %d, uid %u refused: %s queue %.*s is not allowed: the queue is uid %u's, mode %03o",
		 (int)client->pid, (unsigned int)client->user->uid, what,
		 EXPIRY_NAME_MAX, queue->name, (unsigned int)queue->user->uid,
		 (unsigned int)queue->access);
}

void permission_log_hello(const struct client *client, const char *name)
{
	struct log_about refused =
		client_about(client, LOG_ACCESS_REFUSED, EACCES);
	struct context *context = client->context;
	const struct queue *queue = queue_find(context->queues, name);
	const struct declaration *file;

	if (queue) {
		log_queue(client, queue, "HELLO to");
		return;
	}
	refused.queue = name;
	file = declarations_find(context->declared, name);
	if (file)
		log_peer(&refused,
			 "client of pid %d, uid %u refused: queue %.*s is declared by %s, which has a fault",
			 (int)client->pid, (unsigned int)client->user->uid,
			 EXPIRY_NAME_MAX, name, file->path);
	else
		log_peer(&refused,
			 "client of pid %d, uid %u refused: queue %.*s is not declared, and undeclared = %s",
			 (int)client->pid, (unsigned int)client->user->uid,
			 EXPIRY_NAME_MAX, name, context->config.undeclared);
}

void permission_log_request(struct client *client, uint8_t op)
{
	static const char *const names[] = {
		[EXPIRY_OP_ARM] = "ARM in",
		[EXPIRY_OP_REFRESH] = "REFRESH in",
		[EXPIRY_OP_CANCEL] = "CANCEL in",
		[EXPIRY_OP_ACK] = "ACK in",
		[EXPIRY_OP_QUERY] = "QUERY in",
		[EXPIRY_OP_CLEAR] = "CLEAR of",
		[EXPIRY_OP_SCAN] = "SCAN of",
		[EXPIRY_OP_STAT] = "STAT of",
		[EXPIRY_OP_DROP] = "DROP of",
	};

	if (client->denied)
		return;
	client->denied = true;
	log_queue(client, client->queue, names[op]);
}

/* ------------------------------------------------------------------- changes */

void permission_renew(struct queue *queue)
{
	struct list *clients = &queue->context->connections->clients, *entry;
	struct access_peer peer;

	for (entry = clients->next; entry != clients;) {
		struct client *client = container_of(entry, struct client, all);
		uint8_t access;

		entry = entry->next;
		if (client->queue != queue || client->state != CLIENT_OPEN)
			continue;
		access_peer_init(&peer, client->user->uid, client->fd);
		access = queue_access_of(queue, &peer);
		if (client->observes)
			access &= ACCESS_LOOK;
		if (!access ||
		    (queue->consumer == client && !(access & ACCESS_CONSUME)))
			client_fail(client,
				    "its rights to the queue have changed",
				    EACCES);
		client->access = access;
	}
}
