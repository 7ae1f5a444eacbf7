// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Chains of radix pages: append to them, detach them, spread them.
 *
 * Every page of a bucket's chain but the last is at least half full. A page
 * whose nodes all go the same way is linked as it is, in front of the chain that
 * it comes to. Other pages are copied node by node. A chain that is being spread
 * belongs to no bucket; where its nodes go is found anew for each page, so that
 * the front may move meanwhile.
 */
#include "bheap_radix_pages.h"

/* Notes that a bucket has a long chain. What finds no room is noted when the
 * chain grows again, or spread when its turn comes.
 */
static void add_hint(struct bheap_radix_state *s, u32 level, u64 deadline)
{
	u32 i;

	for (i = 0; i < s->hints; i++)
		if (s->hint[i].level == level &&
		    radix_floor(s->hint[i].deadline, level) ==
		    radix_floor(deadline, level))
			return;
	if (i == BHEAP_RADIX_HINTS)
		return;
	s->hint[i].deadline = deadline;
	s->hint[i].level = level;
	s->hints++;
}

/* Adds a page to a chain's end. Returns its nodes. */
static struct bheap_node *grow(struct bheap *heap, struct radix_bucket *bucket,
			       u32 level, u64 deadline)
{
	struct radix_page *tail = NULL, *record;
	struct bheap_node *nodes;
	u32 page;

	if (bucket->pos) {
		tail = radix_page(heap, bucket->tail);
		if (unlikely(!tail))
			return NULL;
	}
	page = radix_page_get(heap, &nodes, &record);
	if (unlikely(!page))
		return NULL;
	if (tail) {
		tail->next = page;
		tail->nr = NODES;
		record->prev = bucket->tail;
	} else {
		bucket->head = page;
		bucket->least = deadline;
		bucket->diff = 0;
	}
	bucket->tail = page;
	if (unlikely(radix_is_long(bucket)) && level)
		add_hint(&heap->radix, level, bucket->least);
	return nodes;
}

int radix_append(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		 const struct bheap_node *node)
{
	struct bheap_node *nodes;

	if (likely(bucket->pos % NODES))
		nodes = radix_nodes(heap, bucket->tail);
	else
		nodes = grow(heap, bucket, level, node->deadline);
	if (unlikely(!nodes))
		return heap->pages->error;
	nodes[bucket->pos++ % NODES] = *node;
	bucket->diff |= node->deadline ^ bucket->least;
	if (node->deadline < bucket->least)
		bucket->least = node->deadline;
	return 0;
}

int radix_far_push(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 level = radix_level(s, node->deadline);
	u32 digit = radix_digit(node->deadline, level);
	struct radix_bucket *bucket;
	int err;

	if (unlikely(!s->used[level])) {
		err = radix_finger_prepare(heap, level);
		if (unlikely(err))
			return err;
	}
	bucket = radix_table(heap, s->table[level]);
	if (unlikely(!bucket))
		return heap->pages->error;
	err = radix_append(heap, bucket + digit, level, node);
	if (unlikely(err))
		return err;
	radix_mark(s, level, digit);
	if (node->deadline < s->far_from)
		s->far_from = node->deadline;
	return 0;
}

int radix_detach(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		 enum bheap_radix_spread which)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_page *tail;

	if (!bucket->pos)
		return 0;
	tail = radix_page(heap, bucket->tail);
	if (unlikely(!tail))
		return heap->pages->error;
	tail->nr = radix_fill(bucket);
	s->spread[which].from = bucket->least;
	s->spread[which].head = bucket->head;
	s->spread[which].begin = 0;
	bucket->pos = 0;
	radix_lose_hand(s, bucket, level);
	return 0;
}

/**
 * struct spreading - a page of a detached chain
 * @nodes: those left to be spread
 * @nr: how many
 * @least: the earliest deadline
 * @diff: bits in which they differ
 */
struct spreading {
	const struct bheap_node *nodes;
	u32 nr;
	u64 least;
	u64 diff;
};

static void look_at(struct spreading *page)
{
	u32 i;

	page->least = page->nodes[0].deadline;
	page->diff = 0;
	for (i = 1; i < page->nr; i++) {
		page->diff |= page->nodes[i].deadline ^ page->nodes[0].deadline;
		if (page->nodes[i].deadline < page->least)
			page->least = page->nodes[i].deadline;
	}
}

/* Links a page in front of a bucket's chain. */
static int link_page(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		     u32 page, const struct spreading *spreading)
{
	struct radix_page *record = radix_page(heap, page), *head = NULL;

	if (unlikely(!record))
		return heap->pages->error;
	if (bucket->pos) {
		head = radix_page(heap, bucket->head);
		if (unlikely(!head))
			return heap->pages->error;
		head->prev = page;
		record->next = bucket->head;
		bucket->pos += NODES;
		bucket->diff |= spreading->diff |
				(spreading->least ^ bucket->least);
		if (spreading->least < bucket->least)
			bucket->least = spreading->least;
	} else {
		record->next = 0;
		bucket->tail = page;
		bucket->pos = record->nr;
		bucket->diff = spreading->diff;
		bucket->least = spreading->least;
	}
	bucket->head = page;
	if (unlikely(radix_is_long(bucket)) && level)
		add_hint(&heap->radix, level, bucket->least);
	return 0;
}

/* Appends the nodes of a page one by one: to @bucket, or to a bucket of the table
 * that begins there, or to the finger. Counts those gone in *@begin.
 */
static int scatter(struct bheap *heap, struct radix_bucket *bucket,
		   bool is_table, u32 level, const struct spreading *page,
		   u32 *begin)
{
	const struct bheap_node *node = page->nodes, *end = node + page->nr;
	int err;

	for (; node < end; node++) {
		if (!bucket)
			err = radix_far_push(heap, node);
		else if (is_table)
			err = radix_append(heap, bucket +
					   radix_digit(node->deadline, level),
					   level, node);
		else
			err = radix_append(heap, bucket, level, node);
		if (unlikely(err))
			return err;
		(*begin)++;
	}
	return 0;
}

/* Finds where a page goes: to a bucket, or to a table below the finger if its
 * nodes part there. Sets *@bucketp to NULL if they part in the finger.
 */
static int find_way(struct bheap *heap, const struct spreading *page,
		    struct radix_bucket **bucketp, bool *is_tablep, u32 *levelp)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 level = radix_level(s, page->least), digit;
	struct radix_bucket *bucket;
	int err;

	*bucketp = NULL;
	*is_tablep = false;
	if (page->diff && radix_level_of(page->diff) >= level)
		return 0;
	if (!s->used[level]) {
		err = radix_finger_prepare(heap, level);
		if (unlikely(err))
			return err;
	}
	bucket = radix_table(heap, s->table[level]);
	if (unlikely(!bucket))
		return heap->pages->error;
	digit = radix_digit(page->least, level);
	bucket += digit;
	while (bucket->sub) {
		bucket = radix_table(heap, bucket->sub);
		if (unlikely(!bucket))
			return heap->pages->error;
		level--;
		if (page->diff && radix_level_of(page->diff) == level) {
			*is_tablep = true;
			break;
		}
		bucket += radix_digit(page->least, level);
	}
	*bucketp = bucket;
	*levelp = level;
	return 0;
}

/* Marks the finger's bucket for @deadline as used, unless it is empty. */
static void mark_way(struct bheap *heap, u64 deadline)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 level = radix_level(s, deadline);
	u32 digit = radix_digit(deadline, level);

	/* It is in memory: find_way() came by. */
	if (!radix_is_empty(radix_table(heap, s->table[level]) + digit))
		radix_mark(s, level, digit);
}

int radix_spread(struct bheap *heap, enum bheap_radix_spread which)
{
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_radix_detached *spread = &s->spread[which];
	u32 number = spread->head, next, level = 0;
	struct radix_page *record = radix_page(heap, number);
	struct radix_bucket *bucket;
	struct spreading page;
	bool is_table;
	int err;

	if (unlikely(!record))
		return heap->pages->error;
	err = radix_prepare_put(heap);
	if (unlikely(err))
		return err;
	page.nodes = radix_nodes(heap, number);
	if (unlikely(!page.nodes))
		return heap->pages->error;
	page.nodes += spread->begin;
	page.nr = record->nr - spread->begin;
	look_at(&page);
	err = find_way(heap, &page, &bucket, &is_table, &level);
	if (unlikely(err))
		return err;

	next = record->next;
	if (bucket && !is_table && !spread->begin &&
	    (!bucket->pos || page.nr >= NODES / 2)) {
		err = link_page(heap, bucket, level, number, &page);
	} else {
		err = scatter(heap, bucket, is_table, level, &page,
			      &spread->begin);
		if (!err)
			radix_page_put(heap, number);
	}
	if (bucket)
		mark_way(heap, page.least);
	if (unlikely(err))
		return err;
	if (page.least < s->far_from)
		s->far_from = page.least;
	spread->head = next;
	spread->begin = 0;
	return 0;
}

/* Finds the bucket of a hint; NULL if it is gone, or with *@errp set. */
static struct radix_bucket *find_long(struct bheap *heap, u64 deadline,
				      u32 level, int *errp)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_bucket *bucket;
	u32 at, table;

	*errp = 0;
	if (deadline < s->front)
		return NULL;
	at = radix_level(s, deadline);
	if (at < level || !s->used[at])
		return NULL;
	for (table = s->table[at]; table; table = bucket->sub, at--) {
		bucket = radix_table(heap, table);
		if (unlikely(!bucket)) {
			*errp = heap->pages->error;
			return NULL;
		}
		bucket += radix_digit(deadline, at);
		if (at == level)
			return radix_is_long(bucket) ? bucket : NULL;
	}
	return NULL;
}

/* Returns whether the heap may have @nr tables more: they are few beside its
 * nodes, also where a client chooses deadlines to make many.
 */
static bool may_divide(const struct bheap *heap, u32 nr)
{
	return heap->radix.tables + nr <= radix_tables_max(heap->nr);
}

int radix_spill(struct bheap *heap)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 i = s->hints - 1, level = s->hint[i].level, to = 0, nr, *sub;
	struct radix_bucket *bucket;
	u64 least;
	int err;

	bucket = find_long(heap, s->hint[i].deadline, level, &err);
	if (unlikely(err))
		return err;
	if (!bucket)
		goto done;
	least = bucket->least;
	if (!bucket->sub) {
		/* At once as far down as all deadlines are the same. */
		to = radix_level_of(bucket->diff);
		nr = level - to;
		if (!may_divide(heap, nr))
			goto done;
		err = radix_prepare_tables(heap, nr);
		if (unlikely(err))
			return err;
	}
	err = radix_detach(heap, bucket, level, BHEAP_RADIX_BACKGROUND);
	if (unlikely(err))
		return err;
	for (sub = &bucket->sub; !*sub && level > to; level--) {
		*sub = radix_table_new(heap, radix_floor(least, level));
		bucket = radix_table(heap, *sub) +
			 radix_digit(least, level - 1);
		bucket->least = least;
		sub = &bucket->sub;
	}
done:
	s->hints = i;
	return 0;
}
