// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The index beside hash tables that people use: ns of processor time an id, in
 * batches of 512, interleaved round by round. A line for each figure: the map, how
 * many ids it has, what is done, the median and the least of the rounds.
 *
 *   fill      add the ids
 *   find      look up ids that are there, at random
 *   miss      look up ids that are not
 *   replace   remove an id at random and add another: two operations
 *   drain     remove all
 */
#include <stdbool.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/pages.h"
#include "map.h"

#define ROUNDS_MAX	99U

enum work { FILL, FIND, MISS, REPLACE, DRAIN, WORKS };

static const char *const names[WORKS] = {
	"fill", "find", "miss", "replace", "drain",
};

static const struct map *const maps[] = {
	&map_index, &map_swiss, &map_swiss_siphash, &map_khash,
	&map_khash_siphash,
};

#define MAPS		(sizeof(maps) / sizeof(*maps))

/* An odd factor: each id once. The ids in a map are those of its @ids. */
static uint64_t id_of(uint64_t number)
{
	return (number + 1) * 0x9e3779b97f4a7c15;
}

/**
 * struct load - a map and what is in it
 * @ids: @nr of them
 * @next: number of the next new id
 */
struct load {
	const struct map *map;
	void *self;
	uint64_t *ids;
	uint32_t nr;
	uint64_t next;
	uint64_t random;
	double ns[WORKS][ROUNDS_MAX];
};

/* Contains all that is timed, so that a profiler can be limited to it. */
__attribute__((noipa))
static uint64_t timed(const struct load *load, enum work work,
		      const uint64_t *ids, uint32_t count)
{
	uint64_t sum = 0;

	if (work == FILL || work == REPLACE)
		load->map->add(load->self, ids, count);
	else if (work == DRAIN)
		load->map->remove(load->self, ids, count);
	else
		sum = load->map->find(load->self, ids, count);
	__asm__ volatile ("");
	return sum;
}

/* Does a batch and returns its time. */
static uint64_t batch(const struct load *load, enum work work,
		      const uint64_t *ids, uint32_t count)
{
	uint64_t from_ns = bench_cpu(), sum, ns;

	sum = timed(load, work, ids, count);
	ns = bench_cpu() - from_ns;
	if ((work == FIND && sum != count) || (work == MISS && sum))
		die("%s finds %llu of %u", load->map->name,
		    (unsigned long long)sum, count);
	return ns;
}

static void fill(struct load *load, uint32_t round)
{
	uint64_t ns = 0;
	uint32_t i, count;

	for (i = 0; i < load->nr; i++)
		load->ids[i] = id_of(load->next++);
	for (i = 0; i < load->nr; i += count) {
		count = load->nr - i < MAP_BATCH ? load->nr - i : MAP_BATCH;
		ns += batch(load, FILL, load->ids + i, count);
	}
	load->ns[FILL][round] = (double)ns / load->nr;
}

static void drain(struct load *load, uint32_t round)
{
	uint64_t ns = 0;
	uint32_t i, count;

	for (i = 0; i < load->nr; i += count) {
		count = load->nr - i < MAP_BATCH ? load->nr - i : MAP_BATCH;
		ns += batch(load, DRAIN, load->ids + i, count);
	}
	load->ns[DRAIN][round] = (double)ns / load->nr;
}

/* Picks different places of @ids. */
static void pick(struct load *load, uint32_t places[MAP_BATCH])
{
	uint32_t i, width = load->nr / MAP_BATCH;

	for (i = 0; i < MAP_BATCH; i++)
		places[i] = i * width + bench_below(&load->random, width);
	for (i = MAP_BATCH - 1; i; i--) {
		uint32_t j = bench_below(&load->random, i + 1), had = places[i];

		places[i] = places[j];
		places[j] = had;
	}
}

static uint64_t work_batch(struct load *load, enum work work)
{
	uint32_t places[MAP_BATCH], i;
	uint64_t ids[MAP_BATCH], ns;

	pick(load, places);
	for (i = 0; i < MAP_BATCH; i++)
		ids[i] = work == MISS ? id_of(~bench_random(&load->random) |
					      1ULL << 63) :
					load->ids[places[i]];
	if (work != REPLACE)
		return batch(load, work, ids, MAP_BATCH);
	ns = batch(load, DRAIN, ids, MAP_BATCH);
	for (i = 0; i < MAP_BATCH; i++) {
		ids[i] = id_of(load->next++);
		load->ids[places[i]] = ids[i];
	}
	return ns + batch(load, REPLACE, ids, MAP_BATCH);
}

static void work(struct load *load, enum work work, uint32_t round,
		 uint32_t batches)
{
	uint64_t ns = 0;
	uint32_t i;

	for (i = 0; i < batches; i++)
		ns += work_batch(load, work);
	load->ns[work][round] = (double)ns / batches / MAP_BATCH;
}

static void run(uint32_t nr, uint32_t rounds, const char *subject,
		const char *only)
{
	static struct load loads[MAPS];
	uint32_t round, m, w, batches = nr > 100000 ? 512 : 128;
	struct bench_figure figure;
	struct load *load;

	for (m = 0; m < MAPS; m++) {
		load = &loads[m];
		memset(load, 0, sizeof(*load));
		load->map = maps[m];
		load->nr = nr;
		load->ids = bench_map(nr * sizeof(*load->ids));
	}
	for (round = 0; round < rounds; round++)
		for (m = 0; m < MAPS; m++) {
			load = &loads[m];
			if (subject && strcmp(subject, load->map->name))
				continue;
			load->self = load->map->create(nr);
			fill(load, round);
			for (w = FIND; w <= REPLACE; w++)
				if (!only || !strcmp(only, names[w]))
					work(load, w, round, batches);
			drain(load, round);
			load->map->destroy(load->self);
		}
	for (w = 0; w < WORKS; w++)
		for (m = 0; m < MAPS; m++) {
			load = &loads[m];
			if ((subject && strcmp(subject, load->map->name)) ||
			    (only && strcmp(only, names[w])))
				continue;
			figure = bench_median(load->ns[w], rounds);
			printf("ids=%u work=%s map=%s ns=%.1f least=%.1f\n", nr,
			       names[w], load->map->name, figure.median,
			       figure.min);
		}
	for (m = 0; m < MAPS; m++)
		bench_unmap(loads[m].ids, nr * sizeof(*loads[m].ids));
}

int main(int argc, char **argv)
{
	uint32_t rounds = 5, ids = 0;
	const char *subject = NULL, *only = NULL;
	const struct option_row options[] = {
		{ "subject", "NAME", .text = &subject },
		{ "work", "NAME", .text = &only },
		{ "ids", "N", .number = &ids, .least = 1000,
		  .most = 100000000 },
		{ "rounds", "N", .number = &rounds, .least = 1,
		  .most = ROUNDS_MAX },
		{ 0 }
	};

	options_parse(argc, argv, options, "");
	if (ids) {
		run(ids, rounds, subject, only);
		return 0;
	}
	run(10000, rounds, subject, only);
	run(1000000, rounds, subject, only);
	return 0;
}
