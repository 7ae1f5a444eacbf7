// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * abseil's Swiss table, with its own hash and with the index's. Ids are prefetched
 * 32 ahead, as in the core.
 */
#include <absl/container/flat_hash_map.h>

#include "map.h"

namespace {

constexpr uint32_t AHEAD = 32;

struct SipHash {
	size_t operator()(uint64_t id) const
	{
		return map_siphash(id);
	}
};

using Own = absl::flat_hash_map<uint64_t, uint32_t>;
using Siphash = absl::flat_hash_map<uint64_t, uint32_t, SipHash>;

template <class Map> void *create(uint32_t)
{
	return new Map;
}

template <class Map> void destroy(void *self)
{
	delete static_cast<Map *>(self);
}

template <class Map>
void look_ahead(Map &map, const uint64_t *ids, uint32_t i, uint32_t count)
{
	if (!i)
		for (uint32_t j = 0; j < AHEAD && j < count; j++)
			map.prefetch(ids[j]);
	if (i + AHEAD < count)
		map.prefetch(ids[i + AHEAD]);
}

template <class Map>
void add(void *self, const uint64_t *ids, uint32_t count)
{
	Map &map = *static_cast<Map *>(self);

	for (uint32_t i = 0; i < count; i++) {
		look_ahead(map, ids, i, count);
		map.emplace(ids[i], i);
	}
}

template <class Map>
uint64_t find(void *self, const uint64_t *ids, uint32_t count)
{
	Map &map = *static_cast<Map *>(self);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		look_ahead(map, ids, i, count);
		sum += map.find(ids[i]) != map.end();
	}
	return sum;
}

template <class Map>
void drop(void *self, const uint64_t *ids, uint32_t count)
{
	Map &map = *static_cast<Map *>(self);

	for (uint32_t i = 0; i < count; i++) {
		look_ahead(map, ids, i, count);
		map.erase(ids[i]);
	}
}

} // namespace

extern const struct map map_swiss = {
	"swiss", create<Own>, destroy<Own>, add<Own>, find<Own>, drop<Own>,
};

extern const struct map map_swiss_siphash = {
	"swiss-siphash", create<Siphash>, destroy<Siphash>, add<Siphash>,
	find<Siphash>, drop<Siphash>,
};
