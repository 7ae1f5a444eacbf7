/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The queues that the daemon lists.
 */
#ifndef TOOLS_QUEUE_LIST_H
#define TOOLS_QUEUE_LIST_H

#include "tools/ctl.h"

/**
 * struct queues - a list of queues
 * @rows: array of queues
 * @nr: number of queues
 * @room: capacity of @rows
 */
struct queues {
	struct expiry_queue *rows;
	size_t nr;
	size_t room;
};

/* Replaces the rows of @queues, which is initially zero, with the daemon's list over
 * the connection of @ctl. Returns 0, or an exit status with the reason printed.
 */
int queues_ask(struct ctl *ctl, struct queues *queues);
void queues_free(struct queues *queues);

/* Looks for the queue @name over a separate connection. Returns 1, 0 if this user
 * sees no such queue, or -errno.
 */
int queue_find(const struct ctl *ctl, const char *name,
	       struct expiry_queue *row);

/* Returns whether the protocol allows a name. A server's names are not trusted: a shell
 * evaluates those of `queues --names`, and metrics are printed without escapes.
 */
bool is_queue_name(const char *text);

/* Keeps the queues that the command line selects; if @named, those with a name that the
 * protocol allows. Sorts them by name, and queues without a name by age.
 */
void queues_choose(const struct ctl *ctl, struct queues *queues, bool named);

#define QUEUE_LABEL	(EXPIRY_NAME_MAX + 8)	/* bytes for any label */

/* Writes a queue's name with '?' for characters that are unsafe on a terminal. */
const char *queue_label(char *text, const struct expiry_queue *row);

/* Returns whether the command line names @row's queue, or no queue at all. */
bool queue_meant(const struct ctl *ctl, const struct expiry_queue *row);

#endif /* TOOLS_QUEUE_LIST_H */
