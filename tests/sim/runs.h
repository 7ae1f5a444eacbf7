/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Many runs of the simulator, each in a process of its own. */
#ifndef TESTS_SIM_RUNS_H
#define TESTS_SIM_RUNS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct runs - which seeds, and how
 * @file: lists seeds that run first, one a line; may be NULL
 * @first: the first of @nr seeds in a row
 * @seconds: with it, seeds from @first on until then
 * @jobs: processes at a time
 * @nr_shrunk: failed seeds to shrink
 * @stops: after the first block with one
 */
struct runs {
	const char *file;
	uint64_t first;
	uint64_t nr;
	uint32_t seconds;
	uint32_t jobs;
	uint32_t nr_shrunk;
	bool stops;
};

/* Runs the seeds and prints TAP. Returns the exit status. */
int runs_do(const struct runs *runs);

#endif /* TESTS_SIM_RUNS_H */
