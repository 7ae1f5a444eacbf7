/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many pages would have been read and written back, had only so many been
 * resident: perfect LRU replacement with dirty tracking, for every number of
 * resident pages from a single pass.
 *
 * R. L. Mattson et al., "Evaluation techniques for storage hierarchies", IBM
 * Systems Journal 9 (1970): under LRU, what is resident with r pages is always
 * among what is resident with r + 1. So a page's depth in the LRU stack says
 * for which r it is still there when it is touched again. J. G. Thompson and
 * A. J. Smith, "Efficient (stack) algorithms for analysis of write-back and
 * sector memories", ACM TOCS 7 (1989), add the write-backs: a page that is
 * dirty with r pages resident is dirty with r + 1, too, so that one number, the
 * least such r, is all there is to know.
 */
#ifndef BENCH_PAPER_LRU_H
#define BENCH_PAPER_LRU_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct lru - a stack of pages and what was counted
 * @nr: pages there are
 * @touched: pages that were touched at least once
 * @top: the page touched last
 * @clock: next moment, from 1 to @clock_max
 * @clock_max: when it is reached, the moments are numbered anew
 * @last: by page, the moment of its last touch; 0 = never touched
 * @dirty: by page, the least number of resident pages with which it is dirty;
 *	UINT32_MAX = with none
 * @page_at: by moment, the page that was touched
 * @tree: Fenwick tree over the moments that are some page's last
 * @depths: by depth in the stack, from 1, how many touches found a page there
 * @written: by number of resident pages, how many write-backs more than with
 *	one page less
 */
struct lru {
	uint32_t nr;
	uint32_t touched;
	uint32_t top;
	uint32_t clock;
	uint32_t clock_max;
	uint32_t *last;
	uint32_t *dirty;
	uint32_t *page_at;
	uint32_t *tree;
	uint64_t *depths;
	int64_t *written;
};

/* What one number of resident pages comes to. */
struct lru_count {
	uint64_t in;
	uint64_t out;
};

/* @nr: pages there are. Ends the program when memory cannot be had. */
void lru_init(struct lru *lru, uint32_t nr);
void lru_deinit(struct lru *lru);

/* A page other than the last one is touched; see lru_touch(). */
void lru_touch_other(struct lru *lru, uint32_t page);

/* Page @page is read, or also written. Nothing is resident in the beginning;
 * the first touch makes the page and is no page-in.
 */
static inline void lru_touch(struct lru *lru, uint32_t page, bool write)
{
	if (page != lru->top)
		lru_touch_other(lru, page);
	if (write)
		lru->dirty[page] = 1;
}

/**
 * lru_counts - the result
 * @counts: for 1 to @nr resident pages, @counts[0] is for 1
 *
 * What is still dirty and resident at the end is not written back. To be
 * called once, at the end.
 */
void lru_counts(struct lru *lru, struct lru_count *counts);

#endif /* BENCH_PAPER_LRU_H */
