// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The tree of sorted pages: how pages rise and the hole sinks.
 */
#include "bheap_sorted_tree.h"
#include "insert_heap.h"
#include "runs.h"

#define NODES		SORTED_NODES

/* Nodes of one cache line. */
#define LINE		4U

/* Levels for 2^31 nodes at four to a page. */
#define LEVELS_MAX	32

/**
 * struct path - the path of a rising page
 * @page: the empty page, then the pages above that change
 * @nr: how many
 * @taken: nodes already taken from the last page
 * @scratch: undefined before and after
 */
struct path {
	struct bheap_node *page[LEVELS_MAX];
	u32 nr;
	u32 taken;
	struct bheap_node *scratch;
};

/* Gets the pages that a page whose first node is @least passes when rising from
 * @pos.
 */
static int find_path(struct bheap *heap, struct path *path, u32 pos,
		     const struct bheap_node *least)
{
	struct bheap_node *page;

	path->scratch = sorted_scratch(heap);
	if (unlikely(!path->scratch))
		return heap->pages->error;
	page = sorted_tree_page(heap, pos);
	if (unlikely(!page))
		return heap->pages->error;
	path->page[0] = page;
	path->nr = 1;
	path->taken = 0;

	/* The node merged into it is greater than all nodes further up. */
	while (pos /= 2) {
		page = sorted_tree_page(heap, pos);
		if (unlikely(!page))
			return heap->pages->error;
		if (!node_less(least, page + NODES - 1))
			break;
		if (core_broken(path->nr < LEVELS_MAX))
			return -EIO;
		path->page[path->nr++] = page;
		if (pos == 1)
			path->taken = heap->sorted.head;
	}
	return 0;
}

/*
 * Lets page @x rise, which is outside the tree. Leaves @x and @y as scratch.
 * After a merge the greater half is in the page below, the lesser half in @x or
 * @y in turn, and the parent's page is empty.
 */
static void raise_page(const struct path *path, struct bheap_node *x,
		       struct bheap_node *y)
{
	struct bheap_node *last = path->page[path->nr - 1], *swap;
	u32 i;

	/* Nodes already taken stay in place, before all others. */
	for (i = 0; i < path->taken; i++)
		last[i].deadline = 0;

	for (i = 1; i < path->nr; i++) {
		runs_merge(path->page[i], x, NODES, y, path->page[i - 1]);
		swap = x;
		x = y;
		y = swap;
	}
	memcpy(last, x, CORE_PAGE_SIZE);
}

/* Fills the hole, which has no children, with the surplus or the last page. */
static int fill_leaf(struct bheap *heap)
{
	struct bheap_sorted_state *s = &heap->sorted;
	bool surplus = sorted_has_surplus(s);
	struct bheap_node *page;
	struct path path;
	int err;

	if (surplus || s->hole != s->tree) {
		page = surplus ? sorted_surplus(heap) :
		       sorted_tree_page(heap, s->tree);
		if (unlikely(!page))
			return heap->pages->error;
		err = find_path(heap, &path, s->hole, page);
		if (unlikely(err))
			return err;
		raise_page(&path, page, path.scratch);
	}
	s->hole = 0;
	if (surplus)
		s->run -= NODES;
	else
		s->tree--;
	sorted_set_pages(heap);
	return 0;
}

/* Prefetches the children of @pos, which are merged next. */
static void prefetch_children(const struct bheap *heap, u32 pos)
{
	u64 child = 2ULL * pos;
	u32 i;

	for (i = 0; i < 2 && child + i <= heap->sorted.tree; i++) {
		struct bheap_node *page = core_page_peek(heap->pages,
				       SORTED_BEFORE_TREE - 1 + child + i);

		if (!page)
			continue;
		prefetch(page);
		prefetch(page + LINE);
		prefetch(page + NODES - 1);
	}
}

int sorted_tree_sink(struct bheap *heap)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *scratch, *hole, *low, *high;
	u64 left = 2ULL * s->hole;
	u32 next = left;

	/* An only child is the last page, and would itself fill the hole. */
	if (left > s->tree || (left == s->tree && !sorted_has_surplus(s)))
		return fill_leaf(heap);

	scratch = sorted_scratch(heap);
	if (unlikely(!scratch))
		return heap->pages->error;
	hole = sorted_tree_page(heap, s->hole);
	if (unlikely(!hole))
		return heap->pages->error;
	low = sorted_tree_page(heap, left);
	if (unlikely(!low))
		return heap->pages->error;
	if (left == s->tree) {
		memcpy(hole, low, CORE_PAGE_SIZE);
		s->hole = left;
		return 0;
	}
	high = sorted_tree_page(heap, left + 1);
	if (unlikely(!high))
		return heap->pages->error;

	/* The greater half stays where the greatest node is: it is no greater
	 * than any node below.
	 */
	if (node_less(high + NODES - 1, low + NODES - 1)) {
		struct bheap_node *page = low;

		low = high;
		high = page;
		next = left + 1;
	}
	if (node_less(high, low + NODES - 1)) {
		runs_merge(low, high, NODES, hole, scratch);
		memcpy(high, scratch, CORE_PAGE_SIZE);
	} else {
		memcpy(hole, low, CORE_PAGE_SIZE);
	}

	s->hole = next;
	prefetch_children(heap, next);
	return 0;
}

void sorted_tree_vacate(struct bheap *heap, u32 pos)
{
	/* The new first page is whole. */
	if (pos == 1)
		heap->sorted.head = 0;
	if (pos == heap->sorted.tree && !sorted_has_surplus(&heap->sorted)) {
		heap->sorted.tree--;
		return;
	}
	heap->sorted.hole = pos;
	prefetch_children(heap, pos);
}

int sorted_tree_fill_hole(struct bheap *heap)
{
	int err;

	while (heap->sorted.hole) {
		err = sorted_tree_sink(heap);
		if (unlikely(err))
			return err;
	}
	return 0;
}

int sorted_tree_append(struct bheap *heap, struct bheap_node *page,
		       const struct bheap_node *least)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *sorted;
	struct path path;
	int err;

	err = sorted_tree_fill_hole(heap);
	if (unlikely(err))
		return err;
	err = find_path(heap, &path, s->tree + 1, least);
	if (unlikely(err))
		return err;
	sorted = runs_sort_page(page, path.scratch);
	raise_page(&path, sorted, sorted == page ? path.scratch : page);
	s->tree++;
	sorted_set_pages(heap);
	return 0;
}

int sorted_append_insert_heap(struct bheap *heap)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *page = sorted_insert_heap(heap);
	int err;

	if (unlikely(!page))
		return heap->pages->error;
	/* A sweep needs these two. It frees memory, so they are made before
	 * there is none.
	 */
	if (!s->tree && (!sorted_run(heap) || !sorted_surplus(heap)))
		return heap->pages->error;
	err = sorted_tree_append(heap, page,
				 page + insert_heap_least(page, 0, NODES));
	if (unlikely(err))
		return err;
	s->inserted = 0;
	s->unswept = 0;
	return 0;
}

static int validate_page(struct bheap *heap, u32 pos,
			 const struct bheap_node *from,
			 const struct bheap_node *end)
{
	const struct bheap_node *parent;
	u32 above = pos / 2;

	if (from >= end || !runs_is_sorted(from, end))
		return -EIO;
	/* If the hole is above, compare with the page above the hole. */
	if (above && above == heap->sorted.hole)
		above /= 2;
	if (!above)
		return 0;
	parent = sorted_tree_page(heap, above);
	if (!parent)
		return heap->pages->error;
	return node_less(from, parent + NODES - 1) ? -EIO : 0;
}

int sorted_tree_validate(struct bheap *heap,
			 void (*count)(void *context,
				       const struct bheap_node *from,
				       const struct bheap_node *end),
			 void *context)
{
	const struct bheap_sorted_state *s = &heap->sorted;
	const struct bheap_node *page, *from;
	u32 pos;
	int err;

	if (s->hole > s->tree || s->head >= NODES)
		return -EIO;
	for (pos = 1; pos <= s->tree; pos++) {
		if (pos == s->hole)
			continue;
		page = sorted_tree_page(heap, pos);
		if (!page)
			return heap->pages->error;
		from = page + (pos == 1 ? s->head : 0);
		err = validate_page(heap, pos, from, page + NODES);
		if (err)
			return err;
		count(context, from, page + NODES);
	}
	return 0;
}
