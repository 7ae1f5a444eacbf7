// SPDX-License-Identifier: LGPL-2.1-or-later
/* HELLO: the first record of every connection. */
#include <errno.h>
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/connection.h"
#include "daemon/client/declare.h"
#include "daemon/client/delivery.h"
#include "daemon/client/hello.h"
#include "daemon/client/observer.h"
#include "daemon/client/permission.h"
#include "daemon/queue/access.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/declaration.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/durable.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/store.h"
#include "daemon/util/config.h"
#include "daemon/util/name.h"
#include "daemon/util/util.h"

/* Flags of HELLO that are the queue's mode. */
#define HELLO_MODE	(EXPIRY_HELLO_ACK | EXPIRY_HELLO_KEYED)

#define HELLO_FLAGS	(EXPIRY_HELLO_CONSUME | EXPIRY_HELLO_ACK | \
			 EXPIRY_HELLO_DURABLE | EXPIRY_HELLO_KEYED | \
			 EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_OBSERVE)

/* Returns whether HELLO requests a connection without any queue. */
static bool hello_wants_no_queue(const struct expiry_hello *hello)
{
	return hello->flags & EXPIRY_HELLO_EXISTING && !hello->name[0];
}

/* Returns the status of a protocol violation, and *@why as text. */
static int hello_check(const struct expiry_hello *hello, const char **why)
{
	if (hello->op != EXPIRY_OP_HELLO) {
		*why = "its first record is not HELLO";
		return -EPROTO;
	}
	if (hello->version != EXPIRY_WIRE_VERSION) {
		*why = "HELLO with an unsupported version";
		return -EPROTONOSUPPORT;
	}
	if (hello->flags & ~HELLO_FLAGS) {
		*why = "HELLO with unknown flags";
		return -EINVAL;
	}
	if (loop_clock(hello->clock_id) < 0) {
		*why = "HELLO with an unknown clock";
		return -EINVAL;
	}
	if (!name_is_valid(hello->name)) {
		*why = "HELLO with a bad name";
		return -EINVAL;
	}
	if (hello->flags & EXPIRY_HELLO_OBSERVE &&
	    (hello->flags & EXPIRY_HELLO_CONSUME || !hello->name[0])) {
		*why = "HELLO with OBSERVE and CONSUME, or with OBSERVE and no name";
		return -EINVAL;
	}
	if (hello->flags & EXPIRY_HELLO_DURABLE &&
	    ((hello->flags & HELLO_MODE) != HELLO_MODE || !hello->name[0])) {
		*why = "HELLO with DURABLE, but without KEYED, ACK or a name";
		return -EINVAL;
	}
	if (hello_wants_no_queue(hello) &&
	    hello->flags != EXPIRY_HELLO_EXISTING) {
		*why = "HELLO without a queue, but with flags for one";
		return -EINVAL;
	}
	return 0;
}

/* Makes the queue that HELLO names; it does not exist yet. */
static int hello_make(struct client *client, const struct expiry_hello *hello,
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
	if (hello->flags & EXPIRY_HELLO_DURABLE) {
		r = durable_may_make(context);
		if (r < 0)
			return r;
	}
	r = queue_new(client->context, &plan, queuep);
	if (r < 0)
		return r;
	if (hello->flags & EXPIRY_HELLO_DURABLE)
		durable_make(*queuep);
	/* Store the queue before the client gets HELLO's reply. */
	if (queue_is_named(*queuep))
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

/**
 * hello_attach - attach to the queue that a (checked) HELLO names, or make it
 *
 * -ENOENT: EXISTING or OBSERVE, and the queue does not exist. -EACCES: the
 * client has no right to it. -EINVAL: it has another clock or mode. -EBUSY: it
 * has a consumer, or the most observers. -EDQUOT: the user's limit of queues.
 * -ENOSPC: the daemon's. Or the engine's error.
 */
static int hello_attach(struct client *client, const struct expiry_hello *hello)
{
	const struct context *context = client->context;
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
		queue = queue_find(context->queues, hello->name);
	if (!queue)
		r = hello_make(client, hello, &queue);
	if (r < 0)
		return r;
	access_peer_init(&peer, client->user->uid, client->fd);
	client->access = queue_access_of(queue, &peer);
	if (!client->access || hello_access(hello) & ~client->access)
		return -EACCES;
	if (queue->clock_id != hello->clock_id || queue->mode != mode)
		return -EINVAL;
	/* A client that does not ask for it gets it, too. */
	if (hello->flags & EXPIRY_HELLO_DURABLE && !queue->journal_number)
		return context->durable ? -EINVAL : -EOPNOTSUPP;
	client->durable = queue->journal_number;
	if (client->durable) {
		r = durable_may_attach(queue);
		if (r < 0)
			return r;
	}
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
	if (hello->flags & EXPIRY_HELLO_CONSUME)
		delivery_attach(queue, client);
	return 0;
}

/* Refusals worth a line. The others are normal use: a queue has a consumer, is
 * of another kind or does not exist.
 */
static const char *attach_error(int error)
{
	switch (error) {
	case -EINVAL:
	case -EBUSY:
	case -ENOENT:
	case -EACCES:	/* has a line of its own */
		return NULL;
	case -EDQUOT:
		return "too many queues of its user";
	case -ENOSPC:
		return "too many queues";
	default:
		return "its queue cannot be made";
	}
}

void client_hello(struct client *client, struct expiry_record *record)
{
	struct context *context = client->context;
	struct expiry_hello hello;
	const char *why = NULL;
	int r;

	memcpy(&hello, record, sizeof(hello));
	r = hello_check(&hello, &why);
	if (r < 0) {
		counter_add(&context->stat.closed_protocol, 1);
	} else {
		r = hello_attach(client, &hello);
		if (r == -EACCES)
			permission_log_hello(client, hello.name);
		why = r < 0 ? attach_error(r) : NULL;
	}
	directory_unref(&context->shared->directory, client->in_directory);
	client->in_directory = NULL;
	*record = (struct expiry_record) {
		.op = EXPIRY_OP_HELLO,
		.flags = hello.flags,
		.status = r,
		.period_ms = hello.clock_id,
	};
	if (r < 0) {
		client_leave(client, why, r);
		return;
	}
	client->state = CLIENT_OPEN;
	record->id = client->queue ? charge_count_timers(client->queue) : 0;
	record->deadline_ns = loop_now(&context->loop, hello.clock_id);
	record->cookie = context->config.records_in_flight;
	if (client->durable) {
		record->flags |= EXPIRY_HELLO_DURABLE;
		record->cookie |= config_commit_ns(&context->config) /
				  NSEC_PER_MSEC << 32;
	}
}
