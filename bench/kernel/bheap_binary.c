// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The binary heap of J. W. J. Williams, "Algorithm 232: Heapsort", CACM 7
 * (1964), in one array over consecutive pages: the children of n are 2n and 2n
 * + 1. It ignores page boundaries: below the first page nearly each level is on
 * a page of its own.
 *
 * Node 1 stands outside the pages (struct bheap), node n at element n of the
 * array, so that siblings share a cache line; elements 0 and 1 are unused.
 * Every change first walks its path and collects pointers, and only then moves
 * nodes, as core/pages.h requires.
 */
#include "bheap.h"
#include "bheap_binary.h"

#define NODES		BHEAP_NODES_PER_PAGE
#define LEVELS_MAX	32
#define SWEEP_AHEAD	8U

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

/* Returns node @n; NULL with pages->error set. */
static inline struct bheap_node *node_get(struct bheap *heap, u32 n)
{
	struct bheap_node *page;

	if (n == 1)
		return &heap->first;
	page = core_page(heap->pages, n / NODES);
	return likely(page) ? page + n % NODES : NULL;
}

static void set_nr(struct bheap *heap, u32 nr)
{
	heap->nr = nr;
	heap->pages->nr = nr > 1 ? nr / NODES + 1 : 0;
}

/*
 * Walks down from below the hole at @n while a child is less than @node, among
 * nodes up to @last. Adds one pointer a level to @path.
 */
static int walk_down(struct bheap *heap, struct path *path, u32 n, u32 last,
		     const struct bheap_node *node)
{
	struct bheap_node *child;

	for (n *= 2; n <= last; n *= 2) {
		child = node_get(heap, n);
		if (unlikely(!child))
			return heap->pages->error;
		/* Siblings share a page: an even element and the next. */
		if (n < last && node_less(child + 1, child)) {
			child++;
			n++;
		}
		if (!node_less(child, node))
			break;
		path->node[path->nr++] = child;
	}
	return 0;
}

/*
 * Walks up from @n while the parent is greater than @node. @path begins with
 * the pointer to @n itself.
 */
static int walk_up(struct bheap *heap, struct path *path, u32 n,
		   const struct bheap_node *node)
{
	struct bheap_node *at = node_get(heap, n);

	while (at) {
		path->node[path->nr++] = at;
		n /= 2;
		if (!n)
			return 0;
		at = node_get(heap, n);
		if (at && !node_less(node, at))
			return 0;
	}
	return heap->pages->error;
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

static int binary_push(struct bheap *heap, const struct bheap_node *node)
{
	struct path path = { .nr = 0 };
	int err;

	if (unlikely(heap->nr >= 1U << (LEVELS_MAX - 1)))
		return -ENOSPC;
	err = walk_up(heap, &path, heap->nr + 1, node);
	if (err)
		return err;
	shift_path(&path, node);
	set_nr(heap, heap->nr + 1);
	return 0;
}

/* Replaces node @n by @node, among nodes up to @last. *@up: it went up, and a
 * node from above is now at @n.
 */
static int put_at(struct bheap *heap, u32 n, u32 last,
		  const struct bheap_node *node, bool *up)
{
	struct path path = { .nr = 0 };
	int err;

	err = walk_up(heap, &path, n, node);
	if (err)
		return err;
	*up = path.nr > 1;
	if (!*up) {
		err = walk_down(heap, &path, n, last, node);
		if (err)
			return err;
	}
	shift_path(&path, node);
	return 0;
}

/* Removes node @n by moving the last one there. */
static int remove_at(struct bheap *heap, u32 n, bool *up)
{
	struct bheap_node *last, node;
	int err;

	*up = false;
	if (n < heap->nr) {
		last = node_get(heap, heap->nr);
		if (unlikely(!last))
			return heap->pages->error;
		node = *last;
		err = put_at(heap, n, heap->nr - 1, &node, up);
		if (err)
			return err;
	}
	set_nr(heap, heap->nr - 1);
	return 0;
}

static int binary_pop(struct bheap *heap)
{
	bool up;

	return remove_at(heap, 1, &up);
}

static int binary_replace(struct bheap *heap, const struct bheap_node *node)
{
	bool up;

	return put_at(heap, 1, heap->nr, node, &up);
}

/* Checks from the last node to the second, so that the node that fills a hole
 * has been checked.
 */
static bool binary_sweep(struct bheap *heap, u32 steps, bheap_stale_t *stale,
			 bheap_ahead_t *ahead, void *context)
{
	struct bheap_node *node;
	bool up;

	if (!heap->sweep || heap->sweep > heap->nr)
		heap->sweep = heap->nr;
	while (heap->sweep > 1 && steps--) {
		node = node_get(heap, heap->sweep);
		if (!node)
			return true;
		if (heap->sweep % NODES >= SWEEP_AHEAD &&
		    heap->sweep > SWEEP_AHEAD + 1)
			ahead(context, node - SWEEP_AHEAD, BHEAP_SOON);
		if (stale(context, node)) {
			if (remove_at(heap, heap->sweep, &up))
				return true;
			if (up)
				continue;
		}
		heap->sweep--;
	}
	if (heap->sweep > 1)
		return true;
	heap->sweep = 0;
	return false;
}

static void binary_top(const struct bheap *heap, bheap_ahead_t *ahead,
		       void *context)
{
	const struct bheap_node *page;
	u32 n;

	page = heap->nr > 1 ? core_page_peek(heap->pages, 0) : NULL;
	for (n = 2; page && n <= 3 && n <= heap->nr; n++)
		ahead(context, page + n, BHEAP_SOON);
}

static int binary_validate(struct bheap *heap, bheap_visit_t *visit,
			   void *context)
{
	struct bheap_node *node, *parent;
	struct bheap_node copy;
	u32 n;

	for (n = 1; n <= heap->nr; n++) {
		node = node_get(heap, n);
		if (!node)
			return heap->pages->error;
		if (visit)
			visit(context, node);
		if (n == 1)
			continue;
		copy = *node;
		parent = node_get(heap, n / 2);
		if (!parent)
			return heap->pages->error;
		if (node_less(&copy, parent))
			return -EIO;
	}
	return 0;
}

static u32 binary_pages_max(u64 nodes)
{
	return nodes / BHEAP_NODES_PER_PAGE + 1;
}

const struct bheap_layout bheap_binary = {
	.name = "binary",
	.push = binary_push,
	.pop = binary_pop,
	.pages_max = binary_pages_max,
	.replace = binary_replace,
	.top = binary_top,
	.sweep = binary_sweep,
	.validate = binary_validate,
};
