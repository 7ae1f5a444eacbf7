/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An owner of pages for the benchmarks: a run of them lies in memory from end
 * to end and is filled in where it is touched.
 */
#ifndef BENCH_PAGES_H
#define BENCH_PAGES_H

#include <stddef.h>

#include "core/pages.h"

/* What mappings begin at: a huge page. */
#define BENCH_ALIGN		((size_t)1 << 21)

/* Memory that is zero and there when touched, on huge pages where the kernel
 * allows, as the embedded engine has it. Ends the program when there is none.
 */
void *bench_map(size_t size);
void bench_unmap(void *memory, size_t size);

/* Have it there before it is touched. */
void bench_populate(void *memory, size_t size);

/**
 * struct run - a run of pages
 * @pages: given to the core
 * @memory: pages.nr_max pages, the caller's
 */
struct run {
	struct core_pages pages;
	unsigned char *memory;
};

static inline size_t run_size(u32 nr_max)
{
	return ((size_t)nr_max * CORE_PAGE_SIZE + BENCH_ALIGN - 1) &
	       ~(BENCH_ALIGN - 1);
}

void run_init(struct run *run, void *memory, u32 nr_max);
void run_deinit(struct run *run);

#endif /* BENCH_PAGES_H */
