/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mailboxes: how one thread has another do something. A mail is part of what
 * it is about, so that to post one takes no memory; any thread may post, and the
 * owner is woken by an eventfd in its ring.
 */
#ifndef DAEMON_MAILBOX_H
#define DAEMON_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/loop.h"

struct server;

/**
 * struct mail - something to be done by another thread
 * @deliver: called there, once for each time it was posted, in the order of
 *	posting; should only note what is to be done in this turn. The mail may
 *	be posted again, or be gone, as soon as it is called.
 * @next: the mailbox's
 * @posted: and not delivered yet
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

/* In the thread whose it is. -errno */
int mailbox_init(struct mailbox *mailbox, struct server *server);

/* Nobody may post any more. */
void mailbox_deinit(struct mailbox *mailbox);

/* Post @mail, which must stay until it is delivered. One that is on its way
 * already is not posted again: it comes once, after this call.
 */
void mail_post(struct mailbox *mailbox, struct mail *mail);

#endif /* DAEMON_MAILBOX_H */
