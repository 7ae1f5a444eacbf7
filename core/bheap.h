/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The B-heap: a heap of timers with nodes laid out by pages.
 *
 * A node carries its key, so comparing touches nothing else. The heap does not
 * report where a node is. Cancelling or refreshing a timer leaves its node
 * stale; the node is dropped when it reaches the top or is swept.
 *
 * The layouts (bheap_layout) are interchangeable and share this contract. A
 * function that fails returns the pages' error and has then neither added nor
 * removed a node; else it returns 0. Work is O(log n) a call unless stated
 * otherwise. docs/bheap.md draws the layouts and compares their cost.
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
 * The paper's 8-byte element, for bench/paper, which compiles the layouts
 * alone.
 */
struct bheap_node {
	u32 deadline;
	u32 slot;
};
#endif

struct bheap_layout;

/**
 * struct bheap_sorted_state - state of sorted pages outside the pages
 * @inserted: nodes in the insertion heap
 * @tree: pages in the tree, the hole included
 * @head: nodes already taken from the tree's first page
 * @hole: the tree's empty page, sinking; 0 = none
 * @run: nodes left of the swept pages, surplus included
 * @unswept: nodes of the insertion heap not yet swept
 */
struct bheap_sorted_state {
	u32 inserted;
	u32 tree;
	u32 head;
	u32 hole;
	u32 run;
	u32 unswept;
};

/**
 * struct bheap - a heap
 * @first: the least node, valid when @nr > 0
 * @nr: nodes, live and stale
 * @sweep: where the sweep continues; 0 = no sweep in progress
 * @pages: the other nodes
 * @layout: const after bheap_init()
 * @sorted: state of sorted pages; all zero if empty
 *
 * @first is outside the pages: reading the next deadline touches no page.
 */
struct bheap {
	struct bheap_node first;
	u32 nr;
	u32 sweep;
	struct core_pages *pages;
	const struct bheap_layout *layout;
	struct bheap_sorted_state sorted;
};

/* Returns whether a node is stale: no longer the node of its timer. Returns
 * false if a missing page prevents the check. The caller drops a stale node; if
 * that fails, asks again later.
 */
typedef bool bheap_stale_t(void *context, const struct bheap_node *node);

/* How soon a node's timer will be read. A layout that knows early passes each
 * value in turn; one that does not passes BHEAP_SOON alone.
 */
enum bheap_when {
	BHEAP_FAR,	/* prefetch the timer's address */
	BHEAP_SOON,	/* prefetch the timer */
	BHEAP_NEXT,	/* prefetch what the timer refers to */
};

/* Prefetches the memory that describes a node's timer. */
typedef void bheap_ahead_t(void *context, const struct bheap_node *node,
			   enum bheap_when when);

/* Receives one node. */
typedef void bheap_visit_t(void *context, const struct bheap_node *node);

/**
 * struct bheap_layout - one way to lay nodes out in pages
 * @name: its name in configuration and reports
 * @push: add a node
 * @pop: remove the first
 * @replace: replace the first by another node
 * @top: call @ahead for candidates for the next first
 * @sweep: check up to @steps nodes and remove stale ones
 * @validate: check the whole heap, for tests and debugging
 *
 * @sweep may check a page of nodes every so often instead. It returns false
 * when it has reached its end, and calls @ahead some nodes before @stale. One
 * complete sweep after another checks every node that did not move meanwhile.
 *
 * @validate is unbounded. It passes each node to @visit unless that is NULL. It
 * returns 0, a page's error, or -EIO if the layout's order is broken.
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

/* A heap of sorted pages (bheap_sorted.c). */
extern const struct bheap_layout bheap_sorted;

#define BHEAP_NODES_PER_PAGE	(CORE_PAGE_SIZE / (u32)sizeof(struct bheap_node))

/* Pages that a layout may use beyond those that its nodes fill. */
#define BHEAP_PAGES_SPARE	5U

/* Returns the most pages that @nodes nodes take in any layout. */
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
