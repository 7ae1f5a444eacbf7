// SPDX-License-Identifier: LGPL-2.1-or-later
/* khash of htslib: open addressing with flags in bits, quadratic probing. */
#include <htslib/khash.h>

#include "bench/bench.h"
#include "map.h"

#define hash_siphash(id)	((khint_t)(map_siphash(id) >> 32))
#define is_equal(a, b)		((a) == (b))

KHASH_MAP_INIT_INT64(own, uint32_t)
KHASH_INIT(siphash, khint64_t, uint32_t, 1, hash_siphash, is_equal)

/* The functions of one kind of it. */
#define KIND(kind)							\
static void *create_##kind(uint32_t nr)					\
{									\
	(void)nr;							\
	return kh_init(kind);						\
}									\
									\
static void destroy_##kind(void *self)					\
{									\
	kh_destroy(kind, (khash_t(kind) *)self);			\
}									\
									\
static void add_##kind(void *self, const uint64_t *ids, uint32_t count)	\
{									\
	khash_t(kind) *hash = self;					\
	uint32_t i;							\
	int ret;							\
									\
	for (i = 0; i < count; i++) {					\
		khint_t place = kh_put(kind, hash, ids[i], &ret);	\
									\
		if (ret <= 0)						\
			die("khash has the id already, or no memory");	\
		kh_val(hash, place) = i;				\
	}								\
}									\
									\
static uint64_t find_##kind(void *self, const uint64_t *ids,		\
			    uint32_t count)				\
{									\
	khash_t(kind) *hash = self;					\
	uint64_t sum = 0;						\
	uint32_t i;							\
									\
	for (i = 0; i < count; i++)					\
		sum += kh_get(kind, hash, ids[i]) != kh_end(hash);	\
	return sum;							\
}									\
									\
static void remove_##kind(void *self, const uint64_t *ids,		\
			  uint32_t count)				\
{									\
	khash_t(kind) *hash = self;					\
	uint32_t i;							\
									\
	for (i = 0; i < count; i++)					\
		kh_del(kind, hash, kh_get(kind, hash, ids[i]));		\
}

KIND(own)
KIND(siphash)

const struct map map_khash = {
	"khash", create_own, destroy_own, add_own, find_own, remove_own,
};

const struct map map_khash_siphash = {
	"khash-siphash", create_siphash, destroy_siphash, add_siphash,
	find_siphash, remove_siphash,
};
