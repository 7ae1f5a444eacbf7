// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Sorted pages: the B-heap whose node is a whole page.
 *
 * N. Deo and S. Prasad, "Parallel heap: an optimal parallel priority queue",
 * J. Supercomputing 6 (1992), with a page where they have a processor each:
 * a binary heap of sorted pages, none of whose nodes is greater than any in
 * the two pages below. Pages, not nodes, move up and down, a page's worth of
 * operations apart, so that a node costs a few comparisons in sequential
 * memory and no page to itself.
 *
 *	page 0		arrivals: what was pushed last, a small heap
 *	page 1		the run: what lives of the pages that the sweep has taken
 *			out, sorted
 *	page 2		the surplus: a full page of that, no less than the run
 *	page 3		scratch for merging, of no meaning between operations
 *	page 3 + t	page t of the tree, t from 1: children 2t and 2t + 1
 *
 * Every page of the tree is full, but for the first (t = 1), whose beginning
 * has been taken already (head), and the hole, which is empty. The least node
 * is that of arrivals, run or the tree's first page, outside of which the
 * heap's first one stands (struct bheap).
 *
 * A page leaves a hole when it is used up or taken out. The hole sinks: its
 * children's lesser half becomes the page, the greater half stays where the
 * greatest was, and the other child is the hole. Without children, it is filled
 * with the surplus, or else the last page, which then rises: as long as its
 * parent has something greater, the greater half of both stays below. Either
 * merges two pages into two others from both ends at once. One half goes to the
 * empty place, the other to a page kept for it (scratch) and from there to
 * where it belongs.
 *
 * The hole sinks one page an operation, and is all the way down before the next
 * one begins. A page rises in one go: its path is known before it starts.
 *
 * "Node" is a struct bheap_node, @pos the number of a page in the tree.
 */
#include "arrivals.h"
#include "bheap_sorted.h"
#include "runs.h"

#define NODES		SORTED_NODES

/* How many nodes before its own turn a node's timer is sent for, by and by. */
#define FAR_AHEAD	48U
#define SOON_AHEAD	24U
#define NEXT_AHEAD	8U

static_assert(sizeof(struct bheap) <= 64, "what is looked at is in one line");

int sorted_append_arrivals(struct bheap *heap)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *page = sorted_arrivals(heap);
	int err;

	if (unlikely(!page))
		return heap->pages->error;
	err = sorted_tree_append(heap, page,
				 page + arrivals_least(page, 0, NODES));
	if (unlikely(err))
		return err;
	s->arrivals = 0;
	s->unswept = 0;
	return 0;
}

/* ------------------------------------------------------------------------
 * The least node
 */

enum origin { ARRIVALS, RUN, TREE };

/**
 * struct next - what comes after the heap's first node
 * @node: it; NULL = nothing does
 * @page: where it is
 * @surplus: what follows the run when this is its last
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

/* The tree's first page must not be the hole. */
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
	if (s->arrivals) {
		page = sorted_arrivals(heap);
		if (unlikely(!page))
			return heap->pages->error;
		propose(next, page, arrivals_least(page, 0, s->arrivals),
			ARRIVALS);
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

/* Make it the heap's first; cannot fail. */
static void take_next(struct bheap *heap, const struct next *next)
{
	struct bheap_sorted_state *s = &heap->sorted;

	heap->first = *next->node;
	switch (next->origin) {
	case ARRIVALS:
		arrivals_remove(next->page, next->node - next->page,
				s->arrivals--);
		break;
	case RUN:
		/* The surplus is next; the hole is left to the last page. */
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
	if (!err && heap->sorted.arrivals == NODES)
		err = sorted_append_arrivals(heap);
	if (unlikely(err))
		return err;
	page = sorted_arrivals(heap);
	if (unlikely(!page))
		return heap->pages->error;

	/* What does not come first goes into the pages. */
	if (node_less(node, &first)) {
		heap->first = *node;
		arrivals_up(page, heap->sorted.arrivals++, &first);
	} else {
		arrivals_up(page, heap->sorted.arrivals++, node);
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
	if (heap->sorted.arrivals == NODES && next.origin != ARRIVALS) {
		err = sorted_append_arrivals(heap);
		if (!err)
			err = find_next(heap, &next);
		if (unlikely(err))
			return err;
	}
	page = sorted_arrivals(heap);
	if (unlikely(!page))
		return heap->pages->error;
	take_next(heap, &next);
	arrivals_up(page, heap->sorted.arrivals++, node);
	sorted_set_pages(heap);
	return 0;
}

/* Of the tree's first page, the node that is @distance after the next; at the
 * beginning of the page, all of them up to there.
 */
static inline void send_ahead(const struct bheap_node *page, u32 head,
			      u32 distance, bheap_ahead_t *ahead, void *context,
			      enum bheap_when when)
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
		send_ahead(page, s->head, FAR_AHEAD, ahead, context, BHEAP_FAR);
		send_ahead(page, s->head, SOON_AHEAD, ahead, context,
			   BHEAP_SOON);
		send_ahead(page, s->head, NEXT_AHEAD, ahead, context,
			   BHEAP_NEXT);
	}
	page = core_page_peek(heap->pages, 0);
	for (i = 0; page && i < s->arrivals && i < ARRIVALS_GROUP; i++)
		ahead(context, page + i, BHEAP_SOON);
}

/* ------------------------------------------------------------------------
 * Validation
 */

/**
 * struct census - what has been seen
 * @visit: is shown each node, with @context, unless it is NULL
 * @context: the visitor's
 * @nr: nodes
 * @least: and the least of them
 */
struct census {
	bheap_visit_t *visit;
	void *context;
	u64 nr;
	u64 least;
};

static void count(void *context, const struct bheap_node *from,
		  const struct bheap_node *end)
{
	struct census *census = context;

	for (; from < end; from++) {
		if (from->deadline < census->least)
			census->least = from->deadline;
		census->nr++;
		if (census->visit)
			census->visit(census->context, from);
	}
}

static int sorted_validate(struct bheap *heap, bheap_visit_t *visit,
			   void *context)
{
	const struct bheap_sorted_state *s = &heap->sorted;
	struct census census = { visit, context, 0, ~0ULL };
	const struct bheap_node *page, *last = NULL;
	int err;

	if (s->arrivals > NODES || s->run >= 2 * NODES ||
	    (sorted_has_surplus(s) && !s->hole))
		return -EIO;
	if (s->arrivals) {
		page = sorted_arrivals(heap);
		if (!page)
			return heap->pages->error;
		if (!arrivals_is_heap(page, s->arrivals))
			return -EIO;
		count(&census, page, page + s->arrivals);
	}
	if (s->run) {
		page = sorted_run(heap);
		if (!page)
			return heap->pages->error;
		if (!runs_is_sorted(page + sorted_run_begin(s), page + NODES))
			return -EIO;
		count(&census, page + sorted_run_begin(s), page + NODES);
		last = page + NODES - 1;
	}
	if (sorted_has_surplus(s)) {
		page = sorted_surplus(heap);
		if (!page)
			return heap->pages->error;
		if (!runs_is_sorted(page, page + NODES) ||
		    node_less(page, last))
			return -EIO;
		count(&census, page, page + NODES);
	}
	err = sorted_tree_validate(heap, count, &census);
	if (err)
		return err;
	if (heap->nr) {
		if (census.least < heap->first.deadline)
			return -EIO;
		count(&census, &heap->first, &heap->first + 1);
	}
	return census.nr == heap->nr ? 0 : -EIO;
}

const struct bheap_layout bheap_sorted = {
	.name = "sorted",
	.push = sorted_push,
	.pop = sorted_pop,
	.replace = sorted_replace,
	.top = sorted_top,
	.sweep = sorted_sweep,
	.validate = sorted_validate,
};
