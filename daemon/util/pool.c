// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/pool.h"

#define POOL_ALIGN	64
#define POOL_CHUNK	(64 * 1024)

/* Header of a chunk, and of a free object. */
struct pool_link {
	void *next;
};

void pool_init(struct pool *pool, size_t size, uint64_t nr_max)
{
	*pool = (struct pool) {
		.size = (size + POOL_ALIGN - 1) & ~(size_t)(POOL_ALIGN - 1),
		.nr_max = nr_max,
	};
}

void pool_deinit(struct pool *pool)
{
	while (pool->chunks) {
		struct pool_link *chunk = pool->chunks;

		pool->chunks = chunk->next;
		free(chunk);
	}
	pool->free = NULL;
	pool->nr_chunks = 0;
}

static int pool_grow(struct pool *pool)
{
	size_t size = POOL_CHUNK, offset;
	struct pool_link *chunk, *object;

	assert(pool->size && pool->size <= POOL_CHUNK - POOL_ALIGN);
	assert(!pool->free);

	chunk = aligned_alloc(POOL_ALIGN, size);
	if (!chunk)
		return -1;
	memset(chunk, 0, size);
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->nr_chunks++;

	/* The first object given out is the one at the lowest address. */
	offset = POOL_ALIGN + (size - POOL_ALIGN) / pool->size * pool->size;
	while (offset > POOL_ALIGN) {
		offset -= pool->size;
		object = (void *)((char *)chunk + offset);
		object->next = pool->free;
		pool->free = object;
	}
	return 0;
}

void *pool_get(struct pool *pool)
{
	struct pool_link *object;

	if (pool->nr >= pool->nr_max)
		return NULL;
	if (!pool->free && pool_grow(pool))
		return NULL;
	object = pool->free;
	pool->free = object->next;
	pool->nr++;
	memset(object, 0, pool->size);
	return object;
}

void pool_put(struct pool *pool, void *object)
{
	struct pool_link *link = object;

	if (!object)
		return;
	assert(pool->nr);
	link->next = pool->free;
	pool->free = link;
	pool->nr--;
}

void *pool_at(const struct pool *pool, uint64_t index)
{
	uint64_t each = (POOL_CHUNK - POOL_ALIGN) / pool->size;
	uint64_t back = index / each;
	struct pool_link *chunk = pool->chunks;

	if (back >= pool->nr_chunks)
		return NULL;
	for (back = pool->nr_chunks - 1 - back; back; back--)
		chunk = chunk->next;
	return (char *)chunk + POOL_ALIGN + index % each * pool->size;
}
