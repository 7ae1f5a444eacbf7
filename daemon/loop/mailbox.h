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

#include "daemon/loop/loop.h"

struct context;

/**
 * struct mail - work for another thread
 * @deliver: called in that thread, once for each posting
 * @next: in the mailbox's list
 * @posted: posted and not yet delivered
 *
 * Mails are delivered in the order of posting. @deliver should only record work
 * for this turn. The mail may be posted again, or freed, once it is called.
 */
struct mail {
	void (*deliver)(struct context *context, struct mail *mail);
	struct mail *next;
	atomic_bool posted;
};

/**
 * struct mailbox - a thread's
 * @loop: of that thread; likewise @context
 * @last: posted and not fetched, the latest first
 * @fd: an eventfd, readable with mail; -1 = none
 * @woken: the read of @count from it
 */
struct mailbox {
	struct loop *loop;
	struct context *context;
	_Atomic(struct mail *) last;
	int fd;
	struct loop_op woken;
	uint64_t count;
};

/* Initializes a mailbox in its owner's thread. Returns 0 or -errno. */
int mailbox_init(struct mailbox *mailbox, struct loop *loop,
		 struct context *context);

/* Frees a mailbox; no thread may post any more. */
void mailbox_deinit(struct mailbox *mailbox);

/* Posts @mail, which must stay until it is delivered. A mail in transit is not
 * posted again: it is delivered once, after this call.
 */
void mail_post(struct mailbox *mailbox, struct mail *mail);

#endif /* DAEMON_MAILBOX_H */
