/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The pages of sorted pages and their tree; bheap_sorted.c describes both.
 *
 * Every function that can fail returns 0 or the pages' error. After an error
 * the heap is still valid.
 */
#ifndef CORE_BHEAP_SORTED_TREE_H
#define CORE_BHEAP_SORTED_TREE_H

#include "bheap.h"

#define SORTED_NODES	BHEAP_NODES_PER_PAGE

/* Insertion heap, run, surplus and scratch. */
#define SORTED_BEFORE_TREE	4U

/* Return the pages before the tree, or NULL with pages->error set. */
static inline struct bheap_node *sorted_insert_heap(const struct bheap *heap)
{
	return core_page(heap->pages, 0);
}

static inline struct bheap_node *sorted_run(const struct bheap *heap)
{
	return core_page(heap->pages, 1);
}

/* Returns page @pos of the tree, from 1, or NULL with pages->error set. */
static inline struct bheap_node *sorted_tree_page(const struct bheap *heap,
						  u32 pos)
{
	return core_page(heap->pages, SORTED_BEFORE_TREE - 1 + pos);
}

/* Returns the scratch page for merging, or NULL. Undefined between operations.
 */
static inline struct bheap_node *sorted_scratch(const struct bheap *heap)
{
	return core_page(heap->pages, 3);
}

/* Returns the page of the run that will fill the hole, or NULL. */
static inline struct bheap_node *sorted_surplus(const struct bheap *heap)
{
	return core_page(heap->pages, 2);
}

/* Returns whether there is a surplus; then there is a hole, too. */
static inline bool sorted_has_surplus(const struct bheap_sorted_state *s)
{
	return s->run > SORTED_NODES;
}

/* Returns where the run begins in its page. */
static inline u32 sorted_run_begin(const struct bheap_sorted_state *s)
{
	return SORTED_NODES -
	       (s->run - (sorted_has_surplus(s) ? SORTED_NODES : 0));
}

/* Tells the owner which pages are in use. */
static inline void sorted_set_pages(struct bheap *heap)
{
	const struct bheap_sorted_state *s = &heap->sorted;

	if (s->tree)
		heap->pages->nr = SORTED_BEFORE_TREE + s->tree;
	else if (s->run)
		heap->pages->nr = 2;
	else
		heap->pages->nr = s->inserted ? 1 : 0;
}

/* Sinks the hole by one page, or fills it. */
int sorted_tree_sink(struct bheap *heap);

/* Sinks the hole to the bottom and fills it. */
int sorted_tree_fill_hole(struct bheap *heap);

/* Sinks the hole by a page, then as far as the next pop requires: the first
 * page is not the hole, and is not used up while there is one.
 */
static inline int sorted_tree_ready(struct bheap *heap)
{
	const struct bheap_sorted_state *s = &heap->sorted;
	int err;

	if (likely(!s->hole))
		return 0;
	do {
		err = sorted_tree_sink(heap);
		if (unlikely(err))
			return err;
	} while (s->hole && s->head == SORTED_NODES - 1);
	return 0;
}

/* Makes page @pos the hole; there must be none. A surplus leaves a hole in any
 * case.
 */
void sorted_tree_vacate(struct bheap *heap, u32 pos);

/* Adds a full page of nodes in any order, the least of them @least. Leaves
 * @page as scratch, or unchanged when it fails.
 */
int sorted_tree_append(struct bheap *heap, struct bheap_node *page,
		       const struct bheap_node *least);

/* Makes the full insertion heap the last page of the tree. Returns 0 or the
 * pages' error.
 */
int sorted_append_insert_heap(struct bheap *heap);

/* Walks the tree (unbounded) and passes each page to @count. Returns 0, a
 * page's error, or -EIO.
 */
int sorted_tree_validate(struct bheap *heap,
			 void (*count)(void *context,
				       const struct bheap_node *from,
				       const struct bheap_node *end),
			 void *context);

#endif /* CORE_BHEAP_SORTED_TREE_H */
