/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's queues. */
#ifndef TOOLS_QUEUES_H
#define TOOLS_QUEUES_H

#include "ctl.h"

/**
 * struct queues - a list of them
 * @rows: @nr of them; room for @room
 */
struct queues {
	struct expiry_queue *rows;
	size_t nr;
	size_t room;
};

/* Ask by the connection of @ctl, in the place of what was in @queues, which is
 * all zero at first. 0 or an exit status, with the reason printed.
 */
int queues_ask(struct ctl *ctl, struct queues *queues);
void queues_free(struct queues *queues);

/* Looks for the queue @name over a connection of its own: 1 = found, 0 = not among
 * those that this user may see, or -errno.
 */
int queue_find(const struct ctl *ctl, const char *name,
	       struct expiry_queue *row);

/* Sorts by name, queues without one by age. */
void queues_sort(struct queues *queues);

#define QUEUE_LABEL	(EXPIRY_NAME_MAX + 8)	/* bytes that hold any label */

/* Writes a queue's name as a terminal may be shown it: '?' for what no name has. */
const char *queue_label(char *text, const struct expiry_queue *row);

/* Whether @row is of the queue that the command line names, or it names none. */
bool queue_meant(const struct ctl *ctl, const struct expiry_queue *row);

/* Returns for how long the first due timer has waited; 0: nothing is due. */
uint64_t queue_overdue(const struct expiry_stat *stat);

#endif /* TOOLS_QUEUES_H */
