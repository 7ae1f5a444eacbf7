// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Radix pages: a radix heap whose buckets are chains of pages.
 *
 * R. K. Ahuja, K. Mehlhorn, J. B. Orlin and R. E. Tarjan, "Faster algorithms for
 * the shortest path problem", J. ACM 37 (1990). Deadlines are numbers of LEVELS
 * digits. The bucket of a node is given by the highest digit in which its
 * deadline differs from the front, and by that digit. A push is so an append to
 * a chain of pages, without a search. A radix heap empties its first bucket at
 * once into those below; here that is done ahead of time and by the page, and a
 * bucket that was divided remains divided when the front moves back.
 *
 *	near heap	what came before the front: a 4-ary heap of a page
 *	sorted run	the nodes of the bucket opened last: a sorted page
 *	finger		a table of buckets a level, on the way to the front
 *	tables below	the buckets of a bucket whose chain became long
 *
 * The next node is the least of near heap and run, unless a far node may be
 * earlier. Then only a bound is known: bheap_find_first() takes steps until it
 * is the least (bheap_radix_front.c). A bucket of at most a page is opened: its
 * stale nodes are dropped, the rest becomes the run (bheap_radix_open.c). Of a
 * longer chain that is in order, the first page is opened. Of other buckets a page
 * at a time goes to the tables below (bheap_radix_chain.c).
 *
 * Chains that become long are spread before their turn, a page every WORK_EVERY
 * operations, so that never many steps follow each other. Those in order need that
 * late or never: timers of one time to live are appended, and taken by the page.
 *
 * "Node" is a struct bheap_node, "chain" the pages of a bucket; "far" is what is
 * in chains.
 */
#include "bheap_radix_pages.h"
#include "insert_heap.h"
#include "runs.h"

/* Operations between two steps in the background. */
#define WORK_EVERY	(NODES / 8 ?: 1U)

/* The front retreats to the present, less what time passes meanwhile. */
#define PRESENT_MASK	(~0ULL << 20)

/* Distance, in nodes of the run, at which a node's timer is prefetched. */
#define SOON_AHEAD	16U

/* Returns whether there is a step to take in the background. */
static inline bool has_work(const struct bheap_radix_state *s)
{
	return s->spread[BHEAP_RADIX_BACKGROUND].head | s->hints ||
	       radix_has_surplus(s);
}

/* Counts an operation. Returns whether a step in the background may follow it. */
static inline bool count_work(struct bheap_radix_state *s)
{
	return unlikely(++s->work % WORK_EVERY == 0);
}

/* Takes a step in the background if there is one to take. */
static int take_step(struct bheap *heap)
{
	struct bheap_radix_state *s = &heap->radix;

	if (!has_work(s))
		return 0;
	if (s->spread[BHEAP_RADIX_BACKGROUND].head)
		return radix_spread(heap, BHEAP_RADIX_BACKGROUND);
	if (s->hints)
		return radix_spill(heap);
	return radix_shrink(heap);
}

/* Does an operation's share of the work in the background. */
static inline int do_work(struct bheap *heap)
{
	return count_work(&heap->radix) ? take_step(heap) : 0;
}

/* ------------------------------------------------------------------------
 * The near part
 */

/* Chooses a front such that at least half of the sorted page @near is not before
 * it: the present if that will do.
 */
static u64 choose_front(const struct bheap *heap, const struct bheap_node *near)
{
	const struct bheap_radix_state *s = &heap->radix;
	u64 front = heap->now & PRESENT_MASK, before;

	if (s->tables && front > s->front)
		front = s->front;
	if (near[NODES / 2].deadline >= front)
		return front;
	front = near[NODES / 2].deadline;
	before = near[NODES / 2 - 1].deadline;
	/* Any deadline between the two will do: one with many zeros. */
	if (front > before)
		front &= ~0ULL << (fls64(front ^ before) - 1);
	return front;
}

/* Moves the last of the sorted @nodes, from the front on, to the far part, in their
 * order: chains remain in order. @begin to *@nrp - 1 are the nodes.
 */
static int move_behind_front(struct bheap *heap, struct bheap_node *nodes,
			     u32 begin, u32 *nrp)
{
	u32 nr = *nrp, from = nr, to;
	int err = 0;

	while (from > begin && nodes[from - 1].deadline >= heap->radix.front)
		from--;
	for (to = from; to < nr; to++) {
		err = radix_far_push(heap, nodes + to);
		if (unlikely(err))
			break;
	}
	memmove(nodes + from, nodes + to, (nr - to) * sizeof(*nodes));
	*nrp = nr - (to - from);
	return err;
}

/* Empties the near heap, which is full, by moving the front back. */
static int make_room(struct bheap *heap)
{
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node *near, *scratch, *sorted, *run = NULL;
	u64 last;
	int err;

	near = radix_nodes(heap, RADIX_NEAR);
	if (unlikely(!near))
		return heap->pages->error;
	scratch = radix_nodes(heap, RADIX_SCRATCH);
	if (unlikely(!scratch))
		return heap->pages->error;
	if (s->run_at < s->run_nr) {
		run = radix_nodes(heap, RADIX_RUN);
		if (unlikely(!run))
			return heap->pages->error;
	}
	/* In order it is a heap, too. */
	sorted = runs_sort_page(near, scratch);
	if (sorted != near)
		memcpy(near, sorted, CORE_PAGE_SIZE);
	last = near[NODES - 1].deadline;
	if (run && run[s->run_nr - 1].deadline > last)
		last = run[s->run_nr - 1].deadline;
	err = radix_retreat(heap, choose_front(heap, near), last);
	if (!err)
		err = move_behind_front(heap, near, 0, &s->near);
	if (!err && run)
		err = move_behind_front(heap, run, s->run_at, &s->run_nr);
	return err;
}

/* Adds a node that is not the first. */
static int insert(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node *near;
	int err;

	if (s->tables && node->deadline >= s->front)
		return radix_far_push(heap, node);
	if (unlikely(s->near == NODES)) {
		err = make_room(heap);
		if (unlikely(err))
			return err;
		if (s->tables && node->deadline >= s->front)
			return radix_far_push(heap, node);
	}
	near = radix_nodes(heap, RADIX_NEAR);
	if (unlikely(!near))
		return heap->pages->error;
	insert_heap_up(near, s->near++, node);
	if (unlikely(!heap->pages->nr))
		radix_set_pages(heap);
	return 0;
}

/**
 * struct next - what of the near part is next
 * @node: the node; NULL = none
 * @near: the near heap, if it is there
 */
struct next {
	const struct bheap_node *node;
	struct bheap_node *near;
};

/* Finds the least of near heap and run. */
static int find_next(struct bheap *heap, struct next *next)
{
	const struct bheap_radix_state *s = &heap->radix;
	const struct bheap_node *run, *near;

	next->node = NULL;
	next->near = NULL;
	if (s->run_at < s->run_nr) {
		run = radix_nodes(heap, RADIX_RUN);
		if (unlikely(!run))
			return heap->pages->error;
		next->node = run + s->run_at;
	}
	if (!s->near)
		return 0;
	next->near = radix_nodes(heap, RADIX_NEAR);
	if (unlikely(!next->near))
		return heap->pages->error;
	near = next->near + insert_heap_least(next->near, 0, s->near);
	if (!next->node || node_less(near, next->node))
		next->node = near;
	else
		next->near = NULL;
	return 0;
}

/* Makes it the heap's first, or sets the bound if a far node may be earlier.
 * Cannot fail.
 */
static void take_next(struct bheap *heap, const struct next *next)
{
	struct bheap_radix_state *s = &heap->radix;

	if (s->tables && (!next->node ||
			  next->node->deadline > s->far_from)) {
		s->far_from = radix_far_bound(heap);
		if (!next->node || next->node->deadline > s->far_from) {
			memset(&heap->first, 0, sizeof(heap->first));
			heap->first.deadline = s->far_from;
			heap->is_bound = true;
			return;
		}
	}
	heap->is_bound = false;
	heap->first = *next->node;
	if (next->near)
		insert_heap_remove(next->near, next->node - next->near,
				   s->near--);
	else
		s->run_at++;
	if (!s->tables)
		radix_set_pages(heap);
}

/* ------------------------------------------------------------------------
 * The layout's functions
 */

/* Adds a node to a heap that is not empty, wherever it belongs. */
static int push_anywhere(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_node first = heap->first;
	int err;

	if (unlikely(heap->is_bound) && node->deadline <= first.deadline) {
		heap->first = *node;
		heap->is_bound = false;
	} else if (!heap->is_bound && node_less(node, &first)) {
		err = insert(heap, &first);
		if (unlikely(err))
			return err;
		heap->first = *node;
	} else {
		err = insert(heap, node);
		if (unlikely(err))
			return err;
	}
	heap->nr++;
	return 0;
}

static int radix_push(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_radix_state *s = &heap->radix;
	int err;

	if (unlikely(!heap->nr)) {
		heap->first = *node;
		heap->is_bound = false;
		heap->nr = 1;
		return 0;
	}
	if (unlikely(heap->nr == ~0U))
		return -ENOSPC;
	if (count_work(s)) {
		err = take_step(heap);
		if (unlikely(err))
			return err;
	}
	/* Most nodes are far. */
	if (likely(s->tables && node->deadline >= s->front &&
		   node->deadline > heap->first.deadline &&
		   radix_push_in_room(heap, node))) {
		heap->nr++;
		return 0;
	}
	return push_anywhere(heap, node);
}

static int radix_pop(struct bheap *heap)
{
	struct next next;
	int err;

	if (core_broken(!heap->is_bound))
		return -EIO;
	if (heap->nr == 1) {
		heap->nr = 0;
		/* The far part is empty. A missing page may have kept its tables. */
		if (unlikely(heap->radix.tables))
			radix_release(heap);
		return 0;
	}
	err = do_work(heap);
	if (!err)
		err = find_next(heap, &next);
	if (unlikely(err))
		return err;
	heap->nr--;
	take_next(heap, &next);
	return 0;
}

static u32 radix_next(const struct bheap *heap, u64 last, u32 max,
		      const struct bheap_node **nodesp)
{
	const struct bheap_radix_state *s = &heap->radix;
	const struct bheap_node *run, *near;

	if (s->run_at == s->run_nr)
		return 0;
	run = core_page_peek(heap->pages, RADIX_RUN);
	if (unlikely(!run))
		return 0;
	if (s->near) {
		near = core_page_peek(heap->pages, RADIX_NEAR);
		if (unlikely(!near))
			return 0;
		near += insert_heap_least(near, 0, s->near);
		last = near->deadline < last ? near->deadline : last;
	}
	if (s->tables && s->far_from < last)
		last = s->far_from;
	run += s->run_at;
	max = s->run_nr - s->run_at < max ? s->run_nr - s->run_at : max;
	*nodesp = run;
	return runs_count(run, max, last);
}

static int radix_take(struct bheap *heap, u32 nr)
{
	struct bheap_radix_state *s = &heap->radix;
	const struct bheap_node *run = radix_nodes(heap, RADIX_RUN);
	u32 paid = 0, last = nr - 1;
	int err = 0;

	if (unlikely(!run))
		return heap->pages->error;
	/* No step in the background touches the run. */
	while (paid < last && has_work(s)) {
		err = do_work(heap);
		if (unlikely(err)) {
			last = paid;
			break;
		}
		paid++;
	}
	s->work += last - paid;
	if (last) {
		heap->first = run[s->run_at + last - 1];
		s->run_at += last;
		heap->nr -= last;
		if (!s->tables)
			radix_set_pages(heap);
	}
	if (!err)
		err = radix_pop(heap);
	return err ? (int)last ?: err : (int)nr;
}

static int radix_replace(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_radix_state *s = &heap->radix;
	struct next next;
	int err;

	if (core_broken(!heap->is_bound))
		return -EIO;
	err = do_work(heap);
	if (!err)
		err = find_next(heap, &next);
	if (unlikely(err))
		return err;
	if ((!next.node || !node_less(next.node, node)) &&
	    (!s->tables || node->deadline <= s->far_from)) {
		heap->first = *node;
		return 0;
	}
	err = insert(heap, node);
	/* The near part may have changed. */
	if (!err)
		err = find_next(heap, &next);
	if (unlikely(err))
		return err;
	take_next(heap, &next);
	return 0;
}

static int radix_find_first(struct bheap *heap, bheap_review_t *review,
			    bheap_ahead_t *ahead, void *context)
{
	struct next next;
	int err = find_next(heap, &next);

	if (unlikely(err))
		return err;
	/* The next may be before the front: if an error followed the last step,
	 * or if there was no far part in between.
	 */
	if (heap->radix.tables && radix_far_nr(heap) &&
	    (!next.node || next.node->deadline >= heap->radix.front)) {
		err = radix_advance(heap, review, ahead, context);
		if (!err)
			err = find_next(heap, &next);
		if (unlikely(err))
			return err;
	}
	if (heap->radix.tables && !radix_far_nr(heap))
		radix_release(heap);
	if (!heap->nr) {
		heap->is_bound = false;
		return 1;
	}
	take_next(heap, &next);
	return !heap->is_bound;
}

static void radix_top(const struct bheap *heap, bheap_ahead_t *ahead,
		      void *context)
{
	const struct bheap_radix_state *s = &heap->radix;
	const struct bheap_node *page;
	u32 i;

	if (s->run_at < s->run_nr) {
		page = core_page_peek(heap->pages, RADIX_RUN);
		i = s->run_at + SOON_AHEAD;
		if (page && i < s->run_nr)
			ahead(context, page + i, BHEAP_SOON);
	}
	page = s->near ? core_page_peek(heap->pages, RADIX_NEAR) : NULL;
	for (i = 0; page && i < s->near && i < INSERT_HEAP_GROUP; i++)
		ahead(context, page + i, BHEAP_SOON);
}

/*
 * A chain has a last page, others are half full. So are the chains of two
 * buckets a level more than there are tables, and the page that is moved.
 */
static u32 radix_pages_max(u64 nodes)
{
	u32 tables = radix_tables_max(nodes), blocks;
	u32 chains = nodes / (NODES / 2) + FAN * tables + 2 * LEVELS + 4;

	blocks = chains / (BLOCK - BLOCK_FIXED) + 1;
	if (blocks < tables / TABLES_PER_BLOCK + 1)
		blocks = tables / TABLES_PER_BLOCK + 1;
	/* Free pages are at most an eighth, and a page to which the last moves. */
	blocks += blocks / 4 + 16 / (BLOCK - BLOCK_FIXED) + 1;
	return RADIX_BLOCKS + blocks * BLOCK;
}

const struct bheap_layout bheap_radix = {
	.name = "radix",
	.push = radix_push,
	.pop = radix_pop,
	.replace = radix_replace,
	.find_first = radix_find_first,
	.next = radix_next,
	.take = radix_take,
	.top = radix_top,
	.sweep = radix_sweep,
	.validate = radix_validate,
	.pages_max = radix_pages_max,
};
