/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The pages, tables and buckets of radix pages; bheap_radix.c describes them.
 *
 * Every function that can fail returns 0 or the pages' error, or NULL with
 * pages->error set. After an error the heap is still valid.
 */
#ifndef CORE_BHEAP_RADIX_PAGES_H
#define CORE_BHEAP_RADIX_PAGES_H

#include "bheap.h"

#define NODES		BHEAP_NODES_PER_PAGE
#define BITS		BHEAP_RADIX_BITS
#define LEVELS		BHEAP_RADIX_LEVELS
#define FAN		(1U << BITS)

/* Pages with one purpose: the near heap, the sorted run, scratch. */
#define RADIX_NEAR	0
#define RADIX_RUN	1
#define RADIX_SCRATCH	2
#define RADIX_BLOCKS	3	/* where the blocks begin */

/*
 * A block of pages: one with what is known of each page of the block, then
 * TABLE_PAGES with tables, then pages of chains.
 */
#define BLOCK		(CORE_PAGE_SIZE / (u32)sizeof(struct radix_page))
#define TABLE_PAGES	(BLOCK / 64 ?: 1U)
#define TABLES_PER_PAGE	(CORE_PAGE_SIZE / (FAN * (u32)sizeof(struct radix_bucket)))
#define TABLES_PER_BLOCK	(TABLES_PER_PAGE * TABLE_PAGES)
#define BLOCK_FIXED	(1 + TABLE_PAGES)

/* Pages of a chain from which on it is spread in the background. One in order can
 * be longer: it is opened a page at a time, unless a node out of order comes.
 */
#ifndef RADIX_LONG
#define RADIX_LONG	32U
#endif
#define RADIX_SORTED_LONG	(32 * RADIX_LONG)

/* In radix_page.state. */
#define RADIX_IN_CHAIN	1U
#define RADIX_FREE	2U

/**
 * struct radix_page - what is known of a page of a chain, or of a free page
 * @next: the next of the chain, or of the free pages; 0 = none
 * @prev: the one before; undefined in the first of a chain
 * @nr: nodes in it; undefined in the last of a bucket's chain
 * @state: RADIX_IN_CHAIN or RADIX_FREE
 */
struct radix_page {
	u32 next;
	u32 prev;
	u32 nr;
	u32 state;
};

/**
 * struct radix_bucket - the nodes of a range of deadlines
 * @least: no node of the chain is earlier; in an empty bucket a deadline in the
 *	range of its table
 * @last: no node of the chain is later; undefined in an empty bucket
 * @head: first page of the chain
 * @is_mixed: the chain may be in no order
 * @tail: last page
 * @pos: NODES times the pages before the last, plus the nodes in it; 0 = no chain
 * @sub: table that divides the range further; 0 = none
 */
struct radix_bucket {
	u64 least;
	u64 last;
	u32 head : 31;
	u32 is_mixed : 1;
	u32 tail;
	u32 pos;
	u32 sub;
};

/* Returns digit @level of a deadline. */
static inline u32 radix_digit(u64 deadline, u32 level)
{
	return deadline >> level * BITS & (FAN - 1);
}

/* Returns the level of the highest digit in @diff that is not 0. */
static inline u32 radix_level_of(u64 diff)
{
	return (fls64(diff | 1) - 1) / BITS;
}

/* Returns the first deadline of the bucket of @level that @deadline is in. */
static inline u64 radix_floor(u64 deadline, u32 level)
{
	return level >= LEVELS ? 0 : deadline >> level * BITS << level * BITS;
}

/* Returns the last deadline of the bucket of @level that begins at @start. */
static inline u64 radix_last(u64 start, u32 level)
{
	return start + ((1ULL << level * BITS) - 1);
}

/* Returns the level of the bucket that begins at @deadline and is not within a
 * greater one that does, too.
 */
static inline u32 radix_level_at(u64 deadline)
{
	u32 level = (fls64(deadline & -deadline) - 1) / BITS;

	return deadline && level < LEVELS ? level : LEVELS - 1;
}

/* Returns at which level of the finger far nodes of @deadline are. */
static inline u32 radix_level(const struct bheap_radix_state *s, u64 deadline)
{
	u32 level = radix_level_of(deadline ^ s->front);

	return level > s->level ? level : s->level;
}

/* Returns the nodes in a chain's last page. */
static inline u32 radix_fill(const struct radix_bucket *bucket)
{
	return (bucket->pos - 1) % NODES + 1;
}

/* Returns how many tables are few beside @nodes nodes: above that, no chain is divided
 * but for its turn, and tables that have little are folded.
 */
static inline u32 radix_tables_few(u64 nodes)
{
	return 2 * LEVELS + nodes / (4 * NODES);
}

/* Nodes that are copied to fold tables, at most, when the front moves back. */
#define RADIX_FOLD_MOST	(32 * NODES)

/* Returns the most tables that a heap of @nodes nodes may come to have: few, those on a
 * way that is folded only next time, those of ways for which too many nodes would be
 * copied, and those of the finger now and after the next move of the front.
 */
static inline u32 radix_tables_max(u64 nodes)
{
	return radix_tables_few(nodes) + 4 * LEVELS +
	       nodes * LEVELS / RADIX_FOLD_MOST;
}

/* Notes how many nodes the heap has, when it may get more tables. */
static inline void radix_note_most(struct bheap *heap)
{
	if (heap->radix.most < heap->nr)
		heap->radix.most = heap->nr;
}

static inline bool radix_is_empty(const struct radix_bucket *bucket)
{
	return !(bucket->pos | bucket->sub);
}

/* Returns whether a bucket's chain is to be spread in the background. */
static inline bool radix_is_long(const struct radix_bucket *bucket)
{
	return bucket->pos > RADIX_LONG * NODES &&
	       bucket->least != bucket->last &&
	       (bucket->is_mixed || bucket->pos > RADIX_SORTED_LONG * NODES);
}

static inline struct bheap_node *radix_nodes(const struct bheap *heap, u32 page)
{
	return core_page(heap->pages, page);
}

/* Returns the record of a chain's page. It stays in memory during a call. */
static inline struct radix_page *radix_page(const struct bheap *heap, u32 page)
{
	u32 elem = (page - RADIX_BLOCKS) % BLOCK;
	struct radix_page *records = core_page(heap->pages, page - elem);

	return likely(records) ? records + elem : NULL;
}

/* Returns where table number @nr, from 1, is: its page times TABLES_PER_PAGE, plus its
 * place there. A reference to a table is that, so that nothing is left to compute.
 */
static inline u32 radix_table_at(u32 nr)
{
	nr--;
	return (RADIX_BLOCKS + nr / TABLES_PER_BLOCK * BLOCK + 1) *
	       TABLES_PER_PAGE + nr % TABLES_PER_BLOCK;
}

static inline struct radix_bucket *radix_table(const struct bheap *heap,
					       u32 table)
{
	struct radix_bucket *page = core_page(heap->pages,
					      table / TABLES_PER_PAGE);

	return likely(page) ? page + table % TABLES_PER_PAGE * FAN : NULL;
}

/* Returns the same if it is in memory, else NULL. */
static inline struct radix_bucket *radix_table_peek(const struct bheap *heap,
						    u32 table)
{
	struct radix_bucket *page = core_page_peek(heap->pages,
						   table / TABLES_PER_PAGE);

	return likely(page) ? page + table % TABLES_PER_PAGE * FAN : NULL;
}

/* Returns the nodes in chains. */
static inline u32 radix_far_nr(const struct bheap *heap)
{
	const struct bheap_radix_state *s = &heap->radix;

	return heap->nr - !heap->is_bound - s->near - (s->run_nr - s->run_at);
}

/* Marks a bucket of the finger as used, or as empty if it is. */
static inline void radix_mark(struct bheap_radix_state *s, u32 level, u32 digit)
{
	s->used[level] |= 1U << digit;
	s->used_levels |= 1ULL << level;
}

static inline void radix_unmark(struct bheap_radix_state *s, u32 level,
				u32 digit)
{
	s->used[level] &= ~(1U << digit);
	if (!s->used[level])
		s->used_levels &= ~(1ULL << level);
}

/* In hand_page: the chain that the sweep was at is gone. */
#define RADIX_HAND_LOST	(~0U)

/* Moves the hand to a page of its bucket's chain; 0 = the first. */
static inline void radix_hand_to_page(struct bheap_radix_state *s, u32 page)
{
	s->hand_page = page;
	s->hand_nr = 0;
	s->hand_half = false;
}

/* Notes that the chain of a bucket of @level goes: the sweep continues after it. */
static inline void radix_lose_hand(struct bheap_radix_state *s,
				   const struct radix_bucket *bucket, u32 level)
{
	if (s->hand_page && s->hand_level == level &&
	    radix_floor(s->hand, level) == radix_floor(bucket->least, level))
		s->hand_page = RADIX_HAND_LOST;
}

/* bheap_radix_pages.c */

/* Tells the owner which pages are in use. */
void radix_set_pages(struct bheap *heap);

/* Returns a page for a chain, with its record in *@recordp. */
u32 radix_page_get(struct bheap *heap, struct bheap_node **nodesp,
		   struct radix_page **recordp);

/* Must have succeeded in a call that puts pages back. */
int radix_prepare_put(struct bheap *heap);
void radix_page_put(struct bheap *heap, u32 page);

/* Returns whether more pages are free than pushes soon take. The last page in use
 * is then to take the place of one.
 */
static inline bool radix_has_surplus(const struct bheap_radix_state *s)
{
	return s->free_nr > 8 + s->pages_end / 8;
}

/* Takes one page from the end of those in use. */
int radix_shrink(struct bheap *heap);

/* Brings in the pages of @nr new tables; radix_table_new() then cannot fail. */
int radix_prepare_tables(struct bheap *heap, u32 nr);

/* Returns a table for @base and the deadlines after it. */
u32 radix_table_new(struct bheap *heap, u64 base);

/* Gives the empty table *@ref back and sets *@ref to 0. Other tables may then have
 * other numbers and places.
 */
int radix_table_free(struct bheap *heap, u32 *ref);

/* Prepares the finger's table of @level, which is empty or not there. */
int radix_finger_prepare(struct bheap *heap, u32 level);

/* Writes a node into the last page of a bucket's chain, @nodes, which has room. */
static inline void radix_put(struct radix_bucket *bucket,
			     struct bheap_node *nodes,
			     const struct bheap_node *node)
{
	nodes[bucket->pos++ % NODES] = *node;
	if (node->deadline >= bucket->last) {
		bucket->last = node->deadline;
		return;
	}
	bucket->is_mixed = true;
	if (node->deadline < bucket->least)
		bucket->least = node->deadline;
}

/* Adds a node to a bucket that is in use, if the last page of its chain has room and
 * is in memory. Returns false if it did not.
 */
static inline bool radix_put_in_room(const struct bheap *heap,
				     struct radix_bucket *bucket,
				     const struct bheap_node *node)
{
	struct bheap_node *nodes;

	/* The first node out of order may make a chain too long. */
	if (unlikely(!(bucket->pos % NODES) ||
		     (node->deadline < bucket->last && !bucket->is_mixed)))
		return false;
	nodes = core_page_peek(heap->pages, bucket->tail);
	if (unlikely(!nodes))
		return false;
	radix_put(bucket, nodes, node);
	return true;
}

/* Adds a node that is not before the front to its bucket of the finger, if the last
 * page of that chain has room and is in memory. Returns false if it did not.
 */
static __always_inline bool radix_push_in_room(struct bheap *heap,
					       const struct bheap_node *node)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 level = radix_level(s, node->deadline);
	u32 digit = radix_digit(node->deadline, level);
	struct radix_bucket *table;

	/* An empty bucket is not in use, nor is one of no table. */
	if (unlikely(!(s->used[level] >> digit & 1)))
		return false;
	table = radix_table_peek(heap, s->table[level]);
	if (unlikely(!table || !radix_put_in_room(heap, table + digit, node)))
		return false;
	if (node->deadline < s->far_from)
		s->far_from = node->deadline;
	return true;
}

/* bheap_radix_chain.c */

/* Adds a node to a bucket of @level. */
int radix_append(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		 const struct bheap_node *node);

/* Adds a node that is not before the front. */
int radix_push_anywhere(struct bheap *heap, const struct bheap_node *node);

/* The same, without a call where a few instructions do: for most nodes. */
static inline int radix_far_push(struct bheap *heap,
				 const struct bheap_node *node)
{
	if (likely(radix_push_in_room(heap, node)))
		return 0;
	return radix_push_anywhere(heap, node);
}

/* Notes that a bucket has a long chain. What finds no room is noted when the chain
 * grows again, or spread when its turn comes.
 */
void radix_add_hint(struct bheap_radix_state *s, u32 level, u64 deadline);

static inline void radix_note_if_long(struct bheap *heap,
				      const struct radix_bucket *bucket,
				      u32 level)
{
	if (unlikely(radix_is_long(bucket)) && level)
		radix_add_hint(&heap->radix, level, bucket->least);
}

/* Takes the chain off a bucket, for radix_spread(). */
int radix_detach(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		 enum bheap_radix_spread which);

/* Spreads one page of a detached chain. */
int radix_spread(struct bheap *heap, enum bheap_radix_spread which);

/* Hands the first of the long chains to the background. */
int radix_spill(struct bheap *heap);

/* bheap_radix_front.c */

/* Moves the front back to @front, or sets it, if there is no far part. Of the nodes
 * that are near, none is later than @last. Returns -ENOSPC if deadlines were chosen
 * to make too many tables.
 */
int radix_retreat(struct bheap *heap, u64 front, u64 last);

/* Returns a bound: no far node is earlier. Brings no page in. */
u64 radix_far_bound(const struct bheap *heap);

/* Brings the far nodes that come first closer, by a step. */
int radix_advance(struct bheap *heap, bheap_review_t *review,
		  bheap_ahead_t *ahead, void *context);

/* Drops the far part, which is empty. */
void radix_release(struct bheap *heap);

/* bheap_radix_fold.c */

/* Folds the table below the bucket @above of @level, if it has few nodes and no tables
 * below it.
 */
int radix_fold_table(struct bheap *heap, struct radix_bucket *above, u32 level);

/* Folds the tables that the front has left, as fold_level and fold have it. */
int radix_fold(struct bheap *heap);

/* bheap_radix_open.c */

/**
 * struct radix_turn - the buckets whose turn comes
 * @bucket: the first in use
 * @level: its level
 * @start: the first deadline of its range
 * @review: as in bheap_find_first()
 * @ahead: the same
 * @context: their first argument
 */
struct radix_turn {
	struct radix_bucket *bucket;
	u32 level;
	u64 start;
	bheap_review_t *review;
	bheap_ahead_t *ahead;
	void *context;
};

/* Makes the nodes of the first buckets, or a page of them, the sorted run.
 * Returns -E2BIG if the first has too many nodes.
 */
int radix_open(struct bheap *heap, const struct radix_turn *turn);

/* bheap_radix_sweep.c, bheap_radix_validate.c */
bool radix_sweep(struct bheap *heap, u32 steps, bheap_stale_t *stale,
		 bheap_ahead_t *ahead, void *context);
int radix_validate(struct bheap *heap, bheap_visit_t *visit, void *context);

#endif /* CORE_BHEAP_RADIX_PAGES_H */
