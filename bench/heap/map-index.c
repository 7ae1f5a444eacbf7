// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The index of core/ with its slots, as timers_submit() uses it: ids are hashed 32
 * ahead, and a slot is prefetched half way. A lookup reads the slot, which has the
 * id.
 */
#include <string.h>

#include "bench/bench.h"
#include "bench/pages.h"
#include "core/index.h"
#include "map.h"

#define AHEAD	32U

struct table {
	struct index index;
	struct slots slots;
	struct run runs[2];
	void *memory[2];
	size_t sizes[2];
};

static const u64 seed[2] = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 };

uint64_t map_siphash(uint64_t id)
{
	return siphash_word(id, seed);
}

static void *create(uint32_t nr)
{
	const u32 pages[2] = { index_pages_max(nr), slots_pages_max(nr) };
	struct table *table = calloc(1, sizeof(*table));
	u32 i;

	if (!table)
		die("no memory");
	for (i = 0; i < 2; i++) {
		table->sizes[i] = run_size(pages[i]);
		table->memory[i] = bench_map(table->sizes[i]);
		run_init(&table->runs[i], table->memory[i], pages[i]);
	}
	index_init(&table->index, &table->runs[0].pages, seed);
	slots_init(&table->slots, &table->runs[1].pages);
	return table;
}

static void destroy(void *self)
{
	struct table *table = self;
	u32 i;

	for (i = 0; i < 2; i++) {
		run_deinit(&table->runs[i]);
		bench_unmap(table->memory[i], table->sizes[i]);
	}
	free(table);
}

/* An id that was prefetched. */
struct ahead {
	const struct index_line *line;
	u32 hash;
};

static inline void look(const struct table *table, struct ahead *ahead,
			uint64_t id)
{
	ahead->hash = index_hash(&table->index, id);
	ahead->line = index_prefetch(&table->index, ahead->hash);
}

/* Looks ahead while the @i-th of @count ids has its turn; returns its hash. */
static inline u32 look_ahead(const struct table *table, struct ahead *ahead,
			     const uint64_t *ids, u32 i, u32 count)
{
	const struct ahead *half = &ahead[(i + AHEAD / 2) % AHEAD];
	const struct slot *slot;
	u32 hash, j;

	if (!i)
		for (j = 0; j < AHEAD && j < count; j++)
			look(table, &ahead[j], ids[j]);
	if (i + AHEAD / 2 < count) {
		slot = slots_peek(&table->slots,
				  index_guess(half->line, half->hash));
		if (slot)
			prefetchw(slot);
	}
	hash = ahead[i % AHEAD].hash;
	if (i + AHEAD < count)
		look(table, &ahead[i % AHEAD], ids[i + AHEAD]);
	return hash;
}

static void add(void *self, const uint64_t *ids, uint32_t count)
{
	struct table *table = self;
	struct ahead ahead[AHEAD];
	struct slot *slot;
	u32 i, hash, nr;

	for (i = 0; i < count; i++) {
		hash = look_ahead(table, ahead, ids, i, count);
		if (index_find(&table->index, &table->slots, ids[i], hash,
			       &slot))
			die("an id is in the index already");
		nr = slots_reserve(&table->slots, &slot);
		if (index_prepare(&table->index, hash))
			die("no room in the index");
		slots_commit(&table->slots, nr, slot);
		slot->id = ids[i];
		index_add(&table->index, hash, nr);
	}
}

static uint64_t find(void *self, const uint64_t *ids, uint32_t count)
{
	struct table *table = self;
	struct ahead ahead[AHEAD];
	struct slot *slot;
	uint64_t sum = 0;
	u32 i, hash;

	for (i = 0; i < count; i++) {
		hash = look_ahead(table, ahead, ids, i, count);
		sum += !!index_find(&table->index, &table->slots, ids[i], hash,
				    &slot);
	}
	return sum;
}

static void drop(void *self, const uint64_t *ids, uint32_t count)
{
	struct table *table = self;
	struct ahead ahead[AHEAD];
	struct slot *slot;
	u32 i, hash;
	s64 nr;

	for (i = 0; i < count; i++) {
		hash = look_ahead(table, ahead, ids, i, count);
		nr = index_find(&table->index, &table->slots, ids[i], hash,
				&slot);
		if (nr <= 0 ||
		    index_prepare_remove(&table->index, hash, nr))
			die("an id is not in the index");
		index_remove(&table->index, hash, nr);
		slots_put(&table->slots, nr, slot);
	}
}

const struct map map_index = {
	"index", create, destroy, add, find, drop,
};
