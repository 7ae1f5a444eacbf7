/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The directory: which thread has which queue. Only making, finding and ending
 * a queue use it. With one thread it is not needed: an entry is NULL then.
 */
#ifndef DAEMON_DIRECTORY_H
#define DAEMON_DIRECTORY_H

#include <pthread.h>
#include <stdint.h>
#include <expiry/wire.h>

#include "daemon/util/config.h"
#include "daemon/util/list.h"
#include "daemon/util/name.h"
#include "daemon/util/pool.h"

/**
 * struct directory_entry - where a queue is
 * @all: in its bucket, of an anonymous one in none
 * @name: const; likewise @thread
 * @references: of the queue and of HELLOs in transit; under the lock
 * @dropped: in the thread's list of names whose end is not durable; @dropped_lsn: in
 *	that block
 */
struct directory_entry {
	struct list all;
	char name[EXPIRY_NAME_MAX];
	uint32_t thread;
	uint32_t references;
	struct list dropped;
	uint64_t dropped_lsn;
};

/**
 * struct directory - all entries
 * @lock: protects all fields
 * @key: random key of the hash of @buckets
 * @buckets: by the hash of the name, @mask + 1 of them
 * @named: entries of each of @nr_threads threads; likewise @anonymous
 */
struct directory {
	pthread_mutex_t lock;
	struct pool pool;
	struct name_key key;
	struct list *buckets;
	uint32_t mask;
	uint32_t nr_threads;
	uint64_t named[THREADS_MAX];
	uint64_t anonymous[THREADS_MAX];
};

/* Initializes the directory. Returns 0 or -ENOMEM. */
int directory_init(struct directory *directory, uint32_t nr_threads,
		   uint64_t nr_queues);
void directory_deinit(struct directory *directory);

/* Returns a reference to the entry of the queue @name, EXPIRY_NAME_MAX bytes:
 * its present one, or a new one in the thread with the fewest. NULL: no memory.
 */
struct directory_entry *directory_get(struct directory *directory,
				      const char *name);

/* Sets *@entryp to the same, where a new one is in @thread. Returns 0; -EEXIST: the
 * queue is in another thread; -ENOMEM.
 */
int directory_get_in(struct directory *directory, const char *name,
		     uint32_t thread, struct directory_entry **entryp);

/* Takes one more reference; NULL is allowed. */
struct directory_entry *directory_ref(struct directory *directory,
				      struct directory_entry *entry);

/* Drops one reference; NULL is allowed. */
void directory_unref(struct directory *directory,
		     struct directory_entry *entry);

#endif /* DAEMON_DIRECTORY_H */
