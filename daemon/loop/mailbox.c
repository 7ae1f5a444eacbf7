// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/loop/mailbox.h"
#include "daemon/util/util.h"

static void mailbox_wait(struct mailbox *mailbox)
{
	struct io_uring_sqe *sqe = loop_sqe(mailbox->loop, &mailbox->woken);

	io_uring_prep_read(sqe, mailbox->fd, &mailbox->count,
			   sizeof(mailbox->count), 0);
}

/* Delivers all mails, in the order of posting. */
static struct mail *mailbox_fetch(struct mailbox *mailbox)
{
	struct mail *mail, *next, *first = NULL;

	mail = atomic_exchange_explicit(&mailbox->last, NULL,
					memory_order_acquire);
	for (; mail; mail = next) {
		next = mail->next;
		mail->next = first;
		first = mail;
	}
	return first;
}

static void mailbox_woken(struct loop_op *op, int result, uint32_t flags)
{
	struct mailbox *mailbox = container_of(op, struct mailbox, woken);
	struct mail *mail, *next;

	(void)flags;
	if (result == -ECANCELED)
		return;
	for (mail = mailbox_fetch(mailbox); mail; mail = next) {
		next = mail->next;
		/* A mail posted from here on is delivered again, and earlier
		 * writes of its poster are visible.
		 */
		atomic_exchange(&mail->posted, false);
		mail->deliver(mailbox->context, mail);
	}
	mailbox_wait(mailbox);
}

int mailbox_init(struct mailbox *mailbox, struct loop *loop,
		 struct context *context)
{
	*mailbox = (struct mailbox) {
		.loop = loop,
		.context = context,
		.woken.done = mailbox_woken,
	};
	mailbox->fd = eventfd(0, EFD_CLOEXEC);
	if (mailbox->fd < 0)
		return -errno;
	mailbox_wait(mailbox);
	return 0;
}

void mailbox_deinit(struct mailbox *mailbox)
{
	if (mailbox->fd >= 0)
		close(mailbox->fd);
	mailbox->fd = -1;
}

void mail_post(struct mailbox *mailbox, struct mail *mail)
{
	static const uint64_t one = 1;
	struct mail *last;

	assert(mailbox->fd >= 0 && mail->deliver);
	if (atomic_exchange(&mail->posted, true))
		return;
	last = atomic_load_explicit(&mailbox->last, memory_order_relaxed);
	do {
		mail->next = last;
	} while (!atomic_compare_exchange_weak_explicit(&mailbox->last, &last,
							mail,
							memory_order_release,
							memory_order_relaxed));
	/* The first mail wakes the owner; the others follow. Cannot fail: the
	 * count is far below its maximum.
	 */
	if (!last)
		while (write(mailbox->fd, &one, sizeof(one)) < 0 &&
		       errno == EINTR)
			;
}
