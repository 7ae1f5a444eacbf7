/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The B-heap: a heap of timers whose nodes are laid out by pages.
 *
 * A node carries its key, so that comparing touches nothing else, and the heap
 * never tells anybody where a node is: a timer that is cancelled or refreshed
 * leaves its node behind, stale, to be dropped when it surfaces or is swept.
 *
 * The layouts (bheap_layout) are interchangeable and share this contract.
 * Every function that can fail returns 0 or the pages' error and has then
 * neither added nor removed a node. Work is O(log n) a call unless said
 * otherwise. docs/bheap.md draws them and compares what they cost.
 */
#ifndef CORE_BHEAP_H
#define CORE_BHEAP_H

#include "core.h"
#include "pages.h"

#ifndef CORE_NODE_SMALL
struct bheap_node {
	u64 deadline;
	u32 slot;
	u32 stamp;	/* tells a slot's live node from its stale ones */
};
#else
/*
 * The paper's element has 8 bytes: for bench/paper, which compiles the layouts
 * alone.
 */
struct bheap_node {
	u32 deadline;
	u32 slot;
};
#endif

struct bheap_layout;

/**
 * struct bheap_sorted_state - what sorted pages keep besides their pages
 * @arrivals: nodes in the arrivals page
 * @tree: pages in the tree, the hole included
 * @head: nodes already taken from the tree's first page
 * @hole: the page of the tree that is empty and on its way down; 0 = none
 * @run: nodes left of the pages that were taken out for the sweep, the surplus
 *	included
 * @unswept: of @arrivals, those that the sweep has still to look at
 */
struct bheap_sorted_state {
	u32 arrivals;
	u32 tree;
	u32 head;
	u32 hole;
	u32 run;
	u32 unswept;
};

/**
 * struct bheap - a heap
 * @first: the least node, valid when @nr > 0: outside the pages, so that the
 *	next deadline is known without touching them
 * @nr: nodes, live and stale
 * @sweep: where the sweep goes on; 0 = no sweep under way
 * @pages: the other nodes
 * @layout: const after bheap_init()
 * @sorted: of the layout of that name; all zero in an empty heap
 */
struct bheap {
	struct bheap_node first;
	u32 nr;
	u32 sweep;
	struct core_pages *pages;
	const struct bheap_layout *layout;
	struct bheap_sorted_state sorted;
};

/* Whether a node no longer stands for its timer; says no when it cannot tell
 * for want of a page.
 */
typedef bool bheap_stale_t(void *context, const struct bheap_node *node);

/* How soon a node's timer will be looked at. A layout that knows long before
 * calls with each of them in turn, one that does not with BHEAP_SOON alone.
 */
enum bheap_when {
	BHEAP_FAR,	/* send for what tells where the timer is */
	BHEAP_SOON,	/* for the timer */
	BHEAP_NEXT,	/* for what the timer refers to */
};

/* Sends for what it takes to look at a node's timer. */
typedef void bheap_ahead_t(void *context, const struct bheap_node *node,
			   enum bheap_when when);

/* Is shown a node. */
typedef void bheap_visit_t(void *context, const struct bheap_node *node);

/**
 * struct bheap_layout - one way to lay nodes out in pages
 * @name: as configuration and reports have it
 * @push: add a node
 * @pop: remove the first
 * @replace: put another node in place of the first
 * @top: call @ahead for the nodes that may come first after the first
 * @sweep: look at up to @steps nodes, or at a page of them every so many steps,
 *	remove the stale ones among them; one sweep after another looks at every
 *	node that did not move meanwhile.
 *	Returns false when a sweep came to its end. Calls @ahead some nodes
 *	before @stale.
 * @validate: walk everything (unbounded; for tests and debugging) and show
 *	each node to @visit unless that is NULL: 0, a page's error, or -EIO
 *	where the layout's order is broken
 */
struct bheap_layout {
	const char *name;
	int (*push)(struct bheap *heap, const struct bheap_node *node);
	int (*pop)(struct bheap *heap);
	int (*replace)(struct bheap *heap, const struct bheap_node *node);
	void (*top)(const struct bheap *heap, bheap_ahead_t *ahead,
		    void *context);
	bool (*sweep)(struct bheap *heap, u32 steps, bheap_stale_t *stale,
		      bheap_ahead_t *ahead, void *context);
	int (*validate)(struct bheap *heap, bheap_visit_t *visit,
			void *context);
};

/* Kamp's B-heap: each page holds a subtree (bheap_subtree.c). */
extern const struct bheap_layout bheap_subtree;

/* A heap of pages, each of which is sorted (bheap_sorted.c). */
extern const struct bheap_layout bheap_sorted;

#define BHEAP_NODES_PER_PAGE	(CORE_PAGE_SIZE / (u32)sizeof(struct bheap_node))

/* Pages that a layout may use beyond those that its nodes would fill. */
#define BHEAP_PAGES_SPARE	5U

/* Most pages that @nodes nodes take in any layout. */
static inline u32 bheap_pages_max(u64 nodes)
{
	return nodes / BHEAP_NODES_PER_PAGE + 1 + BHEAP_PAGES_SPARE;
}

static inline void bheap_init(struct bheap *heap,
			      const struct bheap_layout *layout,
			      struct core_pages *pages)
{
	heap->nr = 0;
	heap->sweep = 0;
	heap->pages = pages;
	heap->layout = layout;
	memset(&heap->sorted, 0, sizeof(heap->sorted));
	pages->nr = 0;
}

static inline int bheap_push(struct bheap *heap, const struct bheap_node *node)
{
	return heap->layout->push(heap, node);
}

static inline int bheap_pop(struct bheap *heap)
{
	return heap->layout->pop(heap);
}

static inline int bheap_replace(struct bheap *heap,
				const struct bheap_node *node)
{
	return heap->layout->replace(heap, node);
}

#endif /* CORE_BHEAP_H */
