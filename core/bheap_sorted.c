// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Sorted pages: the B-heap whose node is a whole page.
 *
 * N. Deo and S. Prasad, "Parallel heap: an optimal parallel priority queue", J.
 * Supercomputing 6 (1992). A node of theirs has an item for each processor; here
 * it is a page. The pages form a binary heap. Each page is sorted, and none of
 * its nodes is greater than any in the two pages below. Pages move up and down,
 * not nodes, and only once in a page's worth of operations. So a node costs a
 * few comparisons in sequential memory, and no page of its own.
 *
 *	page 0		the insertion heap: the nodes pushed last
 *	page 1		the run: live nodes of the pages that the sweep took
 *			out, sorted
 *	page 2		the surplus: a full page of them, no less than the run
 *	page 3		scratch for merging, undefined between operations
 *	page 3 + t	page t of the tree, t from 1: children 2t and 2t + 1
 *
 * Every page of the tree is full, with two exceptions. The beginning of the
 * first page (t = 1) may have been taken already (head). The hole is empty. The
 * heap's first node stands outside the pages (struct bheap). The next one is
 * the least of the insertion heap, the run and the tree's first page.
 *
 * A page that is used up or taken out leaves a hole. The hole sinks. The lesser
 * half of both children fills it. The greater half stays in the child that had
 * the greatest node, and the other child is the new hole. A hole without
 * children is filled with the surplus, or else with the last page. That page
 * then rises: while its parent has a greater node, the greater half of both
 * stays below. Both steps merge two pages into two others, from both ends at
 * once. One half goes to the empty page, the other to the scratch page and from
 * there to its destination.
 *
 * The hole sinks one page an operation and reaches the bottom before the next
 * hole begins. A page rises at once: its path is known before it starts.
 *
 * "Node" is a struct bheap_node, @pos the number of a page in the tree.
 */
#include "bheap_sorted_sweep.h"
#include "bheap_sorted_tree.h"
#include "insert_heap.h"
#include "runs.h"

#define NODES		SORTED_NODES

/* Pages beyond those that the nodes fill. */
#define SORTED_SPARE	5U

/* Distances, in nodes, at which a node's timer is prefetched in steps. */
#define FAR_AHEAD	48U
#define SOON_AHEAD	24U

static_assert(offsetof(struct bheap, sorted) + sizeof(struct bheap_sorted_state) <=
	      80, "what is looked at is in two lines");

/* ------------------------------------------------------------------------
 * The least node
 */

enum origin { INSERT_HEAP, RUN, TREE };

/**
 * struct next - the successor of the heap's first node
 * @node: the successor; NULL = none
 * @page: its page
 * @surplus: follows the run if this is its last node
 * @origin: what page @page is
 */
struct next {
	struct bheap_node *node;
	struct bheap_node *page;
	struct bheap_node *surplus;
	enum origin origin;
};

static inline void propose(struct next *next, struct bheap_node *page,
			   u32 elem, enum origin origin)
{
	if (next->node && !node_less(page + elem, next->node))
		return;
	next->node = page + elem;
	next->page = page;
	next->origin = origin;
}

/* Finds the next node. The tree's first page must not be the hole. */
static int find_next(struct bheap *heap, struct next *next)
{
	const struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *page;

	next->node = NULL;
	if (s->tree) {
		page = sorted_tree_page(heap, 1);
		if (unlikely(!page))
			return heap->pages->error;
		propose(next, page, s->head, TREE);
	}
	if (s->inserted) {
		page = sorted_insert_heap(heap);
		if (unlikely(!page))
			return heap->pages->error;
		propose(next, page, insert_heap_least(page, 0, s->inserted),
			INSERT_HEAP);
	}
	if (unlikely(s->run)) {
		page = sorted_run(heap);
		if (unlikely(!page))
			return heap->pages->error;
		if (s->run == NODES + 1) {
			next->surplus = sorted_surplus(heap);
			if (unlikely(!next->surplus))
				return heap->pages->error;
		}
		propose(next, page, sorted_run_begin(s), RUN);
	}
	return 0;
}

/* Makes it the heap's first; cannot fail. */
static void take_next(struct bheap *heap, const struct next *next)
{
	struct bheap_sorted_state *s = &heap->sorted;

	heap->first = *next->node;
	switch (next->origin) {
	case INSERT_HEAP:
		insert_heap_remove(next->page, next->node - next->page,
				   s->inserted--);
		break;
	case RUN:
		/* The surplus is next; the last page fills the hole. */
		if (--s->run == NODES)
			memcpy(next->page, next->surplus, CORE_PAGE_SIZE);
		break;
	case TREE:
		if (++s->head == NODES)
			sorted_tree_vacate(heap, 1);
		break;
	}
}

/* ------------------------------------------------------------------------
 * The layout's functions
 */

static int sorted_push(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_node *page, first = heap->first;
	int err;

	if (!heap->nr) {
		heap->first = *node;
		heap->nr = 1;
		return 0;
	}
	if (unlikely(heap->nr == ~0U))
		return -ENOSPC;

	err = sorted_tree_ready(heap);
	if (!err && heap->sorted.inserted == NODES)
		err = sorted_append_insert_heap(heap);
	if (unlikely(err))
		return err;
	page = sorted_insert_heap(heap);
	if (unlikely(!page))
		return heap->pages->error;

	/* A node that does not come first goes into the pages. */
	if (node_less(node, &first)) {
		heap->first = *node;
		insert_heap_up(page, heap->sorted.inserted++, &first);
	} else {
		insert_heap_up(page, heap->sorted.inserted++, node);
	}
	heap->nr++;
	if (unlikely(!heap->pages->nr))
		sorted_set_pages(heap);
	return 0;
}

static int sorted_pop(struct bheap *heap)
{
	struct next next;
	int err;

	if (heap->nr > 1) {
		err = sorted_tree_ready(heap);
		if (!err)
			err = find_next(heap, &next);
		if (unlikely(err))
			return err;
		if (core_broken(next.node))
			return -EIO;
		take_next(heap, &next);
	}
	heap->nr--;
	sorted_set_pages(heap);
	return 0;
}

/* Knows the nodes of the tree's first page but the last: without it the page is
 * used up. While there is a run, its surplus may rise to that page.
 */
static u32 sorted_next(const struct bheap *heap, u64 last, u32 max,
		       const struct bheap_node **nodesp)
{
	const struct bheap_sorted_state *s = &heap->sorted;
	const struct bheap_node *page, *inserted;

	if (!s->tree || s->hole == 1 || s->run)
		return 0;
	page = core_page_peek(heap->pages, SORTED_BEFORE_TREE);
	if (unlikely(!page))
		return 0;
	if (s->inserted) {
		inserted = core_page_peek(heap->pages, 0);
		if (unlikely(!inserted))
			return 0;
		inserted += insert_heap_least(inserted, 0, s->inserted);
		last = inserted->deadline < last ? inserted->deadline : last;
	}
	page += s->head;
	max = NODES - 1 - s->head < max ? NODES - 1 - s->head : max;
	*nodesp = page;
	return runs_count(page, max, last);
}

static int sorted_take(struct bheap *heap, u32 nr)
{
	struct bheap_sorted_state *s = &heap->sorted;
	const struct bheap_node *page = sorted_tree_page(heap, 1);
	u32 paid = 0, last = nr - 1;
	int err = 0;

	if (unlikely(!page))
		return heap->pages->error;
	while (paid < last && s->hole) {
		err = sorted_tree_ready(heap);
		if (unlikely(err)) {
			last = paid;
			break;
		}
		paid++;
	}
	if (last) {
		heap->first = page[s->head + last - 1];
		s->head += last;
		heap->nr -= last;
		sorted_set_pages(heap);
	}
	if (!err)
		err = sorted_pop(heap);
	return err ? (int)last ?: err : (int)nr;
}

static int sorted_replace(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_node *page;
	struct next next;
	int err;

	err = sorted_tree_ready(heap);
	if (!err)
		err = find_next(heap, &next);
	if (unlikely(err))
		return err;
	if (!next.node || !node_less(next.node, node)) {
		heap->first = *node;
		return 0;
	}
	if (heap->sorted.inserted == NODES && next.origin != INSERT_HEAP) {
		err = sorted_append_insert_heap(heap);
		if (!err)
			err = find_next(heap, &next);
		if (unlikely(err))
			return err;
	}
	page = sorted_insert_heap(heap);
	if (unlikely(!page))
		return heap->pages->error;
	take_next(heap, &next);
	insert_heap_up(page, heap->sorted.inserted++, node);
	sorted_set_pages(heap);
	return 0;
}

/* Prefetches the node @distance after the next in the tree's first page. At the
 * beginning of the page, prefetches all nodes up to there.
 */
static inline void prefetch_ahead(const struct bheap_node *page, u32 head,
				  u32 distance, bheap_ahead_t *ahead,
				  void *context, enum bheap_when when)
{
	u32 end = head + distance < NODES ? head + distance : NODES, i;

	for (i = head > 1 ? head + distance - 1 : head; i < end; i++)
		ahead(context, page + i, when);
}

static void sorted_top(const struct bheap *heap, bheap_ahead_t *ahead,
		       void *context)
{
	const struct bheap_sorted_state *s = &heap->sorted;
	const struct bheap_node *page = NULL;
	u32 i;

	if (s->tree && s->hole != 1)
		page = core_page_peek(heap->pages, SORTED_BEFORE_TREE);
	if (page) {
		prefetch_ahead(page, s->head, FAR_AHEAD, ahead, context,
			       BHEAP_FAR);
		prefetch_ahead(page, s->head, SOON_AHEAD, ahead, context,
			       BHEAP_SOON);
	}
	page = core_page_peek(heap->pages, 0);
	for (i = 0; page && i < s->inserted && i < INSERT_HEAP_GROUP; i++)
		ahead(context, page + i, BHEAP_SOON);
}

/* ------------------------------------------------------------------------
 * Validation
 */

/**
 * struct validate_counts - counts of visited nodes
 * @visit: receives each node, unless NULL
 * @context: the first argument of @visit
 * @nr: nodes
 * @least: the least of them
 */
struct validate_counts {
	bheap_visit_t *visit;
	void *context;
	u64 nr;
	u64 least;
};

static void count_nodes(void *context, const struct bheap_node *from,
			const struct bheap_node *end)
{
	struct validate_counts *counts = context;

	for (; from < end; from++) {
		if (from->deadline < counts->least)
			counts->least = from->deadline;
		counts->nr++;
		if (counts->visit)
			counts->visit(counts->context, from);
	}
}

static int sorted_validate(struct bheap *heap, bheap_visit_t *visit,
			   void *context)
{
	const struct bheap_sorted_state *s = &heap->sorted;
	struct validate_counts counts = { visit, context, 0, ~0ULL };
	const struct bheap_node *page, *last = NULL;
	int err;

	if (s->inserted > NODES || s->run >= 2 * NODES ||
	    (sorted_has_surplus(s) && !s->hole))
		return -EIO;
	if (s->inserted) {
		page = sorted_insert_heap(heap);
		if (!page)
			return heap->pages->error;
		if (!insert_heap_is_ordered(page, s->inserted))
			return -EIO;
		count_nodes(&counts, page, page + s->inserted);
	}
	if (s->run) {
		page = sorted_run(heap);
		if (!page)
			return heap->pages->error;
		if (!runs_is_sorted(page + sorted_run_begin(s), page + NODES))
			return -EIO;
		count_nodes(&counts, page + sorted_run_begin(s), page + NODES);
		last = page + NODES - 1;
	}
	if (sorted_has_surplus(s)) {
		page = sorted_surplus(heap);
		if (!page)
			return heap->pages->error;
		if (!runs_is_sorted(page, page + NODES) ||
		    node_less(page, last))
			return -EIO;
		count_nodes(&counts, page, page + NODES);
	}
	err = sorted_tree_validate(heap, count_nodes, &counts);
	if (err)
		return err;
	if (heap->nr) {
		if (counts.least < heap->first.deadline)
			return -EIO;
		count_nodes(&counts, &heap->first, &heap->first + 1);
	}
	return counts.nr == heap->nr ? 0 : -EIO;
}

static u32 sorted_pages_max(u64 nodes)
{
	return nodes / NODES + 1 + SORTED_SPARE;
}

const struct bheap_layout bheap_sorted = {
	.name = "sorted",
	.push = sorted_push,
	.pop = sorted_pop,
	.replace = sorted_replace,
	.next = sorted_next,
	.take = sorted_take,
	.top = sorted_top,
	.sweep = sorted_sweep,
	.validate = sorted_validate,
	.pages_max = sorted_pages_max,
};
