/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a heap reads and writes, as the compiler reports it.
 *
 * The heaps that are watched are compiled with -fsanitize=thread, which has the
 * compiler call a function before every load and store; watch.c has these
 * functions in place of the sanitizer's. So it is the shipped source that is
 * watched, as it is, with no access forgotten, and production code carries no
 * hook. A prefetch is none: it brings in no page.
 */
#ifndef BENCH_PAPER_WATCH_H
#define BENCH_PAPER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Page @page is about to be read, or written. */
typedef void watch_touch_t(void *context, uint32_t page, bool write);

/* From now on report accesses to the @nr pages of 1 << @shift bytes at @start.
 * NULL for @touch: no more. One memory can be watched at a time.
 */
void watch(const void *start, uint32_t nr, unsigned int shift,
	   watch_touch_t *touch, void *context);

#endif /* BENCH_PAPER_WATCH_H */
