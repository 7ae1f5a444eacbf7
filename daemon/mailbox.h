/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mailboxes: how one thread lets another work. A mail is embedded in its
 * object, so posting allocates nothing. Any thread may post; an eventfd in the
 * owner's ring wakes the owner.
 */
#ifndef DAEMON_MAILBOX_H
#define DAEMON_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/loop.h"

struct server;

/**
 * struct mail - work for another thread
 * @deliver: called there, once for each posting, in order
 * @next: the mailbox's
 * @posted: and not delivered yet
 *
 * @deliver should only record work for this turn. The mail may be posted again,
 * or freed, as soon as it is called.
 */
struct mail {
	void (*deliver)(struct server *server, struct mail *mail);
	struct mail *next;
	atomic_bool posted;
};

/**
 * struct mailbox - a thread's
 * @server: of that thread
 * @last: what was posted and not fetched, the last one first
 * @fd: an eventfd, readable once something is there; -1 = none
 * @woken: the read of @count from it
 */
struct mailbox {
	struct server *server;
	_Atomic(struct mail *) last;
	int fd;
	struct loop_op woken;
	uint64_t count;
};

/* Initializes it, in the owner's thread. -errno */
int mailbox_init(struct mailbox *mailbox, struct server *server);

/* Ends it; no thread may post any more. */
void mailbox_deinit(struct mailbox *mailbox);

/* Posts @mail, which must stay until it is delivered. A mail in transit is not
 * posted again: it comes once, after this call.
 */
void mail_post(struct mailbox *mailbox, struct mail *mail);

#endif /* DAEMON_MAILBOX_H */
