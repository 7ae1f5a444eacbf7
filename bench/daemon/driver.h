/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A driver: a program that fills one server (or library) with timers. Then it
 * measures by orders on its standard input, so that drivers can be
 * interleaved:
 *
 *	OP BATCH CONNECTIONS REQUESTS [DEPTH]	OP: arm, refresh, cancel, fire, ...
 *
 * It answers with one JSON object a line; the first one when all is filled.
 */
#ifndef BENCH_DAEMON_DRIVER_H
#define BENCH_DAEMON_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/options.h"
#include "bench/daemon/traffic.h"

/**
 * struct order - one measurement
 * @depth: batches in flight a connection, 0 = as many as are usual
 */
struct order {
	const char *op;
	uint32_t batch;
	uint32_t connections;
	uint32_t requests;
	uint32_t depth;
};

/**
 * struct driver - a measured program
 * @name: in reports; @fill may change it
 * @fill: arm @timers timers, none due meanwhile
 * @measure: carry an order out; false: it cannot
 * @more: print further members of the object; may be NULL
 * @options: its own, at most DRIVER_OPTIONS; NULL = none
 *
 * @more prints each member after a comma.
 */
struct driver {
	const char *name;
	void (*fill)(const char *path, uint32_t timers);
	bool (*measure)(const struct order *order, struct traffic_cost *cost);
	void (*more)(void);
	const struct option_row *options;
};

#define DRIVER_OPTIONS	4

/* Runs a driver as main(): --socket PATH --timers N. */
int driver_main(struct driver *driver, int argc, char **argv);

/* Prints @nr times as a member of an object, in microseconds. */
void driver_times(const char *name, const uint64_t *times_ns, uint32_t nr);

/* Returns how many batches a connection has in flight. What is usual is one where
 * each waits for its answer, else enough for server and client to work at the same
 * time.
 */
uint32_t driver_depth(const struct order *order);

/* Returns populated memory; ends the program if there is none. */
void *driver_map(uint64_t size);

#endif /* BENCH_DAEMON_DRIVER_H */
