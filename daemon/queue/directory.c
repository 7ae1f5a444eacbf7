// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/queue/directory.h"
#include "daemon/util/list.h"
#include "daemon/util/util.h"

int directory_init(struct directory *directory, uint32_t nr_threads,
		   uint64_t nr_queues)
{
	uint32_t i, buckets = 64;
	int r;

	*directory = (struct directory) { .nr_threads = nr_threads };
	pthread_mutex_init(&directory->lock, NULL);
	/* Every entry has a queue or a connection, and those are limited. */
	pool_init(&directory->pool, sizeof(struct directory_entry), UINT64_MAX);
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

static struct list *directory_bucket(struct directory *directory,
				     const char *name)
{
	return &directory->buckets[name_hash(&directory->key, name) &
				   directory->mask];
}

static struct directory_entry *directory_find(struct directory *directory,
					      const char *name)
{
	struct list *bucket = directory_bucket(directory, name), *node;

	for (node = bucket->next; node != bucket; node = node->next) {
		struct directory_entry *entry =
			container_of(node, struct directory_entry, all);

		if (!memcmp(entry->name, name, sizeof(entry->name)))
			return entry;
	}
	return NULL;
}

/* Returns the thread with the fewest entries. Balances named and anonymous
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

static struct directory_entry *directory_add(struct directory *directory,
					     const char *name, uint32_t thread)
{
	struct directory_entry *entry = pool_get(&directory->pool);

	if (!entry)
		return NULL;
	entry->thread = thread;
	memcpy(entry->name, name, sizeof(entry->name));
	list_init(&entry->all);
	list_init(&entry->dropped);
	if (name[0]) {
		list_add(directory_bucket(directory, name), &entry->all);
		directory->named[entry->thread]++;
	} else {
		directory->anonymous[entry->thread]++;
	}
	return entry;
}

struct directory_entry *directory_get(struct directory *directory,
				      const char *name)
{
	struct directory_entry *entry = NULL;

	pthread_mutex_lock(&directory->lock);
	if (name[0])
		entry = directory_find(directory, name);
	if (!entry)
		entry = directory_add(directory, name,
				      fewest(directory, name[0]));
	if (entry)
		entry->references++;
	pthread_mutex_unlock(&directory->lock);
	return entry;
}

int directory_get_in(struct directory *directory, const char *name,
		     uint32_t thread, struct directory_entry **entryp)
{
	struct directory_entry *entry;
	int r = 0;

	pthread_mutex_lock(&directory->lock);
	entry = directory_find(directory, name);
	if (!entry)
		entry = directory_add(directory, name, thread);
	if (!entry)
		r = -ENOMEM;
	else if (entry->thread != thread)
		r = -EEXIST;
	else
		entry->references++;
	*entryp = entry;
	pthread_mutex_unlock(&directory->lock);
	return r;
}

struct directory_entry *directory_ref(struct directory *directory,
				      struct directory_entry *entry)
{
	if (!entry)
		return NULL;
	pthread_mutex_lock(&directory->lock);
	entry->references++;
	pthread_mutex_unlock(&directory->lock);
	return entry;
}

void directory_unref(struct directory *directory, struct directory_entry *entry)
{
	if (!entry)
		return;
	pthread_mutex_lock(&directory->lock);
	assert(entry->references);
	if (!--entry->references) {
		list_del(&entry->all);
		if (entry->name[0])
			directory->named[entry->thread]--;
		else
			directory->anonymous[entry->thread]--;
		pool_put(&directory->pool, entry);
	}
	pthread_mutex_unlock(&directory->lock);
}
