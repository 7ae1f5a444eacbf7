// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/queue/directory.h"

int directory_init(struct directory *directory, uint32_t nr_threads,
		   uint64_t nr_queues)
{
	uint32_t i, buckets = 64;
	int r;

	*directory = (struct directory) { .nr_threads = nr_threads };
	pthread_mutex_init(&directory->lock, NULL);
	/* Every place has a queue or a connection, and those are limited. */
	pool_init(&directory->pool, sizeof(struct place), UINT64_MAX);
	r = name_key_init(&directory->key);
	if (r < 0)
		return r;
	while (buckets < nr_queues)
		buckets *= 2;
	directory->mask = buckets - 1;
	directory->buckets = calloc(buckets, sizeof(*directory->buckets));
	if (!directory->buckets)
		return -ENOMEM;
	for (i = 0; i < buckets; i++)
		list_init(&directory->buckets[i]);
	return 0;
}

void directory_deinit(struct directory *directory)
{
	free(directory->buckets);
	directory->buckets = NULL;
	pool_deinit(&directory->pool);
	pthread_mutex_destroy(&directory->lock);
}

static struct list *place_bucket(struct directory *directory, const char *name)
{
	return &directory->buckets[name_hash(&directory->key, name) &
				   directory->mask];
}

static struct place *place_find(struct directory *directory, const char *name)
{
	struct list *bucket = place_bucket(directory, name), *entry;

	for (entry = bucket->next; entry != bucket; entry = entry->next) {
		struct place *place = container_of(entry, struct place, all);

		if (!memcmp(place->name, name, sizeof(place->name)))
			return place;
	}
	return NULL;
}

/* Returns the thread with the fewest places. Balances named and anonymous
 * queues separately: a short-lived one must not put two long-lived ones
 * together. Then balances their sum.
 */
static uint32_t fewest(const struct directory *directory, bool named)
{
	const uint64_t *first = named ? directory->named : directory->anonymous;
	const uint64_t *other = named ? directory->anonymous : directory->named;
	uint32_t i, best = 0;

	for (i = 1; i < directory->nr_threads; i++)
		if (first[i] < first[best] ||
		    (first[i] == first[best] && other[i] < other[best]))
			best = i;
	return best;
}

static struct place *place_new(struct directory *directory, const char *name)
{
	struct place *place = pool_get(&directory->pool);

	if (!place)
		return NULL;
	place->thread = fewest(directory, name[0]);
	memcpy(place->name, name, sizeof(place->name));
	list_init(&place->all);
	if (name[0]) {
		list_add(place_bucket(directory, name), &place->all);
		directory->named[place->thread]++;
	} else {
		directory->anonymous[place->thread]++;
	}
	return place;
}

struct place *place_get(struct directory *directory, const char *name)
{
	struct place *place = NULL;

	pthread_mutex_lock(&directory->lock);
	if (name[0])
		place = place_find(directory, name);
	if (!place)
		place = place_new(directory, name);
	if (place)
		place->references++;
	pthread_mutex_unlock(&directory->lock);
	return place;
}

struct place *place_hold(struct directory *directory, struct place *place)
{
	if (!place)
		return NULL;
	pthread_mutex_lock(&directory->lock);
	place->references++;
	pthread_mutex_unlock(&directory->lock);
	return place;
}

void place_put(struct directory *directory, struct place *place)
{
	if (!place)
		return;
	pthread_mutex_lock(&directory->lock);
	if (!--place->references) {
		list_del(&place->all);
		if (place->name[0])
			directory->named[place->thread]--;
		else
			directory->anonymous[place->thread]--;
		pool_put(&directory->pool, place);
	}
	pthread_mutex_unlock(&directory->lock);
}
