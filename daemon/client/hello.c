// SPDX-License-Identifier: LGPL-2.1-or-later
/* HELLO: the first record of every connection. */
#include <errno.h>
#include <string.h>

#include "daemon/client/client.h"
#include "daemon/client/permission.h"
#include "daemon/queue/access.h"
#include "daemon/queue/context.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/queue.h"
#include "daemon/util/name.h"

#define HELLO_FLAGS	(EXPIRY_HELLO_CONSUME | EXPIRY_HELLO_ACK | \
			 EXPIRY_HELLO_DURABLE | EXPIRY_HELLO_KEYED | \
			 EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_OBSERVE)

bool hello_wants_no_queue(const struct expiry_hello *hello)
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
	if (hello->flags & EXPIRY_HELLO_DURABLE) {
		*why = "HELLO with DURABLE, which is not supported";
		return -EOPNOTSUPP;
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
	if (hello_wants_no_queue(hello) &&
	    hello->flags != EXPIRY_HELLO_EXISTING) {
		*why = "HELLO without a queue, but with flags for one";
		return -EINVAL;
	}
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
		r = queue_attach(client, &hello);
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
	record->id = client->queue ? queue_count_timers(client->queue) : 0;
	record->deadline_ns = loop_now(&context->loop, hello.clock_id);
	record->cookie = context->config.records_in_flight;
}
