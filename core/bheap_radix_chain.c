// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Chains of radix pages: append to them, detach them, spread them.
 *
 * Every page of a bucket's chain but the last is at least half full. A page
 * whose nodes all go the same way is linked as it is: behind the chain that it
 * comes to if both are in order, else in front. Other pages are copied node by
 * node. A chain that is being spread belongs to no bucket; where its nodes go is
 * found anew for each page, so that the front may move meanwhile.
 */
#include "bheap_radix_pages.h"

void radix_add_hint(struct bheap_radix_state *s, u32 level, u64 deadline)
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
		bucket->last = deadline;
		bucket->is_mixed = false;
	}
	bucket->tail = page;
	radix_note_if_long(heap, bucket, level);
	return nodes;
}

int radix_append(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		 const struct bheap_node *node)
{
	struct bheap_node *nodes;
	bool was_mixed;

	if (likely(bucket->pos % NODES))
		nodes = radix_nodes(heap, bucket->tail);
	else
		nodes = grow(heap, bucket, level, node->deadline);
	if (unlikely(!nodes))
		return heap->pages->error;
	was_mixed = bucket->is_mixed;
	radix_put(bucket, nodes, node);
	if (unlikely(bucket->is_mixed != was_mixed))
		radix_note_if_long(heap, bucket, level);
	return 0;
}

int radix_push_anywhere(struct bheap *heap, const struct bheap_node *node)
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
 * @is_mixed: they are in no order
 * @least: the earliest deadline
 * @last: the latest
 */
struct spreading {
	const struct bheap_node *nodes;
	u32 nr;
	bool is_mixed;
	u64 least;
	u64 last;
};

static void look_at(struct spreading *page)
{
	u64 before = 0;
	u32 i;

	page->least = ~0ULL;
	page->last = 0;
	page->is_mixed = false;
	for (i = 0; i < page->nr; i++) {
		u64 deadline = page->nodes[i].deadline;

		page->is_mixed |= deadline < before;
		before = deadline;
		page->least = deadline < page->least ? deadline : page->least;
		page->last = deadline > page->last ? deadline : page->last;
	}
}

/* Links a page behind a bucket's chain, which remains in order. */
static int link_behind(struct bheap *heap, struct radix_bucket *bucket,
		       u32 page, struct radix_page *record,
		       const struct spreading *spreading)
{
	struct radix_page *tail = radix_page(heap, bucket->tail);
	u32 fill = radix_fill(bucket);

	if (unlikely(!tail))
		return heap->pages->error;
	tail->nr = fill;
	tail->next = page;
	record->prev = bucket->tail;
	record->next = 0;
	bucket->tail = page;
	bucket->pos += NODES - fill + record->nr;
	bucket->last = spreading->last;
	return 0;
}

/* Links a page in front of a bucket's chain. */
static int link_before(struct bheap *heap, struct radix_bucket *bucket,
		       u32 page, struct radix_page *record,
		       const struct spreading *spreading)
{
	struct radix_page *head = radix_page(heap, bucket->head);

	if (unlikely(!head))
		return heap->pages->error;
	head->prev = page;
	record->next = bucket->head;
	bucket->head = page;
	bucket->pos += NODES;
	if (spreading->is_mixed || spreading->last > bucket->least)
		bucket->is_mixed = true;
	if (spreading->least < bucket->least)
		bucket->least = spreading->least;
	if (spreading->last > bucket->last)
		bucket->last = spreading->last;
	return 0;
}

/* Returns whether a page belongs behind a bucket's chain, so that this remains in
 * order.
 */
static bool is_in_order(const struct radix_bucket *bucket,
			const struct spreading *page)
{
	return !page->is_mixed && !bucket->is_mixed &&
	       page->least >= bucket->last;
}

/* Links a page to a bucket's chain. */
static int link_page(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		     u32 page, const struct spreading *spreading)
{
	struct radix_page *record = radix_page(heap, page);
	int err = 0;

	if (unlikely(!record))
		return heap->pages->error;
	if (!bucket->pos) {
		record->next = 0;
		bucket->head = page;
		bucket->is_mixed = spreading->is_mixed;
		bucket->tail = page;
		bucket->pos = record->nr;
		bucket->least = spreading->least;
		bucket->last = spreading->last;
	} else if (is_in_order(bucket, spreading)) {
		err = link_behind(heap, bucket, page, record, spreading);
	} else {
		err = link_before(heap, bucket, page, record, spreading);
	}
	if (likely(!err))
		radix_note_if_long(heap, bucket, level);
	return err;
}

/* Returns whether a page can be linked: all pages but a chain's last remain at least
 * half full. What would break an order for that is appended node by node.
 */
static bool can_link(const struct radix_bucket *bucket,
		     const struct spreading *page)
{
	if (!bucket->pos)
		return true;
	if (is_in_order(bucket, page))
		return radix_fill(bucket) >= NODES / 2;
	return page->nr >= NODES / 2;
}

/* Appends the nodes of a page one by one to @bucket, or to a bucket of the table that
 * begins there. Counts those gone in *@begin.
 */
static int scatter(struct bheap *heap, struct radix_bucket *bucket,
		   bool is_table, u32 level, const struct spreading *page,
		   u32 *begin)
{
	const struct bheap_node *node = page->nodes, *end = node + page->nr;
	u32 digit = 0;
	int err;

	for (; node < end; node++) {
		if (is_table)
			digit = radix_digit(node->deadline, level);
		err = radix_append(heap, bucket + digit, level, node);
		if (unlikely(err))
			return err;
		(*begin)++;
	}
	return 0;
}

/* Appends the nodes of a page one by one to the finger, most of them to the buckets of
 * one table. Counts those gone in *@begin.
 */
static int scatter_finger(struct bheap *heap, const struct spreading *page,
			  u32 *begin)
{
	const struct bheap_node *node = page->nodes, *end = node + page->nr;
	const struct bheap_radix_state *s = &heap->radix;
	u32 level = radix_level(s, page->last), digit;
	struct radix_bucket *table = NULL;
	int err;

	if (s->used[level])
		table = radix_table_peek(heap, s->table[level]);
	for (; node < end; node++) {
		digit = radix_digit(node->deadline, level);
		if (unlikely(!table || radix_level(s, node->deadline) < level ||
			     !(s->used[level] >> digit & 1) ||
			     !radix_put_in_room(heap, table + digit, node))) {
			err = radix_far_push(heap, node);
			if (unlikely(err))
				return err;
		}
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
	u64 diff = page->least ^ page->last;
	struct radix_bucket *bucket;
	int err;

	*bucketp = NULL;
	*is_tablep = false;
	if (diff && radix_level_of(diff) >= level)
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
		if (diff && radix_level_of(diff) == level) {
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
	if (bucket && !is_table && !spread->begin && can_link(bucket, &page)) {
		err = link_page(heap, bucket, level, number, &page);
	} else {
		err = bucket ? scatter(heap, bucket, is_table, level, &page,
				       &spread->begin) :
			       scatter_finger(heap, &page, &spread->begin);
		if (!err)
			radix_page_put(heap, number);
	}
	if (bucket)
		mark_way(heap, page.least);
	if (unlikely(err))
		return err;
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
		to = radix_level_of(bucket->least ^ bucket->last);
		nr = level - to;
		if (s->tables + nr > radix_tables_few(heap->nr))
			goto done;
		radix_note_most(heap);
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
