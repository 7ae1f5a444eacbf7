// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/* Walk radix pages: every node, bucket, table and page. */
#include "bheap_radix_pages.h"
#include "insert_heap.h"
#include "runs.h"

/**
 * struct walk - what was met
 * @heap: the heap
 * @visit: receives each node, unless NULL
 * @context: the first argument of @visit
 * @nodes: nodes
 * @least: the least of them
 * @far_least: the least in chains
 * @pages: pages of chains, free ones included
 * @tables: tables
 */
struct walk {
	struct bheap *heap;
	bheap_visit_t *visit;
	void *context;
	u64 nodes;
	u64 least;
	u64 far_least;
	u32 pages;
	u32 tables;
};

static void count(struct walk *walk, const struct bheap_node *from, u32 nr)
{
	const struct bheap_node *end = from + nr;

	walk->nodes += nr;
	for (; from < end; from++) {
		if (from->deadline < walk->least)
			walk->least = from->deadline;
		if (walk->visit)
			walk->visit(walk->context, from);
	}
}

/* Counts a page of a chain: its nodes are from @first to @last. Sets *@before to the
 * last one's deadline, and *@is_mixed if one is before the last of another.
 */
static int walk_page(struct walk *walk, u32 page, u32 from, u32 nr, u64 first,
		     u64 last, u64 *before, bool *is_mixed)
{
	const struct bheap_node *nodes = radix_nodes(walk->heap, page);
	u32 i;

	if (!nodes)
		return walk->heap->pages->error;
	for (i = from; i < nr; i++) {
		if (nodes[i].deadline < first || nodes[i].deadline > last)
			return -EIO;
		*is_mixed |= nodes[i].deadline < *before;
		*before = nodes[i].deadline;
		if (nodes[i].deadline < walk->far_least)
			walk->far_least = nodes[i].deadline;
	}
	count(walk, nodes + from, nr - from);
	walk->pages++;
	return 0;
}

static int walk_chain(struct walk *walk, const struct radix_bucket *bucket)
{
	u32 page = bucket->head, prev = 0, pos = 0, nr;
	const struct radix_page *record;
	bool is_mixed = false;
	u64 before = 0;
	int err;

	for (;; prev = page, page = record->next) {
		record = radix_page(walk->heap, page);
		if (!record)
			return walk->heap->pages->error;
		if (record->state != RADIX_IN_CHAIN ||
		    (prev && record->prev != prev))
			return -EIO;
		nr = page == bucket->tail ? radix_fill(bucket) : record->nr;
		if (page != bucket->tail && (nr < NODES / 2 || nr > NODES))
			return -EIO;
		err = walk_page(walk, page, 0, nr, bucket->least, bucket->last,
				&before, &is_mixed);
		if (err)
			return err;
		if (page == bucket->tail)
			break;
		pos += NODES;
	}
	if (is_mixed && !bucket->is_mixed)
		return -EIO;
	return record->next || pos + nr != bucket->pos ? -EIO : 0;
}

static int walk_bucket(struct walk *walk, const struct radix_bucket *bucket,
		       u32 level, u64 start)
{
	u64 front = walk->heap->radix.front, last = radix_last(start, level);

	/* The table is found by it. */
	if (radix_floor(bucket->least, level + 1) != radix_floor(start, level + 1))
		return -EIO;
	if (!bucket->pos)
		return 0;
	if (bucket->least < start || bucket->least < front ||
	    bucket->least > bucket->last || bucket->last > last)
		return -EIO;
	return walk_chain(walk, bucket);
}

/* Walks the tables below a bucket, without recursion. */
static int walk_below(struct walk *walk, const struct radix_bucket *top,
		      u32 level, u64 start)
{
	const struct radix_bucket *table[LEVELS], *bucket;
	u32 digit[LEVELS], at = level;
	int err;

	if (!top->sub)
		return 0;
	table[at] = top;
	digit[at] = 0;
	for (;;) {
		bucket = table[at] + digit[at];
		if (bucket->sub) {
			if (!at)
				return -EIO;
			at--;
			table[at] = radix_table(walk->heap, bucket->sub);
			if (!table[at])
				return walk->heap->pages->error;
			digit[at] = 0;
			walk->tables++;
		} else {
			while (at < level && ++digit[at] == FAN) {
				start -= (u64)(FAN - 1) << at * BITS;
				at++;
			}
			if (at == level)
				return 0;
			start += 1ULL << at * BITS;
		}
		err = walk_bucket(walk, table[at] + digit[at], at, start);
		if (err)
			return err;
	}
}

static int walk_finger(struct walk *walk)
{
	struct bheap_radix_state *s = &walk->heap->radix;
	const struct radix_bucket *bucket;
	u32 level, digit;
	u64 start;
	int err;

	for (level = 0; level < LEVELS; level++) {
		if (!s->used[level] != !(s->used_levels >> level & 1))
			return -EIO;
		if (!s->table[level]) {
			if (s->used[level])
				return -EIO;
			continue;
		}
		walk->tables++;
		if (!s->used[level])
			continue;
		if (level < s->level)
			return -EIO;
		bucket = radix_table(walk->heap, s->table[level]);
		if (!bucket)
			return walk->heap->pages->error;
		for (digit = 0; digit < FAN; digit++, bucket++) {
			start = radix_floor(s->front, level + 1) +
				((u64)digit << level * BITS);
			if (radix_is_empty(bucket) !=
			    !(s->used[level] >> digit & 1))
				return -EIO;
			if (!radix_is_empty(bucket) &&
			    radix_last(start, level) < s->front)
				return -EIO;
			err = walk_bucket(walk, bucket, level, start);
			if (!err)
				err = walk_below(walk, bucket, level, start);
			if (err)
				return err;
		}
	}
	return 0;
}

static int walk_detached(struct walk *walk)
{
	struct bheap_radix_state *s = &walk->heap->radix;
	const struct radix_page *record;
	u32 i, page, begin;
	bool is_mixed = false;	/* in no order by nature */
	u64 before = 0;
	int err;

	for (i = 0; i < BHEAP_RADIX_SPREADS; i++) {
		begin = s->spread[i].begin;
		for (page = s->spread[i].head; page; page = record->next) {
			record = radix_page(walk->heap, page);
			if (!record)
				return walk->heap->pages->error;
			if (record->state != RADIX_IN_CHAIN ||
			    begin >= record->nr || s->spread[i].from < s->front)
				return -EIO;
			err = walk_page(walk, page, begin, record->nr,
					s->spread[i].from, ~0ULL, &before,
					&is_mixed);
			if (err)
				return err;
			begin = 0;
		}
	}
	return 0;
}

static int walk_free(struct walk *walk)
{
	struct bheap_radix_state *s = &walk->heap->radix;
	const struct radix_page *record;
	u32 page, prev = 0, nr = 0;

	for (page = s->free; page; prev = page, page = record->next) {
		record = radix_page(walk->heap, page);
		if (!record)
			return walk->heap->pages->error;
		if (record->state != RADIX_FREE || record->prev != prev ||
		    ++nr > s->free_nr || page >= s->pages_end)
			return -EIO;
	}
	walk->pages += nr;
	return nr == s->free_nr ? 0 : -EIO;
}

/* Returns the pages of chains before the page @end. */
static u32 chain_pages(u32 end)
{
	u32 blocks, rest;

	if (!end)
		return 0;
	blocks = (end - RADIX_BLOCKS) / BLOCK;
	rest = (end - RADIX_BLOCKS) % BLOCK;
	return blocks * (BLOCK - BLOCK_FIXED) +
	       (rest > BLOCK_FIXED ? rest - BLOCK_FIXED : 0);
}

static int walk_near(struct walk *walk)
{
	struct bheap_radix_state *s = &walk->heap->radix;
	const struct bheap_node *page;

	if (s->near > NODES || s->run_nr > NODES)
		return -EIO;
	if (s->near) {
		page = radix_nodes(walk->heap, RADIX_NEAR);
		if (!page)
			return walk->heap->pages->error;
		if (!insert_heap_is_ordered(page, s->near))
			return -EIO;
		count(walk, page, s->near);
	}
	if (s->run_at < s->run_nr) {
		page = radix_nodes(walk->heap, RADIX_RUN);
		if (!page)
			return walk->heap->pages->error;
		if (!runs_is_sorted(page + s->run_at, page + s->run_nr))
			return -EIO;
		count(walk, page + s->run_at, s->run_nr - s->run_at);
	}
	return 0;
}

int radix_validate(struct bheap *heap, bheap_visit_t *visit, void *context)
{
	struct walk walk = {
		.heap = heap,
		.visit = visit,
		.context = context,
		.least = ~0ULL,
		.far_least = ~0ULL,
	};
	struct bheap_radix_state *s = &heap->radix;
	int err = walk_near(&walk);

	if (!err && s->tables) {
		err = walk_finger(&walk);
		if (!err)
			err = walk_detached(&walk);
		if (!err)
			err = walk_free(&walk);
	}
	if (err)
		return err;
	if (walk.tables != s->tables ||
	    walk.pages != chain_pages(s->tables ? s->pages_end : 0) ||
	    (s->tables && walk.far_least < s->far_from))
		return -EIO;
	if (heap->nr && walk.least < heap->first.deadline)
		return -EIO;
	if (heap->nr && !heap->is_bound)
		count(&walk, &heap->first, 1);
	return walk.nodes == heap->nr ? 0 : -EIO;
}
