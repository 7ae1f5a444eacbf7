/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loss: the timers that end with the daemon, because no engine and no store has
 * their queues afterwards.
 */
#ifndef DAEMON_LOSS_H
#define DAEMON_LOSS_H

#include <pthread.h>
#include <stdint.h>
#include <linux/expiry.h>
#include <expiry/wire.h>

/* Named queues listed: the fullest. The others are given as a sum. */
#define LOSS_NAMES	8

struct context;

/* Timers in a queue, whose name fills all bytes of @name or ends with a NUL. */
struct loss_row {
	char name[EXPIRY_NAME_MAX];
	uint64_t timers;
};

/**
 * struct loss - timers that are lost
 * @lock: protects all fields
 * @named: timers in @queues named queues with timers
 * @nameless: timers in anonymous queues
 * @rows: the fullest named queues, in order; @nr_rows of them
 */
struct loss {
	pthread_mutex_t lock;
	uint64_t named;
	uint64_t queues;
	uint64_t nameless;
	struct loss_row rows[LOSS_NAMES];
	uint32_t nr_rows;
};

void loss_init(struct loss *loss);
void loss_deinit(struct loss *loss);

/* Adds the timers of the thread's queues that are in no store. Its thread calls
 * this at its end, while the engine is open.
 */
void loss_count(struct context *context);

/* Writes one line, or none if nothing is lost. */
void loss_log(const struct loss *loss);

#endif /* DAEMON_LOSS_H */
