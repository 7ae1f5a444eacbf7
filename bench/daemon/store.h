/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stores under timers: a database stands in the journal's place, behind the same
 * socket and the same core. One is linked with store.c as @store.
 */
#ifndef BENCH_DAEMON_STORE_H
#define BENCH_DAEMON_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

/* A timer's state, stored by its id. */
struct store_value {
	uint64_t deadline_ns;
	uint64_t cookie;
	uint64_t period_ms;
};

/**
 * struct store - a database
 * @open: opens an empty one in @folder
 * @put: adds a timer to the transaction, or replaces it
 * @drop: likewise removes it
 * @commit: ends the transaction; with @sync it is durable then
 *
 * All end the program on failure.
 */
struct store {
	void (*open)(const char *folder);
	void (*put)(uint64_t id, const struct store_value *value);
	void (*drop)(uint64_t id);
	void (*commit)(bool sync);
};

extern const struct store store;

#endif /* BENCH_DAEMON_STORE_H */
