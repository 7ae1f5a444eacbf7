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

/* An object, all zero; NULL if there is no memory or the limit is reached. */
void *pool_get(struct pool *pool);

/* Take an object back; NULL is allowed. */
void pool_put(struct pool *pool, void *object);

/* The object at place @index, in use or not; NULL: there are fewer places. An
 * object keeps its place. One that is not in use is as it was left, but for its
 * first word; if it never was, all zero.
 */
void *pool_at(const struct pool *pool, uint64_t index);

#endif /* DAEMON_POOL_H */
