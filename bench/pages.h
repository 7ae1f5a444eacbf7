/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An owner of pages for the benchmarks: a run is contiguous in memory, and its
 * pages are added at the first touch.
 */
#ifndef BENCH_PAGES_H
#define BENCH_PAGES_H

#include <stddef.h>

#include "core/pages.h"

/* Alignment of mappings: a huge page. */
#define BENCH_ALIGN		((size_t)1 << 21)

/* Returns zeroed memory that is populated at the first touch, on huge pages
 * where the kernel allows, as in the embedded engine. Ends the program when
 * there is none.
 */
void *bench_map(size_t size);
void bench_unmap(void *memory, size_t size);

/* Populates memory before it is touched. */
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
