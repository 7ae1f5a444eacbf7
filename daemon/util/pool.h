/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects of one size, allocated and freed without malloc or free: the pool
 * grows by chunks up to its limit and keeps its memory.
 */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct pool - a pool of objects
 * @size: of one object, rounded up (const after pool_init())
 * @nr: objects in use
 * @nr_max: most objects in use at once; may be changed
 * @free: list of free objects
 * @chunks: all memory, the newest first; @nr_chunks of them
 */
struct pool {
	size_t size;
	uint64_t nr;
	uint64_t nr_max;
	void *free;
	void *chunks;
	uint64_t nr_chunks;
};

void pool_init(struct pool *pool, size_t size, uint64_t nr_max);
void pool_deinit(struct pool *pool);

/* Returns an object, all zero; NULL if there is no memory or the limit is
 * reached.
 */
void *pool_get(struct pool *pool);

/* Frees an object; NULL is allowed. */
void pool_put(struct pool *pool, void *object);

/* Returns the object at index @index, in use or not; NULL: there are fewer. An
 * object keeps its index. An unused one is unchanged since its use, except its
 * first word; if it was never used, all zero.
 */
void *pool_at(const struct pool *pool, uint64_t index);

#endif /* DAEMON_POOL_H */
