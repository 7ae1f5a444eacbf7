/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * Internal interface of sorted pages: bheap_sorted.c, which describes them, and
 * the sweep.
 */
#ifndef CORE_BHEAP_SORTED_H
#define CORE_BHEAP_SORTED_H

#include "bheap_sorted_tree.h"

/* Return the pages before the tree, or NULL with pages->error set. */
static inline struct bheap_node *sorted_arrivals(const struct bheap *heap)
{
	return core_page(heap->pages, 0);
}

static inline struct bheap_node *sorted_run(const struct bheap *heap)
{
	return core_page(heap->pages, 1);
}

/* Returns where the run begins in its page. */
static inline u32 sorted_run_begin(const struct bheap_sorted_state *s)
{
	return SORTED_NODES -
	       (s->run - (sorted_has_surplus(s) ? SORTED_NODES : 0));
}

/* Makes a full arrivals page the last page of the tree. Returns 0 or the pages'
 * error.
 */
int sorted_append_arrivals(struct bheap *heap);

bool sorted_sweep(struct bheap *heap, u32 steps, bheap_stale_t *stale,
		  bheap_ahead_t *ahead, void *context);

#endif /* CORE_BHEAP_SORTED_H */
