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
 *
 * After a pop or replace a layout may know only a bound of its next node. Then
 * bheap_find_first() finds the node by bounded steps. Once the first is known, so
 * are often those behind it: bheap_next() finds them, and bheap_take() removes as
 * many as were used.
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

/* Bits of a digit of radix pages: a table of buckets fits into a page. */
#ifndef BHEAP_RADIX_BITS
#define BHEAP_RADIX_BITS \
	(CORE_PAGE_SHIFT < 9 ? CORE_PAGE_SHIFT - 5 : 4)
#endif
#define BHEAP_RADIX_LEVELS	((64 + BHEAP_RADIX_BITS - 1) / BHEAP_RADIX_BITS)

/* Long chains that can wait for the background. */
#define BHEAP_RADIX_HINTS	4

/* Chains that are being spread: because their turn comes, because of their
 * length.
 */
enum bheap_radix_spread {
	BHEAP_RADIX_FRONT,
	BHEAP_RADIX_BACKGROUND,
	BHEAP_RADIX_SPREADS,
};

/**
 * struct bheap_radix_state - state of radix pages outside the pages
 * @front: far nodes are no earlier
 * @far_from: nor than this, which is no less
 * @used_levels: bit l: @used[l] is not 0
 * @near: nodes in the near heap
 * @run_at: next node of the sorted run
 * @run_nr: where it ends
 * @level: of the bucket that the front is in, undivided
 * @tables: tables; 0 = no far part
 * @most: most nodes when there came to be more tables
 * @fold_level: level of a bucket whose tables are to be folded; 0 = none
 * @fold: a deadline of that bucket, where the way of its tables leads to
 * @pages_end: page after the last of chains; 0 = none
 * @free: first free page, 0 = none
 * @free_nr: free pages
 * @work: operations since the last step in the background
 * @spread: detached chains: from which deadline on, first page, nodes taken from
 *	it
 * @hint: buckets with long chains
 * @hints: how many
 * @hand: deadline where the sweep is
 * @hand_level: level of its bucket
 * @hand_page: its page; 0 = the bucket's first
 * @hand_nr: nodes of what is checked next whose timers are prefetched
 * @hand_half: the second half of its page is checked
 * @hand_phase: RADIX_SWEEP_*
 * @table: the finger: table of each level on the way to the front, as
 *	radix_table_at() has it; 0 = none
 * @used: its buckets in use
 */
struct bheap_radix_state {
	u64 front;
	u64 far_from;
	u64 used_levels;
	u32 near;
	u32 run_at;
	u32 run_nr;
	u32 level;
	u32 tables;
	u32 most;
	u32 fold_level;
	u64 fold;
	u32 pages_end;
	u32 free;
	u32 free_nr;
	u32 work;
	struct bheap_radix_detached {
		u64 from;
		u32 head;
		u32 begin;
	} spread[BHEAP_RADIX_SPREADS];
	struct {
		u64 deadline;
		u32 level;
	} hint[BHEAP_RADIX_HINTS];
	u32 hints;
	u32 hand_level;
	u64 hand;
	u32 hand_page;
	u32 hand_nr;
	bool hand_half;
	u32 hand_phase;
	u32 table[BHEAP_RADIX_LEVELS];
	u16 used[BHEAP_RADIX_LEVELS];
};

/**
 * struct bheap - a heap
 * @first: the least node, valid when @nr > 0
 * @nr: nodes, live and stale
 * @sweep: where the sweep continues; 0 = no sweep in progress
 * @pages: the other nodes
 * @layout: const after bheap_init()
 * @now: the time; a hint: few nodes pushed are earlier
 * @is_bound: @first is no node, but none is earlier; see bheap_find_first()
 * @sorted: state of sorted pages; all zero if empty
 * @radix: state of radix pages; all zero if empty
 *
 * @first is outside the pages: reading the next deadline touches no page.
 */
struct bheap {
	struct bheap_node first;
	u32 nr;
	u32 sweep;
	struct core_pages *pages;
	const struct bheap_layout *layout;
	u64 now;
	bool is_bound;
	union {
		struct bheap_sorted_state sorted;
		struct bheap_radix_state radix;
	};
};

/* Returns whether a node is stale: no longer the node of its timer. Returns
 * false if a missing page prevents the check. The caller drops a stale node; if
 * that fails, asks again later.
 */
typedef bool bheap_stale_t(void *context, const struct bheap_node *node);

/* Looks at a node whose turn comes. Returns false if it is stale; the caller drops
 * it. Else sets its deadline to its timer's, if that is later now. Never waits
 * for a page: leaves the node as it is.
 */
typedef bool bheap_review_t(void *context, struct bheap_node *node);

/* How soon a node's timer will be read. A layout that knows early passes each
 * value in turn; one that does not passes BHEAP_SOON alone.
 */
enum bheap_when {
	BHEAP_FAR,	/* prefetch the timer's address */
	BHEAP_SOON,	/* prefetch the timer */
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
 * @find_first: a step of bheap_find_first(); NULL = @first is always known
 * @next: as bheap_next(); NULL = only the first is known
 * @take: as bheap_take(), for two nodes and more; NULL where @next is
 * @top: call @ahead for candidates for the next first
 * @sweep: check up to @steps nodes and remove stale ones
 * @validate: check the whole heap, for tests and debugging
 * @pages_max: as bheap_pages_max()
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
	int (*find_first)(struct bheap *heap, bheap_review_t *review,
			  bheap_ahead_t *ahead, void *context);
	u32 (*next)(const struct bheap *heap, u64 last, u32 max,
		    const struct bheap_node **nodesp);
	int (*take)(struct bheap *heap, u32 nr);
	void (*top)(const struct bheap *heap, bheap_ahead_t *ahead,
		    void *context);
	bool (*sweep)(struct bheap *heap, u32 steps, bheap_stale_t *stale,
		      bheap_ahead_t *ahead, void *context);
	int (*validate)(struct bheap *heap, bheap_visit_t *visit,
			void *context);
	u32 (*pages_max)(u64 nodes);
};

/* Kamp's B-heap: each page holds a subtree (bheap_subtree.c). */
extern const struct bheap_layout bheap_subtree;

/* A heap of sorted pages (bheap_sorted.c). */
extern const struct bheap_layout bheap_sorted;

/* A radix heap whose buckets are chains of pages (bheap_radix.c). */
extern const struct bheap_layout bheap_radix;

#define BHEAP_NODES_PER_PAGE	(CORE_PAGE_SIZE / (u32)sizeof(struct bheap_node))

/**
 * bheap_pages_max - most pages that a heap uses
 * @layout: its layout
 * @nodes: most nodes that it has at a time
 */
static inline u32 bheap_pages_max(const struct bheap_layout *layout, u64 nodes)
{
	return layout->pages_max(nodes);
}

static inline void bheap_init(struct bheap *heap,
			      const struct bheap_layout *layout,
			      struct core_pages *pages)
{
	heap->nr = 0;
	heap->sweep = 0;
	heap->pages = pages;
	heap->layout = layout;
	heap->now = 0;
	heap->is_bound = false;
	if (layout == &bheap_radix)
		memset(&heap->radix, 0, sizeof(heap->radix));
	else
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

/**
 * bheap_find_first - find the first node, after a pop or replace
 * @review: looks at nodes whose turn comes; NULL = all stay as they are
 * @ahead: prefetches for @review; unused if that is NULL
 *
 * Returns 1 if @heap->first is the first node, or the heap is empty. Returns 0
 * after a step that did not find it yet, or a page's error. Until it returns 1,
 * the heap cannot be popped.
 */
static inline int bheap_find_first(struct bheap *heap, bheap_review_t *review,
				   bheap_ahead_t *ahead, void *context)
{
	if (likely(!heap->is_bound))
		return 1;
	return heap->layout->find_first(heap, review, ahead, context);
}

/**
 * bheap_next - the nodes that follow the first
 * @last: none is later than this deadline
 * @max: most nodes to return
 * @nodesp: set to the first of them
 *
 * The first node must be known. Returns how many nodes follow it in the order in
 * which pops would remove them, as far as the layout knows without work; may be 0.
 * They lie side by side, and are valid until the heap changes. Brings no page in.
 */
static inline u32 bheap_next(const struct bheap *heap, u64 last, u32 max,
			     const struct bheap_node **nodesp)
{
	return heap->layout->next ?
	       heap->layout->next(heap, last, max, nodesp) : 0;
}

/**
 * bheap_take - remove the first node, and of those that bheap_next() found
 * @nr: nodes to remove, the first one included
 *
 * Does the work of @nr pops: each step that a pop would take, so that the heap has
 * the same pages afterwards. Returns how many nodes it removed. These are fewer than
 * @nr if a page is missing. If none is removed, returns the page's error.
 */
static inline int bheap_take(struct bheap *heap, u32 nr)
{
	int err;

	if (nr > 1)
		return heap->layout->take(heap, nr);
	err = heap->layout->pop(heap);
	return err ?: 1;
}

#endif /* CORE_BHEAP_H */
