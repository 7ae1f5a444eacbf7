/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Maps from ids to numbers, for bench/heap/maps: the index and other tables. */
#ifndef BENCH_HEAP_MAP_H
#define BENCH_HEAP_MAP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ids of one call. */
#define MAP_BATCH	512U

/**
 * struct map - a kind of map
 * @create: an empty one; @nr: most ids it will have
 * @add: ids that are not in it, with the numbers @from, @from + 1, ...
 * @find: returns the sum of the numbers of those that are in it
 * @remove: ids that are in it
 *
 * The first calls of a batch may prefetch what the others need.
 */
struct map {
	const char *name;
	void *(*create)(uint32_t nr);
	void (*destroy)(void *self);
	void (*add)(void *self, const uint64_t *ids, uint32_t count);
	uint64_t (*find)(void *self, const uint64_t *ids, uint32_t count);
	void (*remove)(void *self, const uint64_t *ids, uint32_t count);
};

/* Returns the SipHash-1-3 of an id with a secret that all maps share. */
uint64_t map_siphash(uint64_t id);

extern const struct map map_index;
extern const struct map map_khash;
extern const struct map map_khash_siphash;
extern const struct map map_swiss;
extern const struct map map_swiss_siphash;

#ifdef __cplusplus
}
#endif

#endif /* BENCH_HEAP_MAP_H */
