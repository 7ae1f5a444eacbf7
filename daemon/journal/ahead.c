// SPDX-License-Identifier: LGPL-2.1-or-later
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/journal/ahead.h"
#include "daemon/journal/reader.h"
#include "daemon/util/util.h"

static struct ahead *ahead_of(struct disk *disk)
{
	return container_of(disk, struct ahead, disk);
}

/* ------------------------------------------------------------------ the thread */

static void *thread_main(void *data)
{
	struct ahead *ahead = data;
	struct disk *below = ahead->below;
	ssize_t n;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->stop) {
		if (!ahead->is_reading) {
			pthread_cond_wait(&ahead->is_wanted, &ahead->lock);
			continue;
		}
		pthread_mutex_unlock(&ahead->lock);
		n = below->ops->read(below, ahead->fd, ahead->memory,
				     READER_WINDOW, ahead->offset);
		pthread_mutex_lock(&ahead->lock);
		/* After an error the caller reads for itself, and gets its own. */
		ahead->len = n < 0 ? 0 : n;
		ahead->is_reading = false;
		pthread_cond_signal(&ahead->is_done);
	}
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

/* Without memory or a thread nothing is read ahead. */
static void thread_start(struct ahead *ahead)
{
	sigset_t all, before;
	int r;

	ahead->memory = malloc(READER_WINDOW);
	if (!ahead->memory)
		return;
	/* Only the first thread of the daemon takes signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&ahead->thread, NULL, thread_main, ahead);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) {
		free(ahead->memory);
		ahead->memory = NULL;
		return;
	}
	pthread_setname_np(ahead->thread, "expiryd-ahead");
}

/* Waits until the thread does not read. With the lock. */
static void wait_done(struct ahead *ahead)
{
	while (ahead->is_reading)
		pthread_cond_wait(&ahead->is_done, &ahead->lock);
}

/* Lets the thread read on behind a read that is not the file's last. */
static void begin(struct ahead *ahead, int fd, uint64_t offset)
{
	if (!ahead->memory)
		thread_start(ahead);
	if (!ahead->memory)
		return;
	pthread_mutex_lock(&ahead->lock);
	wait_done(ahead);
	ahead->fd = fd;
	ahead->offset = offset;
	ahead->len = 0;
	ahead->is_reading = true;
	pthread_cond_signal(&ahead->is_wanted);
	pthread_mutex_unlock(&ahead->lock);
}

/* Returns how many bytes were read ahead for the caller. */
static size_t take(struct ahead *ahead, int fd, void *data, size_t len,
		   uint64_t offset)
{
	size_t n = 0;

	pthread_mutex_lock(&ahead->lock);
	wait_done(ahead);
	if (ahead->fd == fd && ahead->offset == offset)
		n = min_u64(ahead->len, len);
	pthread_mutex_unlock(&ahead->lock);
	memcpy(data, ahead->memory, n);
	return n;
}

/* -------------------------------------------------------------------- the disk */

static int ahead_open(struct disk *disk, const char *name, enum disk_how how)
{
	struct disk *below = ahead_of(disk)->below;

	return below->ops->open(below, name, how);
}

static void ahead_close(struct disk *disk, int fd)
{
	struct ahead *ahead = ahead_of(disk);

	/* Another file may get its number. */
	if (ahead->memory) {
		pthread_mutex_lock(&ahead->lock);
		wait_done(ahead);
		ahead->len = 0;
		pthread_mutex_unlock(&ahead->lock);
	}
	ahead->below->ops->close(ahead->below, fd);
}

static int64_t ahead_size(struct disk *disk, int fd)
{
	struct disk *below = ahead_of(disk)->below;

	return below->ops->size(below, fd);
}

static ssize_t ahead_read(struct disk *disk, int fd, void *data, size_t len,
			  uint64_t offset)
{
	struct ahead *ahead = ahead_of(disk);
	size_t done = 0;
	ssize_t n;

	if (ahead->memory)
		done = take(ahead, fd, data, len, offset);
	if (done < len) {
		n = ahead->below->ops->read(ahead->below, fd,
					    (char *)data + done, len - done,
					    offset + done);
		if (n < 0)
			return n;
		done += n;
	}
	if (done == len)
		begin(ahead, fd, offset + done);
	return done;
}

static int ahead_list(struct disk *disk, disk_visit_t visit, void *data)
{
	struct disk *below = ahead_of(disk)->below;

	return below->ops->list(below, visit, data);
}

static const struct disk_ops ops = {
	.open = ahead_open,
	.close = ahead_close,
	.size = ahead_size,
	.read = ahead_read,
	.list = ahead_list,
};

void ahead_init(struct ahead *ahead, struct disk *below)
{
	*ahead = (struct ahead) {
		.disk = { .ops = &ops, .align = below->align },
		.below = below,
	};
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->is_wanted, NULL);
	pthread_cond_init(&ahead->is_done, NULL);
}

void ahead_deinit(struct ahead *ahead)
{
	if (ahead->memory) {
		pthread_mutex_lock(&ahead->lock);
		ahead->stop = true;
		pthread_cond_signal(&ahead->is_wanted);
		pthread_mutex_unlock(&ahead->lock);
		pthread_join(ahead->thread, NULL);
		free(ahead->memory);
	}
	pthread_cond_destroy(&ahead->is_wanted);
	pthread_cond_destroy(&ahead->is_done);
	pthread_mutex_destroy(&ahead->lock);
}
