/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects of one size, handed out and taken back without malloc or free: the
 * pool grows by chunks up to its limit and keeps what it has.
 */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <stddef.h>
#include <stdint.h>

/**
 * struct pool - a pool of objects
 * @size: of one object, rounded up for alignment (const after pool_init())
 * @nr: objects in use
 * @nr_max: most objects in use at once; may be changed
 * @free: list of those that are not
 * @chunks: all memory, to give it back in the end
 */
struct pool {
	size_t size;
	uint64_t nr;
	uint64_t nr_max;
	void *free;
	void *chunks;
};

void pool_init(struct pool *pool, size_t size, uint64_t nr_max);
void pool_deinit(struct pool *pool);

/* An object, all zero; NULL if there is no memory or the limit is reached. */
void *pool_get(struct pool *pool);

/* Take an object back; NULL is allowed. */
void pool_put(struct pool *pool, void *object);

#endif /* DAEMON_POOL_H */
