// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The sweep of sorted pages.
 *
 * The sweep checks the insertion heap first, then the tree's pages from last to
 * first, so that the page that fills a hole has been checked. It prefetches a
 * page's timers a few nodes a call, then checks the page as a whole. A page
 * without stale nodes stays. Otherwise the page is taken out; its live nodes
 * keep their order, are merged with those of other pages and return as full
 * pages.
 *
 * A page that rises sends down as many nodes as it sends up. Some of them, a
 * page at most, pass the sweep unchecked; the next sweep finds them.
 *
 * In heap->sweep, node e of page t of the tree is t * NODES + e + 1.
 */
#include "bheap_sorted_sweep.h"
#include "bheap_sorted_tree.h"
#include "insert_heap.h"
#include "runs.h"

#define NODES		SORTED_NODES
#define AHEAD		8U
#define SWEPT		1	/* to the end; a negative value is an error */

/* Checks one node of the insertion heap, from the last to the first. */
static int sweep_insert_heap(struct bheap *heap, bheap_stale_t *stale,
			     bheap_ahead_t *ahead, void *context)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *page = sorted_insert_heap(heap);
	u32 elem;

	if (unlikely(!page))
		return heap->pages->error;
	if (s->unswept > s->inserted)
		s->unswept = s->inserted;
	if (!s->unswept)
		return 0;
	elem = s->unswept - 1;
	if (elem >= AHEAD)
		ahead(context, page + elem - AHEAD, BHEAP_SOON);
	if (stale(context, page + elem)) {
		heap->nr--;
		if (insert_heap_remove(page, elem, s->inserted--))
			return 0;
	}
	s->unswept = elem;
	return 0;
}

/* Ends the sweep: the run joins the insertion heap or the tree. */
static int empty_run(struct bheap *heap)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *run = sorted_run(heap), *inserted;
	int err;

	if (unlikely(!run))
		return heap->pages->error;
	if (s->inserted == NODES) {
		err = sorted_append_insert_heap(heap);
		if (unlikely(err))
			return err;
	}
	inserted = sorted_insert_heap(heap);
	if (unlikely(!inserted))
		return heap->pages->error;
	insert_heap_up(inserted, s->inserted++, run + NODES - s->run);
	s->run--;
	return 0;
}

/* Checks page @pos of the tree. A page with stale nodes is taken out: its live
 * nodes are merged with the run, and the excess becomes the surplus.
 */
static int sweep_page(struct bheap *heap, u32 pos, bheap_stale_t *stale,
		      void *context)
{
	struct bheap_sorted_state *s = &heap->sorted;
	u32 begin = pos == 1 ? s->head : 0, run_nr = s->run, nr = 0, all, i;
	struct bheap_node *page, *run, *surplus, *scratch;

	page = sorted_tree_page(heap, pos);
	if (unlikely(!page))
		return heap->pages->error;
	run = sorted_run(heap);
	if (unlikely(!run))
		return heap->pages->error;
	surplus = sorted_surplus(heap);
	if (unlikely(!surplus))
		return heap->pages->error;
	scratch = sorted_scratch(heap);
	if (unlikely(!scratch))
		return heap->pages->error;

	for (i = begin; i < NODES; i++) {
		scratch[nr] = page[i];
		nr += !stale(context, page + i);
	}
	if (nr == NODES - begin)
		return 0;
	heap->nr -= NODES - begin - nr;

	/* Merge the greatest first, until they fill a page. */
	all = run_nr + nr;
	run += NODES - run_nr;
	if (all > NODES) {
		runs_merge_greatest(run, &run_nr, scratch, &nr, NODES,
				    surplus + NODES);
		runs_merge_greatest(run, &run_nr, scratch, &nr, all - NODES,
				    run + s->run);
	} else {
		runs_merge_greatest(run, &run_nr, scratch, &nr, all,
				    surplus + NODES);
		memcpy(run + s->run - all, surplus + NODES - all,
		       all * sizeof(*run));
	}
	s->run = all;
	sorted_tree_vacate(heap, pos);
	return 0;
}

/* Prefetches the timers of a page of the tree, from its last node to its first,
 * then checks the whole page. Takes a step a node.
 */
static int sweep_tree(struct bheap *heap, u32 *steps, bheap_stale_t *stale,
		      bheap_ahead_t *ahead, void *context)
{
	u32 pos = (heap->sweep - 1) / NODES, elem = (heap->sweep - 1) % NODES;
	u32 begin = pos == 1 ? heap->sorted.head : 0, left = *steps;
	const struct bheap_node *page = sorted_tree_page(heap, pos);
	int err;

	if (unlikely(!page))
		return heap->pages->error;
	/* One step is already counted. */
	for (left++; left && elem > begin; left--) {
		ahead(context, page + elem--, BHEAP_SOON);
		heap->sweep--;
	}
	if (!left) {
		*steps = 0;
		return 0;
	}
	*steps = left - 1;
	err = sweep_page(heap, pos, stale, context);
	if (!err)
		heap->sweep = pos * NODES;
	return err;
}

bool sorted_sweep(struct bheap *heap, u32 steps, bheap_stale_t *stale,
		  bheap_ahead_t *ahead, void *context)
{
	struct bheap_sorted_state *s = &heap->sorted;
	int err;

	if (!heap->sweep) {
		heap->sweep = (s->tree + 1) * NODES;
		s->unswept = s->inserted;
	}
	while (steps--) {
		if (heap->sweep > (s->tree + 1) * NODES)
			heap->sweep = (s->tree + 1) * NODES;
		if (s->unswept)
			err = sweep_insert_heap(heap, stale, ahead, context);
		else if (s->hole)
			err = sorted_tree_sink(heap);
		else if (heap->sweep > NODES + s->head)
			err = sweep_tree(heap, &steps, stale, ahead, context);
		else if (s->run)
			err = empty_run(heap);
		else
			err = SWEPT;
		sorted_set_pages(heap);
		if (!err)
			continue;
		if (err == SWEPT)
			heap->sweep = 0;
		break;
	}
	return heap->sweep;
}
