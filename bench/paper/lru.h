/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many pages would be read and written back with a given number of resident
 * pages: perfect LRU replacement with dirty tracking, for every number of
 * resident pages from a single pass.
 *
 * R. L. Mattson et al., "Evaluation techniques for storage hierarchies", IBM
 * Systems Journal 9 (1970): under LRU, the pages resident with r pages are
 * always among those resident with r + 1. So a page's depth in the LRU stack
 * gives the numbers r with which it is still resident at its next touch. J. G.
 * Thompson and A. J. Smith, "Efficient (stack) algorithms for analysis of
 * write-back and sector memories", ACM TOCS 7 (1989), add the write-backs. A
 * page that is dirty with r pages resident is dirty with r + 1, too. So one
 * number, the least such r, is enough.
 */
#ifndef BENCH_PAPER_LRU_H
#define BENCH_PAPER_LRU_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct lru - a stack of pages and its counts
 * @nr: number of pages
 * @touched: pages that were touched at least once
 * @top: the page touched last
 * @clock: next moment, from 1 to @clock_max
 * @clock_max: when it is reached, moments are numbered anew
 * @last: by page, the moment of its last touch; 0 = never
 * @dirty: by page, the least resident pages with which it is dirty
 * @page_at: by moment, the page that was touched
 * @tree: Fenwick tree over the moments of last touches
 * @depths: by depth in the stack, from 1, touches there
 * @written: by resident pages, the change in write-backs
 *
 * @dirty is UINT32_MAX for a clean page. @written is the number of write-backs
 * more than with one page less.
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

/* The counts for one number of resident pages. */
struct lru_count {
	uint64_t in;
	uint64_t out;
};

/* Initializes for @nr pages. Ends the program without memory. */
void lru_init(struct lru *lru, uint32_t nr);
void lru_deinit(struct lru *lru);

/* Touches a page other than the last one; see lru_touch(). */
void lru_touch_other(struct lru *lru, uint32_t page);

/* Reads page @page, or also writes it. Nothing is resident at first; the first
 * touch creates the page and is no page-in.
 */
static inline void lru_touch(struct lru *lru, uint32_t page, bool write)
{
	if (page != lru->top)
		lru_touch_other(lru, page);
	if (write)
		lru->dirty[page] = 1;
}

/**
 * lru_counts - get the result
 * @counts: for 1 to @nr resident pages, @counts[0] is for 1
 *
 * Pages that are dirty and resident at the end are not written back. Call it
 * once, at the end.
 */
void lru_counts(struct lru *lru, struct lru_count *counts);

#endif /* BENCH_PAPER_LRU_H */
