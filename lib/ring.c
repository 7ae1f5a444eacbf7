// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A ring of records.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

int ring_init(struct ring *ring, uint32_t size)
{
	uint32_t nr = 1;

	assert(size && size <= 1U << 31);
	while (nr < size)
		nr *= 2;
	ring->records = malloc((size_t)nr * sizeof(*ring->records));
	if (!ring->records)
		return -ENOMEM;
	ring->mask = nr - 1;
	ring->head = 0;
	ring->tail = 0;
	return 0;
}

void ring_free(struct ring *ring)
{
	free(ring->records);
	ring->records = NULL;
}

uint32_t ring_take(struct ring *ring, struct expiry_record *records,
		   uint32_t max)
{
	uint32_t nr = ring_nr(ring);
	uint32_t start = ring->head & ring->mask;
	uint32_t first = ring->mask + 1 - start;

	assert(nr <= ring->mask + 1);
	if (nr > max)
		nr = max;
	if (first > nr)
		first = nr;
	memcpy(records, &ring->records[start], first * sizeof(*records));
	memcpy(records + first, ring->records, (nr - first) * sizeof(*records));
	ring->head += nr;
	return nr;
}

struct expiry_record *ring_reserve(const struct ring *ring, uint32_t *nr)
{
	uint32_t start = ring->tail & ring->mask;
	uint32_t max = ring->mask + 1 - start;

	if (max > ring_room(ring))
		max = ring_room(ring);
	if (*nr > max)
		*nr = max;
	return &ring->records[start];
}
