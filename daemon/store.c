// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/client.h"
#include "daemon/log.h"
#include "daemon/notify.h"
#include "daemon/server.h"
#include "daemon/store.h"

/* "QUEUE@UID" and its end. */
#define STORE_NAME	(EXPIRY_NAME_MAX + 12)

/* A start with more than this would fail: LISTEN_FDNAMES is one string of the
 * environment, for which the kernel has 32 pages, and the socket's is in it.
 */
#define STORE_BYTES	(128 * 1024 - 1024)

static void store_name(char *name, const struct queue *queue)
{
	snprintf(name, STORE_NAME, "%.*s@%u", EXPIRY_NAME_MAX, queue->name,
		 (unsigned int)queue->user->uid);
}

/* Take a name apart. Returns whether it is a queue's. */
static bool parse_name(const char *text, char *name, uid_t *uid)
{
	const char *at = strrchr(text, '@');
	unsigned long number;
	char *end;

	if (!at || at == text || at - text > EXPIRY_NAME_MAX ||
	    !isdigit((unsigned char)at[1]))
		return false;
	errno = 0;
	number = strtoul(at + 1, &end, 10);
	if (errno || *end || number > UINT32_MAX)
		return false;
	memset(name, 0, EXPIRY_NAME_MAX);
	memcpy(name, text, at - text);
	*uid = number;
	return hello_name_valid(name);
}

static bool is_queue(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode);
}

int store_init(struct store *store)
{
	const char *max = getenv("FDSTORE");
	int i, fd;

	*store = (struct store) { .listener = -1, .max = UINT64_MAX };
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
			log_err("what systemd passed as '%s' is neither a listening Unix stream socket nor a queue",
				store->names[i]);
			return -EINVAL;
		}
		if (store->listener >= 0) {
			log_err("several sockets from systemd: one is expected");
			return -EINVAL;
		}
		store->listener = fd;
	}
	return 0;
}

void store_deinit(struct store *store)
{
	int i;

	for (i = 0; store->names && i < store->nr_fds; i++)
		free(store->names[i]);
	free(store->names);
	store->names = NULL;
}

/* Count a queue that comes (1) or goes (-1). */
static void kept(struct queue *queue, const char *name, int change)
{
	struct store *store = &queue->server->store;

	queue->kept = change > 0;
	queue->user->kept += change;
	store->kept += change;
	store->bytes += change * (int)(strlen(name) + 1);
}

/* Returns 0, or why it cannot be had. */
static int take_one(struct server *server, int fd, const char *text)
{
	char name[EXPIRY_NAME_MAX];
	struct queue *queue;
	uid_t uid;
	int r;

	if (!parse_name(text, name, &uid))
		return -EINVAL;
	r = queue_adopt(server, fd, name, uid, &queue);
	if (r < 0)
		return r;
	kept(queue, text, 1);
	return 0;
}

int store_take(struct server *server)
{
	struct store *store = &server->store;
	int i, fd, r;

	if (!store->nr_queues)
		return 0;
	if (!server->engine->ops->queue_adopt) {
		log_warning("%d queues of the kernel engine wait in the service manager's store: they are not served",
			    store->nr_queues);
		return 0;
	}
	for (i = 0; i < store->nr_fds; i++) {
		fd = SD_LISTEN_FDS_START + i;
		if (fd == store->listener)
			continue;
		r = take_one(server, fd, store->names[i]);
		if (!r)
			continue;
		log_err("queue '%s' from the service manager's store: %s",
			store->names[i], strerror(-r));
		/* No queue, which would be handed over at every start. */
		if (r == -EINVAL || r == -ENOTTY)
			notify_send(-1, "FDSTOREREMOVE=1\nFDNAME=%s",
				    store->names[i]);
		close(fd);
	}
	log_info("queues taken over: %llu, timers in them: %llu",
		 (unsigned long long)store->kept,
		 (unsigned long long)users_timers(&server->users));
	return 0;
}

bool store_keep(struct queue *queue)
{
	const struct engine_ops *ops = queue->server->engine->ops;
	const struct config *config = &queue->server->config;
	struct log_about not_kept = {
		.id = LOG_QUEUE_NOT_KEPT,
		.queue = queue->name,
	};
	struct store *store = &queue->server->store;
	char name[STORE_NAME];
	int r;

	if (!ops->queue_fd || !notify_enabled() || queue->kept)
		return queue->kept;
	store_name(name, queue);
	if (store->kept >= min_u64(config->kept_queues, store->max) ||
	    store->bytes + strlen(name) + 1 > STORE_BYTES ||
	    queue->user->kept >= config->kept_queues_per_user) {
		log_peer(&not_kept,
			 "queue %s will end with the daemon: as many queues are kept as may be",
			 name);
		return false;
	}
	/* Readable is what a queue may well be while nobody is there. */
	r = notify_send(ops->queue_fd(queue->engine_queue),
			"FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	if (r < 0) {
		not_kept.error = r;
		log_peer(&not_kept,
			 "queue %s is not kept yet: the service manager: %s",
			 name, strerror(-r));
		if (!queue->missed)
			store->missed++;
		queue->missed = true;
		return false;
	}
	if (queue->missed)
		store->missed--;
	queue->missed = false;
	kept(queue, name, 1);
	return true;
}

void store_forget(struct queue *queue)
{
	struct expiry_record clear = { .op = EXPIRY_OP_CLEAR };
	char name[STORE_NAME];

	if (queue->missed)
		queue->server->store.missed--;
	queue->missed = false;
	if (!queue->kept)
		return;
	store_name(name, queue);
	kept(queue, name, -1);
	if (!notify_send(-1, "FDSTOREREMOVE=1\nFDNAME=%s", name))
		return;
	/* It comes back with the next daemon, but without its timers. */
	log_err("queue %s is dropped, but the service manager does not read",
		name);
	queue->server->engine->ops->submit_now(queue->engine_queue, &clear, 1);
}

void store_retry(struct server *server)
{
	struct queues *queues = &server->queues;
	struct list *bucket, *entry;
	uint32_t i;

	for (i = 0; server->store.missed && i <= queues->mask; i++) {
		bucket = &queues->buckets[i];
		for (entry = bucket->next; entry != bucket;
		     entry = entry->next) {
			struct queue *queue = container_of(entry, struct queue,
							   all);

			if (queue->missed && !store_keep(queue))
				return;
		}
	}
}
