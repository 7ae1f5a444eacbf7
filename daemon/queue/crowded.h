/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ARMs for which a queue has no room yet, at the start. A checkpoint has timers that came
 * while it was taken, so a full queue may have too many until the end of the journal.
 */
#ifndef DAEMON_CROWDED_H
#define DAEMON_CROWDED_H

#include <stdint.h>
#include <linux/expiry.h>

struct queue;
struct crowded_arm;

/**
 * struct crowded - such ARMs of all queues, at most one of each id
 * @table: hashed by queue and id, @size entries, a power of two, @nr_used of them taken
 * @key: of the hash: a client chooses the ids
 * @nr: not forgotten one by one; 0 = there is none
 */
struct crowded {
	struct crowded_arm *table;
	uint32_t size;
	uint32_t nr_used;
	uint64_t key;
	uint64_t nr;
};

/* Notes an ARM, in place of an earlier one of its id. -ENOMEM. */
int crowded_add(struct crowded *crowded, struct queue *queue,
		const struct expiry_record *arm);

/* Forgets the ARM of @id. */
void crowded_forget(struct crowded *crowded, const struct queue *queue,
		    uint64_t id);

/* Forgets all of a queue, in constant time. The queue may end then. -ENOMEM. */
int crowded_forget_all(struct crowded *crowded, struct queue *queue);

/* Calls @visit for each until that returns other than 0. */
int crowded_visit(const struct crowded *crowded,
		  int (*visit)(void *data, struct queue *queue,
			       const struct expiry_record *arm),
		  void *data);

void crowded_free(struct crowded *crowded);

#endif /* DAEMON_CROWDED_H */
