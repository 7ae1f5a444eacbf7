/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring of records: what arrived and the program has not taken yet.
 *
 * Its size is fixed when the handle is opened, from what may arrive at most, so
 * ring_put() never finds it full.
 */
#ifndef LIB_RING_H
#define LIB_RING_H

#include <stdint.h>
#include <linux/expiry.h>

/**
 * struct ring
 * @records: ring_init() takes the memory, ring_free() gives it back
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

/* Room for at least @size records. -ENOMEM. */
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
	ring->records[ring->tail++ & ring->mask] = *record;
}

/* Take at most @max of the oldest; returns how many. */
uint32_t ring_take(struct ring *ring, struct expiry_record *records,
		   uint32_t max);

/* Where the next records go: a run of *@nr of them (at most what it was on
 * entry) side by side. Fill, then ring_commit().
 */
struct expiry_record *ring_run(const struct ring *ring, uint32_t *nr);

static inline void ring_commit(struct ring *ring, uint32_t nr)
{
	ring->tail += nr;
}

#endif /* LIB_RING_H */
