/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The paper's experiment: put a number of records in, take one out and put
 * another in as many times, take all out. Keys are random(3)'s.
 */
#ifndef BENCH_PAPER_EXPERIMENT_H
#define BENCH_PAPER_EXPERIMENT_H

#include "core/bheap.h"

#define EXPERIMENT_RECORDS	1000000U
#define EXPERIMENT_OPS		4U	/* operations a record */

/* All layouts of the experiment; ends with NULL. */
extern const struct bheap_layout *const experiment_layouts[];

/**
 * struct arena - an owner of contiguous resident pages
 * @pages: given to the heap; page 0 is at @memory
 * @memory: pages.nr_max pages
 */
struct arena {
	struct core_pages pages;
	unsigned char *memory;
};

/* Makes room for @records nodes in any layout. Ends the program on failure. */
void arena_init(struct arena *arena, u32 records);
void arena_deinit(struct arena *arena);

/**
 * struct experiment - one run
 * @keys: 2 x @records of them, in the order of pushing
 * @after: called after each operation, may be NULL
 */
struct experiment {
	const struct bheap_layout *layout;
	struct arena *arena;
	u32 records;
	u32 *keys;
	void (*after)(void *context);
	void *context;
};

/* Returns the first 2 x @records values of random(3) after srandom(1); to be
 * freed.
 */
u32 *experiment_keys(u32 records);

/* Runs it. Ends the program when the heap fails or returns nodes out of order.
 */
void experiment_run(const struct experiment *experiment);

#endif /* BENCH_PAPER_EXPERIMENT_H */
