// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Subtree pages: Kamp's B-heap, aware of cache lines inside the page.
 *
 * P.-H. Kamp, "You're Doing It Wrong", ACM Queue 8 (2010). Pages are filled
 * vertically, so a walk up or down the heap stays in a page for several levels.
 * A page entered from above begins with the siblings that are compared there,
 * side by side.
 *
 * Here four siblings share a cache line of four 16-byte nodes. A page of N
 * nodes holds N / 4 such groups. Element q of a page has group q + 1 of the
 * same page as its children if that group exists (q < INNER). Each of the other
 * OUTER elements has a page of its own below it, and group 0 of that page as
 * its children:
 *
 *	page p, element q >= INNER  ->  page p * OUTER + (q - INNER) + 1
 *
 * With 4 KiB pages N = 256, INNER = 63, OUTER = 193. The heap's first node
 * stands outside the pages (struct bheap); its children are group 0 of page 0.
 * Positions count through the pages from 0. A parent's position is always less
 * than its children's, so any number of positions from 0 makes a heap.
 *
 * Every change first walks its path and collects pointers, and only then moves
 * nodes. A page that is missing leaves the heap unchanged. "Node" is a struct
 * bheap_node, @pos its position, @page a page's number, @elem the position
 * within the page.
 */
#include "bheap.h"

#define NODES		BHEAP_NODES_PER_PAGE
#define GROUP		4U
#define INNER		(NODES / GROUP - 1)
#define OUTER		(NODES - INNER)
#define SWEEP_AHEAD	8U

/* Levels: 16 for 2^30 nodes in 4 KiB pages, 15 in 64-byte pages. */
#define LEVELS_MAX	24

/* The nodes along a path, from its start. */
struct path {
	struct bheap_node *node[LEVELS_MAX];
	u32 nr;
};

static inline bool node_less(const struct bheap_node *a,
			     const struct bheap_node *b)
{
	return a->deadline < b->deadline;
}

static inline struct bheap_node *page_get(const struct bheap *heap, u32 page)
{
	return core_page(heap->pages, page);
}

/* Returns the number of nodes in the pages. */
static inline u32 positions(const struct bheap *heap)
{
	return heap->nr ? heap->nr - 1 : 0;
}

static void set_nr(struct bheap *heap, u32 nr)
{
	heap->nr = nr;
	heap->pages->nr = (positions(heap) + NODES - 1) / NODES;
}

/* Returns the position of the parent. Not for group 0 of page 0, whose parent
 * is the heap's first node.
 */
static inline u32 parent_of(u32 pos)
{
	u32 page = pos / NODES, elem = pos % NODES;

	if (elem >= GROUP)
		return pos - elem + elem / GROUP - 1;
	page--;
	return page / OUTER * NODES + INNER + page % OUTER;
}

/* Returns the position of the first child; may lie beyond any position in use.
 */
static inline u64 child_of(u32 pos)
{
	u32 page = pos / NODES, elem = pos % NODES;

	if (elem < INNER)
		return pos - elem + (elem + 1) * GROUP;
	return ((u64)page * OUTER + (elem - INNER) + 1) * NODES;
}

/* Prefetches the children of the four siblings from @pos on. */
static inline void prefetch_children(const struct bheap *heap, u32 pos,
				     const struct bheap_node *group, u32 end)
{
	u32 elem = pos % NODES, i;
	u64 child;
	void *page;

	if (elem + GROUP <= INNER) {
		const struct bheap_node *next = group - elem + (elem + 1) * GROUP;

		for (i = 0; i < GROUP; i++)
			prefetch(next + i * GROUP);
		return;
	}
	for (i = 0; i < GROUP; i++) {
		child = child_of(pos + i);
		if (child >= end)
			return;
		page = core_page_peek(heap->pages, child / NODES);
		if (page)
			prefetch((struct bheap_node *)page + child % NODES);
	}
}

/*
 * Walks down from below the hole at @pos (or from the top: @pos < 0) while a
 * child is less than @node, among the positions below @end. Adds one pointer a
 * level to @path.
 */
static int walk_down(struct bheap *heap, struct path *path, s64 pos, u32 end,
		     const struct bheap_node *node)
{
	u64 child = pos < 0 ? 0 : child_of(pos);
	struct bheap_node *page, *group, *least;
	u32 i, nr;

	while (child < end) {
		page = page_get(heap, child / NODES);
		if (unlikely(!page))
			return heap->pages->error;
		group = page + child % NODES;
		prefetch_children(heap, child, group, end);

		nr = end - child < GROUP ? end - child : GROUP;
		least = group;
		for (i = 1; i < nr; i++)
			if (node_less(group + i, least))
				least = group + i;
		if (!node_less(least, node))
			break;
		if (core_broken(path->nr < LEVELS_MAX))
			return -EIO;
		path->node[path->nr++] = least;
		child = child_of(child + (least - group));
	}
	return 0;
}

/*
 * Walks up from @pos while the parent is greater than @node. @path begins with
 * the pointer to @pos itself. Never reaches the heap's first node; the caller
 * has checked that it is no greater.
 */
static int walk_up(struct bheap *heap, struct path *path, u32 pos,
		   const struct bheap_node *node)
{
	u32 number = pos / NODES;
	struct bheap_node *page = page_get(heap, number), *parent;

	if (unlikely(!page))
		return heap->pages->error;
	path->node[path->nr++] = page + pos % NODES;

	while (pos >= GROUP) {
		pos = parent_of(pos);
		if (pos / NODES != number) {
			number = pos / NODES;
			page = page_get(heap, number);
			if (unlikely(!page))
				return heap->pages->error;
		}
		parent = page + pos % NODES;
		if (!node_less(node, parent))
			break;
		if (core_broken(path->nr < LEVELS_MAX))
			return -EIO;
		path->node[path->nr++] = parent;
	}
	return 0;
}

/* Moves every node of the path one place towards its start, overwriting the
 * first, and puts @node in the last.
 */
static void shift_path(const struct path *path, const struct bheap_node *node)
{
	u32 i;

	for (i = 0; i + 1 < path->nr; i++)
		*path->node[i] = *path->node[i + 1];
	*path->node[i] = *node;
}

static int subtree_push(struct bheap *heap, const struct bheap_node *node)
{
	struct path path __uninitialized;
	struct bheap_node first = heap->first;
	int err;

	path.nr = 0;
	if (!heap->nr) {
		heap->first = *node;
		set_nr(heap, 1);
		return 0;
	}
	if (unlikely(heap->nr == ~0U))
		return -ENOSPC;

	/* A node that does not come first goes into the pages. */
	if (node_less(node, &first)) {
		err = walk_up(heap, &path, positions(heap), &first);
		if (err)
			return err;
		heap->first = *node;
		shift_path(&path, &first);
	} else {
		err = walk_up(heap, &path, positions(heap), node);
		if (err)
			return err;
		shift_path(&path, node);
	}
	set_nr(heap, heap->nr + 1);
	return 0;
}

/* Replaces the first node by @node, among positions below @end. */
static int replace_first(struct bheap *heap, const struct bheap_node *node,
			 u32 end)
{
	struct path path __uninitialized;
	int err;

	path.node[0] = &heap->first;
	path.nr = 1;
	err = walk_down(heap, &path, -1, end, node);
	if (err)
		return err;
	shift_path(&path, node);
	return 0;
}

static int subtree_replace(struct bheap *heap, const struct bheap_node *node)
{
	return replace_first(heap, node, positions(heap));
}

static int subtree_pop(struct bheap *heap)
{
	struct bheap_node *page, last;
	u32 end;
	int err;

	if (heap->nr > 1) {
		end = positions(heap) - 1;
		page = page_get(heap, end / NODES);
		if (unlikely(!page))
			return heap->pages->error;
		last = page[end % NODES];
		err = replace_first(heap, &last, end);
		if (err)
			return err;
	}
	set_nr(heap, heap->nr - 1);
	return 0;
}

/* Removes the node at @pos by moving the last node there. Sets *@upp if that
 * node went up: a node from above is then at @pos.
 */
static int remove_at(struct bheap *heap, u32 pos, bool *upp)
{
	u32 end = positions(heap) - 1;
	struct path path __uninitialized;
	struct bheap_node *page, last;
	int err;

	path.nr = 0;
	*upp = false;
	if (pos < end) {
		page = page_get(heap, end / NODES);
		if (unlikely(!page))
			return heap->pages->error;
		last = page[end % NODES];

		err = walk_up(heap, &path, pos, &last);
		if (err)
			return err;
		*upp = path.nr > 1;
		if (!*upp) {
			err = walk_down(heap, &path, pos, end, &last);
			if (err)
				return err;
		}
		shift_path(&path, &last);
	}
	set_nr(heap, heap->nr - 1);
	return 0;
}

/*
 * Checks from the last position to the first, so that the node that fills a
 * hole has been checked. A push meanwhile can move one node past the sweep's
 * position; the next sweep finds it.
 */
static bool subtree_sweep(struct bheap *heap, u32 steps, bheap_stale_t *stale,
			  bheap_ahead_t *ahead, void *context)
{
	struct bheap_node *page = NULL;
	u32 pos, number = 0;
	bool up;

	if (!heap->sweep || heap->sweep > positions(heap))
		heap->sweep = positions(heap);

	while (heap->sweep && steps--) {
		pos = heap->sweep - 1;
		if (!page || pos / NODES != number) {
			number = pos / NODES;
			page = page_get(heap, number);
			if (!page)
				return true;
		}
		if (pos % NODES >= SWEEP_AHEAD)
			ahead(context, page + pos % NODES - SWEEP_AHEAD,
			      BHEAP_SOON);

		if (stale(context, page + pos % NODES)) {
			if (remove_at(heap, pos, &up))
				return true;
			if (up)
				continue;
		}
		heap->sweep--;
	}
	return heap->sweep;
}

static void subtree_top(const struct bheap *heap, bheap_ahead_t *ahead,
			void *context)
{
	const struct bheap_node *page;
	u32 i, nr = positions(heap);

	if (!nr)
		return;
	page = core_page_peek(heap->pages, 0);
	if (!page)
		return;
	if (nr > GROUP)
		nr = GROUP;
	for (i = 0; i < nr; i++)
		ahead(context, page + i, BHEAP_SOON);
}

static int subtree_validate(struct bheap *heap, bheap_visit_t *visit,
			    void *context)
{
	const struct bheap_node *page, *parent;
	struct bheap_node node;
	u32 pos;

	if (visit && heap->nr)
		visit(context, &heap->first);
	for (pos = 0; pos < positions(heap); pos++) {
		page = page_get(heap, pos / NODES);
		if (!page)
			return heap->pages->error;
		node = page[pos % NODES];
		if (visit)
			visit(context, page + pos % NODES);
		if (pos < GROUP) {
			parent = &heap->first;
		} else {
			u32 above = parent_of(pos);

			if (above >= pos ||
			    child_of(above) != pos / GROUP * GROUP)
				return -EIO;
			page = page_get(heap, above / NODES);
			if (!page)
				return heap->pages->error;
			parent = page + above % NODES;
		}
		if (node_less(&node, parent))
			return -EIO;
	}
	return 0;
}

static u32 subtree_pages_max(u64 nodes)
{
	return nodes / NODES + 1;
}

const struct bheap_layout bheap_subtree = {
	.name = "subtree",
	.push = subtree_push,
	.pop = subtree_pop,
	.replace = subtree_replace,
	.top = subtree_top,
	.sweep = subtree_sweep,
	.validate = subtree_validate,
	.pages_max = subtree_pages_max,
};
