// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>

#include "daemon/queue/crowded.h"

#define TABLE_MIN	64U

/**
 * struct crowded_arm - an entry of the table
 * @queue: NULL = the entry is free
 * @epoch: how often the queue had been forgotten when it was added
 * @arm: op 0 = it is forgotten. Id 0, which no timer has: @epoch is the queue's own.
 */
struct crowded_arm {
	struct queue *queue;
	uint64_t epoch;
	struct expiry_record arm;
};

/* Mixes all bits into the lowest ones: the end of MurmurHash3. */
static uint64_t hash(const struct crowded *crowded, const struct queue *queue,
		     uint64_t id)
{
	id = (id ^ crowded->key) + (uintptr_t)queue * 0x9e3779b97f4a7c15ULL;
	id ^= id >> 33;
	id *= 0xff51afd7ed558ccdULL;
	id ^= id >> 33;
	id *= 0xc4ceb9fe1a85ec53ULL;
	return id ^ id >> 33;
}

/* Returns the entry, or the free one for it. */
static struct crowded_arm *find(const struct crowded *crowded,
				const struct queue *queue, uint64_t id)
{
	uint32_t mask = crowded->size - 1, i = hash(crowded, queue, id) & mask;
	struct crowded_arm *entry = &crowded->table[i];

	while (entry->queue && (entry->queue != queue || entry->arm.id != id)) {
		i = (i + 1) & mask;
		entry = &crowded->table[i];
	}
	return entry;
}

static uint64_t epoch_of(const struct crowded *crowded,
			 const struct queue *queue)
{
	const struct crowded_arm *entry = find(crowded, queue, 0);

	return entry->queue ? entry->epoch : 0;
}

static bool is_arm(const struct crowded *crowded,
		   const struct crowded_arm *entry)
{
	return entry->queue && entry->arm.op &&
	       entry->epoch == epoch_of(crowded, entry->queue);
}

/* Makes a table in which half is free. Forgotten ones do not move to it. */
static int make_table(struct crowded *crowded)
{
	struct crowded old = *crowded;
	uint32_t i, nr = 1, size = TABLE_MIN;

	for (i = 0; i < old.size; i++)
		nr += is_arm(&old, &old.table[i]) ||
		      (old.table[i].queue && !old.table[i].arm.id);
	while (size < 2 * nr)
		size *= 2;
	crowded->table = calloc(size, sizeof(*crowded->table));
	if (!crowded->table) {
		crowded->table = old.table;
		return -ENOMEM;
	}
	crowded->size = size;
	crowded->nr_used = nr - 1;
	for (i = 0; i < old.size; i++) {
		const struct crowded_arm *entry = &old.table[i];

		if (is_arm(&old, entry) || (entry->queue && !entry->arm.id))
			*find(crowded, entry->queue, entry->arm.id) = *entry;
	}
	free(old.table);
	return 0;
}

/* Returns the entry, which may be new. NULL: no memory. */
static struct crowded_arm *get(struct crowded *crowded, struct queue *queue,
			       uint64_t id)
{
	struct crowded_arm *entry;

	if (!crowded->table &&
	    getrandom(&crowded->key, sizeof(crowded->key), 0) < 0)
		return NULL;
	if (4 * ((uint64_t)crowded->nr_used + 1) > 3 * (uint64_t)crowded->size &&
	    make_table(crowded) < 0)
		return NULL;
	entry = find(crowded, queue, id);
	if (!entry->queue) {
		crowded->nr_used++;
		*entry = (struct crowded_arm) { .queue = queue,
						.arm.id = id };
	}
	return entry;
}

int crowded_add(struct crowded *crowded, struct queue *queue,
		const struct expiry_record *arm)
{
	struct crowded_arm *entry = get(crowded, queue, arm->id);

	if (!entry)
		return -ENOMEM;
	crowded->nr += !entry->arm.op;
	entry->arm = *arm;
	entry->epoch = epoch_of(crowded, queue);
	return 0;
}

void crowded_forget(struct crowded *crowded, const struct queue *queue,
		    uint64_t id)
{
	struct crowded_arm *entry;

	if (!crowded->nr || !id)
		return;
	entry = find(crowded, queue, id);
	if (!entry->queue || !entry->arm.op)
		return;
	entry->arm.op = 0;
	crowded->nr--;
}

int crowded_forget_all(struct crowded *crowded, struct queue *queue)
{
	struct crowded_arm *entry;

	if (!crowded->nr)
		return 0;
	entry = get(crowded, queue, 0);
	if (!entry)
		return -ENOMEM;
	entry->epoch++;
	return 0;
}

int crowded_visit(const struct crowded *crowded,
		  int (*visit)(void *data, struct queue *queue,
			       const struct expiry_record *arm),
		  void *data)
{
	uint32_t i;
	int r = 0;

	for (i = 0; !r && i < crowded->size; i++)
		if (is_arm(crowded, &crowded->table[i]))
			r = visit(data, crowded->table[i].queue,
				  &crowded->table[i].arm);
	return r;
}

void crowded_free(struct crowded *crowded)
{
	free(crowded->table);
	*crowded = (struct crowded) { 0 };
}
