// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/engine/engine.h"
#include "daemon/queue/charge.h"
#include "daemon/queue/context.h"
#include "daemon/queue/directory.h"
#include "daemon/queue/queue.h"
#include "daemon/queue/store.h"
#include "daemon/util/list.h"
#include "daemon/util/log.h"
#include "daemon/util/name.h"
#include "daemon/util/notify.h"
#include "daemon/util/util.h"

/* Most bytes of names: with more the next start would fail. LISTEN_FDNAMES is
 * one string of the environment, which the kernel limits to 32 pages; the
 * socket's name is in it, too.
 */
#define STORE_BYTES	(128 * 1024 - 1024)

/**
 * struct stored_name - what a name in the store says
 * @queue: the queue's name
 * @uid: its owner
 * @thread: of its journal, from 1; 0 = any
 */
struct stored_name {
	char queue[EXPIRY_NAME_MAX];
	uint32_t uid;
	uint32_t thread;
};

void store_name(char *name, const struct queue *queue)
{
	int len = snprintf(name, STORE_NAME, "%.*s@%u", EXPIRY_NAME_MAX,
			   queue->name, (unsigned int)queue->user->uid);

	if (queue->store_thread)
		snprintf(name + len, STORE_NAME - len, "@%u",
			 queue->store_thread - 1);
}

/* Reads the number behind '@'. Returns what follows it, or NULL. */
static const char *parse_number(const char *at, uint32_t *numberp)
{
	unsigned long number;
	char *end;

	if (!isdigit((unsigned char)at[1]))
		return NULL;
	errno = 0;
	number = strtoul(at + 1, &end, 10);
	if (errno || number > UINT32_MAX)
		return NULL;
	*numberp = number;
	return end;
}

/* Splits a name. Returns whether it is a queue's. */
static bool parse_name(const char *text, struct stored_name *name)
{
	const char *at = strchr(text, '@');
	const char *rest;

	if (!at || at == text || at - text > EXPIRY_NAME_MAX)
		return false;
	*name = (struct stored_name) { .thread = 0 };
	rest = parse_number(at, &name->uid);
	if (rest && *rest == '@') {
		rest = parse_number(rest, &name->thread);
		if (name->thread >= THREADS_MAX)
			return false;
		name->thread++;
	}
	if (!rest || *rest)
		return false;
	memcpy(name->queue, text, at - text);
	return name_is_valid(name->queue);
}

static bool is_queue(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode);
}

/* Finds the thread of a queue. A durable one belongs to that of its journal, in whatever
 * order the store has them.
 */
static int find_thread(struct shared *shared, const struct stored_name *name,
		       struct directory_entry **entryp)
{
	struct directory *directory = &shared->directory;

	if (name->thread && name->thread <= shared->nr)
		return directory_get_in(directory, name->queue, name->thread - 1,
					entryp);
	*entryp = directory_get(directory, name->queue);
	return *entryp ? 0 : -ENOMEM;
}

/* Finds the thread of each queue in the store. */
static int store_find_threads(struct store *store, struct shared *shared)
{
	struct stored_name name;
	int i, r;

	if (shared->nr == 1 || !store->nr_queues)
		return 0;
	store->entries = calloc(store->nr_fds, sizeof(*store->entries));
	if (!store->entries)
		return -ENOMEM;
	for (i = 0; i < store->nr_fds; i++) {
		if (SD_LISTEN_FDS_START + i == store->listener ||
		    !parse_name(store->names[i], &name))
			continue;
		r = find_thread(shared, &name, &store->entries[i]);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}

int store_init(struct store *store, struct shared *shared)
{
	const char *max = getenv("FDSTORE");
	int i, fd;

	*store = (struct store) { .listener = -1, .max = UINT64_MAX };
	pthread_mutex_init(&store->lock, NULL);
	if (max)	/* from systemd 254 on */
		store->max = strtoull(max, NULL, 10);
	store->nr_fds = sd_listen_fds_with_names(1, &store->names);
	if (store->nr_fds < 0)
		return store->nr_fds;
	for (i = 0; i < store->nr_fds; i++) {
		fd = SD_LISTEN_FDS_START + i;
		if (is_queue(fd)) {
			store->nr_queues++;
			continue;
		}
		if (sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) <= 0) {
			log_err("descriptor '%s' from systemd is neither a listening Unix stream socket nor a queue",
				store->names[i]);
			return -EINVAL;
		}
		if (store->listener >= 0) {
			log_err("several sockets from systemd: one is expected");
			return -EINVAL;
		}
		store->listener = fd;
	}
	return store_find_threads(store, shared);
}

void store_deinit(struct store *store)
{
	int i;

	for (i = 0; store->names && i < store->nr_fds; i++)
		free(store->names[i]);
	free(store->names);
	free(store->entries);
	store->names = NULL;
	store->entries = NULL;
	pthread_mutex_destroy(&store->lock);
}

/* Counts a queue that is added (1) or removed (-1); called with the lock. */
static void count_stored(struct queue *queue, const char *name, int change)
{
	struct store *store = queue->context->shared->store;

	assert(queue->stored == (change < 0));
	assert(change > 0 || store->stored);
	queue->stored = change > 0;
	queue->user->account->stored += change;
	store->stored += change;
	store->bytes += change * (int)(strlen(name) + 1);
}

/* Makes the queue of @fd. Returns 0 or -errno. */
static int take_one(struct context *context, int fd,
		    struct directory_entry *entry, const char *text)
{
	struct stored_name name;
	struct queue *queue;
	int r;

	if (!parse_name(text, &name))
		return -EINVAL;
	r = queue_adopt(context, fd, entry, name.queue, name.uid, &queue);
	if (r < 0)
		return r;
	queue->store_thread = name.thread;
	charge_update(queue);
	pthread_mutex_lock(&context->shared->store->lock);
	count_stored(queue, text, 1);
	pthread_mutex_unlock(&context->shared->store->lock);
	return 0;
}

/* Returns whether another thread takes descriptor @i. The first thread reports
 * descriptors that are no queue.
 */
static bool is_theirs(const struct store *store, int i,
		      const struct context *context)
{
	const struct directory_entry *entry =
		store->entries ? store->entries[i] : NULL;

	return (entry ? entry->thread : 0) == context->number;
}

int store_take(struct context *context)
{
	struct store *store = context->shared->store;
	struct directory_entry *entry;
	int i, fd, r;

	if (!store->nr_queues)
		return 0;
	if (!context->engine->ops->queue_adopt) {
		if (context->number)
			return 0;
		log_warning("%d queues of the kernel engine wait in the service manager's store: they are not served",
			    store->nr_queues);
		return 0;
	}
	for (i = 0; i < store->nr_fds; i++) {
		fd = SD_LISTEN_FDS_START + i;
		if (fd == store->listener || !is_theirs(store, i, context))
			continue;
		entry = store->entries ? store->entries[i] : NULL;
		r = take_one(context, fd, entry, store->names[i]);
		directory_unref(&context->shared->directory, entry);
		if (!r)
			continue;
		log_err("queue '%s' from the service manager's store: %s",
			store->names[i], strerror(-r));
		/* Remove it from the store: it is no queue, and would be passed
		 * at every start.
		 */
		if (r == -EINVAL || r == -ENOTTY)
			notify_send(-1, "FDSTOREREMOVE=1\nFDNAME=%s",
				    store->names[i]);
		close(fd);
	}
	return 0;
}

void store_taken(struct shared *shared)
{
	if (shared->store->nr_queues && shared->engine_ops->queue_adopt)
		log_info("queues taken over: %llu, timers in them: %llu",
			 (unsigned long long)shared->store->stored,
			 (unsigned long long)accounts_timers(&shared->accounts));
}

/* Sends a queue's descriptor to the store. Returns whether it is kept; called
 * with the lock.
 */
static bool keep(struct queue *queue)
{
	const struct engine_ops *ops = queue->context->engine->ops;
	const struct config *config = &queue->context->config;
	struct log_about not_kept = {
		.id = LOG_QUEUE_NOT_KEPT,
		.queue = queue->name,
		.uid = queue->user->uid,
	};
	struct store *store = queue->context->shared->store;
	char name[STORE_NAME];
	int r;

	queue->store_thread = queue->journal_number ?
			      queue->context->number + 1 : 0;
	store_name(name, queue);
	if (store->stored >= min_u64(config->kept_queues, store->max) ||
	    store->bytes + strlen(name) + 1 > STORE_BYTES ||
	    queue->user->account->stored >= config->kept_queues_per_user) {
		log_peer(&not_kept,
			 "queue %s will end with the daemon: the limit of kept queues is reached",
			 name);
		return false;
	}
	/* FDPOLL=0: a queue without a consumer may well be readable. */
	r = notify_send(ops->queue_fd(queue->engine_queue),
			"FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	if (r < 0) {
		not_kept.error = r;
		log_peer(&not_kept,
			 "queue %s is not kept yet: the service manager: %s",
			 name, strerror(-r));
		if (!queue->store_pending)
			store->store_pending++;
		queue->store_pending = true;
		return false;
	}
	if (queue->store_pending)
		store->store_pending--;
	queue->store_pending = false;
	count_stored(queue, name, 1);
	return true;
}

bool store_keep(struct queue *queue)
{
	pthread_mutex_t *lock = &queue->context->shared->store->lock;
	bool is_stored;

	if (!queue->context->engine->ops->queue_fd || !notify_enabled() ||
	    queue->stored)
		return queue->stored;
	pthread_mutex_lock(lock);
	is_stored = keep(queue);
	pthread_mutex_unlock(lock);
	return is_stored;
}

void store_forget(struct queue *queue)
{
	struct expiry_record clear = { .op = EXPIRY_OP_CLEAR };
	struct engine_io io = { .records = &clear, .count = 1 };
	struct store *store = queue->context->shared->store;
	bool was_stored = queue->stored;
	char name[STORE_NAME];

	store_name(name, queue);
	pthread_mutex_lock(&store->lock);
	if (queue->store_pending)
		store->store_pending--;
	queue->store_pending = false;
	if (was_stored)
		count_stored(queue, name, -1);
	pthread_mutex_unlock(&store->lock);
	if (!was_stored)
		return;
	if (!notify_send(-1, "FDSTOREREMOVE=1\nFDNAME=%s", name))
		return;
	/* The queue returns with the next daemon, but without its timers. */
	log_err("queue %s is dropped, but the service manager does not read",
		name);
	queue->context->engine->ops->submit_now(queue->engine_queue, &io);
}

bool store_leave(struct queue *queue)
{
	struct store *store = queue->context->shared->store;
	char name[STORE_NAME];

	if (!queue->stored)
		return true;
	store_name(name, queue);
	if (notify_send(-1, "FDSTOREREMOVE=1\nFDNAME=%s", name) < 0)
		return false;
	pthread_mutex_lock(&store->lock);
	count_stored(queue, name, -1);
	pthread_mutex_unlock(&store->lock);
	return true;
}

void store_retry(struct context *context)
{
	struct queues *queues = context->queues;
	struct list *bucket, *entry;
	uint64_t nr_stored, pending;
	uint32_t i;

	store_count(context->shared->store, &nr_stored, &pending);
	for (i = 0; pending && i <= queues->mask; i++) {
		bucket = &queues->buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			struct queue *queue = container_of(entry, struct queue,
							   all);

			if (queue->store_pending && !store_keep(queue))
				return;
		}
	}
}

void store_count(struct store *store, uint64_t *storedp, uint64_t *pendingp)
{
	pthread_mutex_lock(&store->lock);
	*storedp = store->stored;
	*pendingp = store->store_pending;
	pthread_mutex_unlock(&store->lock);
}
