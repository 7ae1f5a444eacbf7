/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes of a heap, as the compiler reports them.
 *
 * The watched heaps are compiled with -fsanitize=thread, which makes the
 * compiler call a function before every load and store. watch.c has these
 * functions instead of the sanitizer's. So the shipped source is watched
 * unchanged, with every access, and production code has no hook. A prefetch is
 * no access: it brings in no page.
 */
#ifndef BENCH_PAPER_WATCH_H
#define BENCH_PAPER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reports that page @page is about to be read, or written. */
typedef void watch_touch_t(void *context, uint32_t page, bool write);

/* Reports accesses to the @nr pages of 1 << @shift bytes at @start from now on.
 * NULL for @touch: no more. One memory can be watched at a time.
 */
void watch(const void *start, uint32_t nr, unsigned int shift,
	   watch_touch_t *touch, void *context);

#endif /* BENCH_PAPER_WATCH_H */
