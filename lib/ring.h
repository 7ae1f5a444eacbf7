/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of records that arrived and that the program has not taken yet.
 *
 * Its size is fixed when the handle is opened, by the most that may arrive, so
 * ring_put() never finds it full.
 */
#ifndef LIB_RING_H
#define LIB_RING_H

#include <assert.h>
#include <stdint.h>
#include <linux/expiry.h>

/**
 * struct ring
 * @records: allocated by ring_init(), freed by ring_free()
 * @mask: number of records - 1, a power of two less one
 * @head: the oldest; counts on without wrapping
 * @tail: where the next one goes; likewise
 */
struct ring {
	struct expiry_record *records;
	uint32_t mask;
	uint32_t head;
	uint32_t tail;
};

/* Allocates room for at least @size records. -ENOMEM. */
int ring_init(struct ring *ring, uint32_t size);
void ring_free(struct ring *ring);

static inline uint32_t ring_nr(const struct ring *ring)
{
	return ring->tail - ring->head;
}

static inline uint32_t ring_room(const struct ring *ring)
{
	return ring->mask + 1 - ring_nr(ring);
}

static inline void ring_put(struct ring *ring,
			    const struct expiry_record *record)
{
	assert(ring_room(ring));
	ring->records[ring->tail++ & ring->mask] = *record;
}

/* Takes at most @max of the oldest; returns how many. */
uint32_t ring_take(struct ring *ring, struct expiry_record *records,
		   uint32_t max);

/* Returns where the next records go: *@nr contiguous ones (at most its value on
 * entry). Fill them, then call ring_commit().
 */
struct expiry_record *ring_reserve(const struct ring *ring, uint32_t *nr);

static inline void ring_commit(struct ring *ring, uint32_t nr)
{
	assert(nr <= ring_room(ring));
	ring->tail += nr;
}

#endif /* LIB_RING_H */
