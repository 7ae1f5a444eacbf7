// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The tree of sorted pages: how pages rise and the hole sinks.
 */
#include "bheap_sorted_tree.h"
#include "runs.h"

#define NODES		SORTED_NODES

/* Nodes of one cache line. */
#define LINE		4U

/* Pages from the first to the last of 2^31 nodes, four to a page. */
#define LEVELS_MAX	32

/*
 * Page @x, which is in no place of the tree, goes to the empty place @pos and
 * then up. @x is left as scratch.
 *
 * After a merge the greater half is in the place below. The lesser half stays
 * in @x and the parent's page is empty, until at the end it goes to that page.
 */
static int rise(struct bheap *heap, u32 pos, struct bheap_node *x)
{
	struct bheap_node *path[LEVELS_MAX], *page;
	u32 i, up, nr = 0, skip = 0;
	struct runs runs;

	page = sorted_tree_page(heap, pos);
	if (unlikely(!page))
		return heap->pages->error;
	path[nr++] = page;

	/* What is merged into @x is greater than all that is further up. */
	for (up = pos / 2; up; up /= 2) {
		page = sorted_tree_page(heap, up);
		if (unlikely(!page))
			return heap->pages->error;
		if (!node_less(x, page + NODES - 1))
			break;
		if (core_broken(nr < LEVELS_MAX))
			return -EIO;
		path[nr++] = page;
		if (up == 1)
			skip = heap->sorted.head;
	}

	if (nr == 1)
		memcpy(path[0], x, CORE_PAGE_SIZE);
	for (i = 1; i < nr; i++) {
		bool last = i + 1 == nr;

		page = path[i] + (last ? skip : 0);
		runs_init(&runs, page, path[i] + NODES, x, x + NODES);
		runs_take_greatest(&runs, path[i - 1] + NODES, NODES);
		runs_take_greatest(&runs, last ? path[i] + NODES : x + NODES,
				   runs_nr(&runs));
		/* The rest of a page whose beginning was taken is in place. */
	}
	return 0;
}

/* Fill the hole, which has no children, with the last page. */
static int fill(struct bheap *heap)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *last;
	int err;

	if (s->hole != s->tree) {
		last = sorted_tree_page(heap, s->tree);
		if (unlikely(!last))
			return heap->pages->error;
		err = rise(heap, s->hole, last);
		if (unlikely(err))
			return err;
	}
	s->hole = 0;
	s->tree--;
	sorted_set_pages(heap);
	return 0;
}

/* The children of @pos will be merged next. */
static void prefetch_children(const struct bheap *heap, u32 pos)
{
	u64 child = 2ULL * pos;
	u32 i;

	for (i = 0; i < 2 && child + i <= heap->sorted.tree; i++) {
		struct bheap_node *page = core_page_peek(heap->pages,
							 1 + child + i);

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
	struct bheap_node *hole, *low, *high;
	u64 left = 2ULL * s->hole;
	struct runs runs;
	u32 next = left;

	if (left >= s->tree)
		return fill(heap);

	hole = sorted_tree_page(heap, s->hole);
	if (unlikely(!hole))
		return heap->pages->error;
	low = sorted_tree_page(heap, left);
	if (unlikely(!low))
		return heap->pages->error;
	high = sorted_tree_page(heap, left + 1);
	if (unlikely(!high))
		return heap->pages->error;

	/* The greater half stays where the greatest is: no greater than what
	 * is below there.
	 */
	if (node_less(high + NODES - 1, low + NODES - 1)) {
		struct bheap_node *page = low;

		low = high;
		high = page;
		next = left + 1;
	}
	runs_init(&runs, low, low + NODES, high, high + NODES);
	runs_take_least(&runs, hole, NODES);
	runs_take_least(&runs, high, NODES);

	s->hole = next;
	prefetch_children(heap, next);
	return 0;
}

void sorted_tree_vacate(struct bheap *heap, u32 pos)
{
	/* What comes to be the first page will be whole. */
	if (pos == 1)
		heap->sorted.head = 0;
	if (pos == heap->sorted.tree) {
		heap->sorted.tree--;
		return;
	}
	heap->sorted.hole = pos;
	prefetch_children(heap, pos);
}

int sorted_tree_settle(struct bheap *heap)
{
	int err;

	while (heap->sorted.hole) {
		err = sorted_tree_sink(heap);
		if (unlikely(err))
			return err;
	}
	return 0;
}

int sorted_tree_append(struct bheap *heap, struct bheap_node *page)
{
	struct bheap_sorted_state *s = &heap->sorted;
	struct bheap_node *last;
	int err;

	err = sorted_tree_settle(heap);
	if (unlikely(err))
		return err;
	last = sorted_tree_page(heap, s->tree + 1);
	if (unlikely(!last))
		return heap->pages->error;
	runs_sort_page(page, last);
	err = rise(heap, s->tree + 1, page);
	if (unlikely(err))
		return err;
	s->tree++;
	sorted_set_pages(heap);
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
	/* Above the hole is what stands over the pages below it. */
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
