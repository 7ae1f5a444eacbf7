// SPDX-License-Identifier: LGPL-2.1-or-later
/* Explanations of errnos, and what to do about each. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "internal.h"

#define ANY	0	/* any op */

struct explanation {
	unsigned int op;
	int error;
	const char *text;
};

/* Sorted by op; within an op by likelihood. */
static const struct explanation explanations[] = {
	{ EXPIRY_OP_HELLO, EINVAL,
	  "the queue exists with another clock or mode or is not durable, or its name is not of A-Z a-z 0-9 . _ -; attach as it was made" },
	{ EXPIRY_OP_HELLO, EACCES,
	  "it belongs to another user; run this as that user or as root, or take another queue" },
	{ EXPIRY_OP_HELLO, EBUSY,
	  "the queue has a consumer already: end that one, or attach without consuming; or it has as many observers as it may; or the daemon has no place for one more connection: try again later" },
	{ EXPIRY_OP_HELLO, ENOENT,
	  "no such queue exists; or no daemon is there: start it with: systemctl start expiryd" },
	{ EXPIRY_OP_HELLO, ECONNREFUSED,
	  "no daemon answers; start it with: systemctl start expiryd" },
	{ EXPIRY_OP_HELLO, ECONNRESET,
	  "the daemon ended the connection without an answer: it is stopping, or its log says why" },
	{ EXPIRY_OP_HELLO, EDQUOT,
	  "you have as many queues as one user may; drop one, or raise the daemon's limit" },
	{ EXPIRY_OP_HELLO, ENOSPC,
	  "the daemon has as many queues as it may; drop one, or raise its limit; or its journal is full" },
	{ EXPIRY_OP_HELLO, EOPNOTSUPP,
	  "library and daemon are of different versions: restart the daemon; or it has no journal for a durable queue: set journal in expiryd.conf; or a device was asked for a name" },
	{ EXPIRY_OP_HELLO, EIO,
	  "the engine or the journal failed; the daemon's log says why" },
	{ EXPIRY_OP_HELLO, EPROTO,
	  "what answers there is not expiryd; look at the path" },
	{ EXPIRY_OP_HELLO, EMFILE,
	  "no file descriptor is left, here or in the daemon; raise the limit: ulimit -n here, LimitNOFILE= of the service" },
	{ EXPIRY_OP_HELLO, ENAMETOOLONG,
	  "the path is longer than that of a socket may be" },
	{ EXPIRY_OP_HELLO, EPERM,
	  "the limit asked for is above the module's maximum" },
	{ EXPIRY_OP_ARM, EINVAL,
	  "flags or id are wrong for this queue: a keyed one wants an id that is not 0, a plain one gives the ids itself" },
	{ EXPIRY_OP_ARM, EEXIST, "that id is armed already" },
	{ EXPIRY_OP_ARM, ENOSPC,
	  "the queue is full: cancel or acknowledge timers, or raise its limit; or the disk of the daemon's journal is full" },
	{ EXPIRY_OP_REFRESH, ENOSPC,
	  "the disk of the daemon's journal is full; cancel and acknowledge go on" },
	{ EXPIRY_OP_ARM, EDQUOT,
	  "you have as many timers as one user may; cancel some, or raise the daemon's limit" },
	{ EXPIRY_OP_ARM, ECONNRESET,
	  "the connection broke before the answer came: it may be armed; look for it, or arm it again" },
	{ EXPIRY_OP_ACK, ENOENT,
	  "not delivered, or acknowledged before" },
	{ EXPIRY_OP_ACK, EINVAL,
	  "not an acknowledging queue: there is nothing to acknowledge" },
	{ EXPIRY_OP_SCAN, EINVAL,
	  "not a cursor this queue gave" },
	{ EXPIRY_OP_SCAN, ECANCELED,
	  "the list was not continued for long, or the daemon was started anew: begin anew" },
	{ EXPIRY_OP_SCAN, ENOENT, "the queue is gone: it was dropped" },
	{ EXPIRY_OP_STAT, ENOENT, "the queue is gone: it was dropped" },
	{ EXPIRY_OP_DROP, ENOENT, "the queue is gone: it was dropped" },
	{ EXPIRY_OP_QUEUES, ENOENT, "the queue is gone: it was dropped" },
	{ EXPIRY_OP_DROP, EINVAL,
	  "the queue has no name: it goes with its connection" },
	{ EXPIRY_OP_DROP, EBUSY,
	  "others are attached to it; end them first" },
	{ ANY, ENOENT,
	  "no such timer is armed: it expired, was cancelled, or never was" },
	{ ANY, EINVAL,
	  "a field is wrong for this request: flags, status or id" },
	{ ANY, EOPNOTSUPP, "the server does not know this request" },
	{ ANY, ENOMEM, "the machine is short of memory; nothing was changed" },
	{ ANY, EACCES,
	  "this handle may not do that: it only observes, or the queue belongs to another user" },
	{ ANY, EBUSY,
	  "the daemon was held up and did nothing: try again; or replies are outstanding: take them first" },
	{ ANY, EIO,
	  "the engine or the journal failed; the daemon's log says why" },
	{ ANY, ENODEV, "the queue's device is gone; restart the daemon" },
	{ ANY, ENOBUFS, "more than was agreed would be on its way" },
	{ ANY, ECONNRESET,
	  "the daemon ended the connection; its log says why; connect again" },
	{ ANY, ETIMEDOUT,
	  "the daemon does not answer; it is stopped or overloaded" },
	{ ANY, EPROTO, "the daemon broke the protocol; connect again" },
	{ ANY, ESTALE,
	  "the queue was lost with its timers; open it again and arm them" },
	{ ANY, ENOTCONN, "the queue is gone, or was never set up" },
};

EXPORT const char *expiry_explain(int error, unsigned int op)
{
	const struct explanation *e;
	const char *name;
	size_t i;

	if (error < 0)
		error = -error;
	if (!error)
		return "done";
	for (i = 0; i < sizeof(explanations) / sizeof(*explanations); i++) {
		e = &explanations[i];
		if (e->error == error && (e->op == op || e->op == ANY))
			return e->text;
	}
	name = strerrordesc_np(error);
	return name ? name : "unknown error";
}
