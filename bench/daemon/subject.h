/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A subject: a program that has filled one server (or library) with timers and
 * then measures what it is told on its standard input, so that the subjects can
 * take turns:
 *
 *	OP BATCH CONNECTIONS REQUESTS	OP: arm, refresh, cancel, fire, ...
 *
 * One JSON object a line comes back; the first one when all is filled.
 */
#ifndef BENCH_DAEMON_SUBJECT_H
#define BENCH_DAEMON_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/daemon/traffic.h"

/**
 * struct order - what to measure
 * @timers: live ones, filled in before
 */
struct order {
	const char *op;
	uint32_t batch;
	uint32_t connections;
	uint32_t requests;
};

/**
 * struct subject - who is measured
 * @name: as it is printed
 * @fill: arm @timers timers that do not fall due meanwhile
 * @measure: do as ordered; false: it cannot
 * @more: print further members of the object, each after a comma; NULL: none
 */
struct subject {
	const char *name;
	void (*fill)(const char *path, uint32_t timers);
	bool (*measure)(const struct order *order, struct traffic_cost *cost);
	void (*more)(void);
};

/* main() of a subject: --socket PATH --timers N. */
int subject_main(const struct subject *subject, int argc, char **argv);

/* Print @nr times as a member of an object, in microseconds. */
void subject_times(const char *name, const uint64_t *times_ns, uint32_t nr);

/* Populated memory; ends the program if there is none. */
void *subject_map(uint64_t size);

#endif /* BENCH_DAEMON_SUBJECT_H */
