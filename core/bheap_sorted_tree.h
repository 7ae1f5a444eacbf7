/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The tree of sorted pages: see bheap_sorted.c for what it is and where it is.
 *
 * Every function that can fail returns 0 or the pages' error; what it has done
 * until then is as good a heap as before.
 */
#ifndef CORE_BHEAP_SORTED_TREE_H
#define CORE_BHEAP_SORTED_TREE_H

#include "bheap.h"

#define SORTED_NODES	BHEAP_NODES_PER_PAGE

/* Arrivals, run, surplus and scratch. */
#define SORTED_BEFORE_TREE	4U

/* Page @pos of the tree, from 1, or NULL with pages->error set. */
static inline struct bheap_node *sorted_tree_page(const struct bheap *heap,
						  u32 pos)
{
	return core_page(heap->pages, SORTED_BEFORE_TREE - 1 + pos);
}

/* A page for merging, or NULL: nothing is in it between two operations. */
static inline struct bheap_node *sorted_scratch(const struct bheap *heap)
{
	return core_page(heap->pages, 3);
}

/* The page of the run that will fill the hole, or NULL. */
static inline struct bheap_node *sorted_surplus(const struct bheap *heap)
{
	return core_page(heap->pages, 2);
}

/* Whether there is one; there is a hole then, too. */
static inline bool sorted_has_surplus(const struct bheap_sorted_state *s)
{
	return s->run > SORTED_NODES;
}

/* Tell the owner which pages are in use. */
static inline void sorted_set_pages(struct bheap *heap)
{
	const struct bheap_sorted_state *s = &heap->sorted;

	if (s->tree)
		heap->pages->nr = SORTED_BEFORE_TREE + s->tree;
	else if (s->run)
		heap->pages->nr = 2;
	else
		heap->pages->nr = s->arrivals ? 1 : 0;
}

/* The hole goes down by one page, or away. */
int sorted_tree_sink(struct bheap *heap);

/* The hole goes all the way down. */
int sorted_tree_settle(struct bheap *heap);

/* The hole, if there is one, goes down by a page, and so far that the tree's
 * next node can be taken: its first page is not the hole, nor used up before
 * the hole is gone.
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

/* Page @pos is empty from now on; there must be no hole. With a surplus, there
 * is one after that in any case.
 */
void sorted_tree_vacate(struct bheap *heap, u32 pos);

/* Add a full page of nodes in any order, of which @least is the least. Leaves
 * @page as scratch, or, when it fails, as it was.
 */
int sorted_tree_append(struct bheap *heap, struct bheap_node *page,
		       const struct bheap_node *least);

/* Walk the tree (unbounded), show each page to @count: 0, a page's error, or
 * -EIO.
 */
int sorted_tree_validate(struct bheap *heap,
			 void (*count)(void *context,
				       const struct bheap_node *from,
				       const struct bheap_node *end),
			 void *context);

#endif /* CORE_BHEAP_SORTED_TREE_H */
