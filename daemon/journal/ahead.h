/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading ahead, for a start: a disk whose files are read from beginning to end. While
 * the caller uses what it has read, a thread reads as much behind it.
 */
#ifndef DAEMON_JOURNAL_AHEAD_H
#define DAEMON_JOURNAL_AHEAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/disk.h"

/**
 * struct ahead - a disk to read from, beside another one
 * @disk: it; has only the operations that read
 * @below: the other one
 * @memory: for what is read ahead; NULL = there was no long read yet, and no thread
 * @is_done: to the caller; likewise @is_wanted to the thread
 * @lock: protects all below
 * @is_reading: the thread has to read at @offset of @fd
 * @len: bytes that it read there, 0 = none
 * @stop: it has to end
 */
struct ahead {
	struct disk disk;
	struct disk *below;
	char *memory;
	pthread_t thread;
	pthread_cond_t is_wanted;
	pthread_cond_t is_done;
	pthread_mutex_t lock;
	bool is_reading;
	int fd;
	uint64_t offset;
	ssize_t len;
	bool stop;
};

void ahead_init(struct ahead *ahead, struct disk *below);

/* Ends it, when its files are closed. */
void ahead_deinit(struct ahead *ahead);

#endif /* DAEMON_JOURNAL_AHEAD_H */
