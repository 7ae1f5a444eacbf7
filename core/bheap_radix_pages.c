// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The pages and tables of radix pages: take, put back, move.
 *
 * Free pages are a list in their records, so that none of them is touched. When
 * there are too many, the last page in use moves to the first of them, and the
 * owner gets it back. Tables have no gaps: when one is put back, the last table
 * moves to its number.
 *
 * Neither pages nor tables know what refers to them. A page's neighbours in its
 * chain are in its record. A bucket or table is found by a deadline of its
 * range, along the finger and the tables below it.
 */
#include "bheap_radix_pages.h"

static_assert(sizeof(struct radix_page) == 16, "a record to a node's room");
static_assert(sizeof(struct radix_bucket) == 32, "two buckets a cache line");
static_assert(TABLES_PER_PAGE > 0, "a table fits into a page");
static_assert(BLOCK > BLOCK_FIXED, "a block has pages of chains");

void radix_set_pages(struct bheap *heap)
{
	const struct bheap_radix_state *s = &heap->radix;
	u32 nr = s->near ? 1 : 0, last;

	if (s->run_at < s->run_nr)
		nr = RADIX_RUN + 1;
	if (s->tables) {
		last = radix_table_at(s->tables) / TABLES_PER_PAGE;
		nr = s->pages_end > last ? s->pages_end : last + 1;
	}
	heap->pages->nr = nr;
}

/* Returns @page, or the first page of a chain after it. */
static u32 skip_fixed(u32 page)
{
	u32 elem = (page - RADIX_BLOCKS) % BLOCK;

	return elem < BLOCK_FIXED ? page + BLOCK_FIXED - elem : page;
}

u32 radix_page_get(struct bheap *heap, struct bheap_node **nodesp,
		   struct radix_page **recordp)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 page = s->free ?: skip_fixed(s->pages_end ?: RADIX_BLOCKS);
	struct radix_page *record = radix_page(heap, page), *next = NULL;
	struct bheap_node *nodes;

	if (unlikely(!record))
		return 0;
	if (s->free && record->next) {
		next = radix_page(heap, record->next);
		if (unlikely(!next))
			return 0;
	}
	nodes = radix_nodes(heap, page);
	if (unlikely(!nodes))
		return 0;

	if (s->free) {
		s->free = record->next;
		s->free_nr--;
		if (next)
			next->prev = 0;
	} else {
		s->pages_end = page + 1;
		radix_set_pages(heap);
	}
	*record = (struct radix_page) { .state = RADIX_IN_CHAIN };
	*nodesp = nodes;
	*recordp = record;
	return page;
}

int radix_prepare_put(struct bheap *heap)
{
	if (heap->radix.free && unlikely(!radix_page(heap, heap->radix.free)))
		return heap->pages->error;
	return 0;
}

void radix_page_put(struct bheap *heap, u32 page)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_page *record = radix_page(heap, page);

	/* Both records are in memory: this cannot fail. */
	if (s->free)
		radix_page(heap, s->free)->prev = page;
	*record = (struct radix_page) { .next = s->free, .state = RADIX_FREE };
	s->free = page;
	s->free_nr++;
}

/* Takes the last page in use, which is free, off the list. */
static int drop_last(struct bheap *heap, struct radix_page *record)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_page *next = NULL, *prev = NULL;

	if (record->next) {
		next = radix_page(heap, record->next);
		if (unlikely(!next))
			return heap->pages->error;
	}
	if (record->prev) {
		prev = radix_page(heap, record->prev);
		if (unlikely(!prev))
			return heap->pages->error;
	}
	if (next)
		next->prev = record->prev;
	if (prev)
		prev->next = record->next;
	else
		s->free = record->next;
	s->free_nr--;
	return 0;
}

/**
 * struct referrers - what refers to a page
 * @spread: a detached chain that begins with it
 * @head: a bucket whose chain begins with it
 * @tail: a bucket whose chain ends with it
 */
struct referrers {
	struct bheap_radix_detached *spread;
	struct radix_bucket *head;
	struct radix_bucket *tail;
};

/* Finds what refers to @page, which has a node for @deadline. */
static int find_referrers(struct bheap *heap, u32 page, u64 deadline,
			  struct referrers *found)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 level = radix_level(s, deadline), table = s->table[level], i;
	struct radix_bucket *bucket;

	memset(found, 0, sizeof(*found));
	for (i = 0; i < BHEAP_RADIX_SPREADS; i++)
		if (s->spread[i].head == page)
			found->spread = &s->spread[i];
	for (; table; table = bucket->sub, level--) {
		bucket = radix_table(heap, table);
		if (unlikely(!bucket))
			return heap->pages->error;
		bucket += radix_digit(deadline, level);
		if (bucket->pos && bucket->head == page)
			found->head = bucket;
		if (bucket->pos && bucket->tail == page)
			found->tail = bucket;
	}
	return 0;
}

/* Moves the last page in use to the first free one. */
static int move_last(struct bheap *heap, u32 from, struct radix_page *record)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_page *next = NULL, *prev = NULL, *to_record;
	struct bheap_node *from_nodes, *to_nodes;
	struct referrers found;
	u64 deadline;
	u32 to;
	int err;

	from_nodes = radix_nodes(heap, from);
	if (unlikely(!from_nodes))
		return heap->pages->error;
	/* The first node of a detached chain's head may be gone, but not its
	 * deadline.
	 */
	deadline = from_nodes[0].deadline;
	err = find_referrers(heap, from, deadline, &found);
	if (unlikely(err))
		return err;
	if (record->next) {
		next = radix_page(heap, record->next);
		if (unlikely(!next))
			return heap->pages->error;
	}
	if (!found.spread && !found.head) {
		prev = radix_page(heap, record->prev);
		if (unlikely(!prev))
			return heap->pages->error;
	}
	to = radix_page_get(heap, &to_nodes, &to_record);
	if (unlikely(!to))
		return heap->pages->error;

	memcpy(to_nodes, from_nodes, CORE_PAGE_SIZE);
	*to_record = *record;
	if (next)
		next->prev = to;
	if (prev)
		prev->next = to;
	if (found.spread)
		found.spread->head = to;
	if (found.head)
		found.head->head = to;
	if (found.tail)
		found.tail->tail = to;
	if (s->hand_page == from)
		s->hand_page = to;
	return 0;
}

int radix_shrink(struct bheap *heap)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 last = s->pages_end - 1, elem;
	struct radix_page *record = radix_page(heap, last);
	int err;

	if (unlikely(!record))
		return heap->pages->error;
	if (record->state == RADIX_FREE)
		err = drop_last(heap, record);
	else
		err = move_last(heap, last, record);
	if (unlikely(err))
		return err;
	elem = (last - RADIX_BLOCKS) % BLOCK;
	s->pages_end = elem > BLOCK_FIXED ? last : last - elem;
	radix_set_pages(heap);
	return 0;
}

int radix_prepare_tables(struct bheap *heap, u32 nr)
{
	u32 last = heap->radix.tables;

	while (nr--)
		if (unlikely(!radix_table(heap, radix_table_at(++last))))
			return heap->pages->error;
	return 0;
}

static void table_clear(struct radix_bucket *bucket, u64 base)
{
	u32 i;

	for (i = 0; i < FAN; i++)
		bucket[i] = (struct radix_bucket) { .least = base };
}

u32 radix_table_new(struct bheap *heap, u64 base)
{
	u32 table = radix_table_at(++heap->radix.tables);

	table_clear(radix_table(heap, table), base);
	radix_set_pages(heap);
	return table;
}

int radix_finger_prepare(struct bheap *heap, u32 level)
{
	struct bheap_radix_state *s = &heap->radix;
	u64 base = radix_floor(s->front, level + 1);
	struct radix_bucket *bucket;
	int err;

	if (s->table[level]) {
		/* Its range may be that of an earlier front. */
		bucket = radix_table(heap, s->table[level]);
		if (unlikely(!bucket))
			return heap->pages->error;
		table_clear(bucket, base);
		return 0;
	}
	err = radix_prepare_tables(heap, 1);
	if (!err)
		s->table[level] = radix_table_new(heap, base);
	return err;
}

/* Returns what refers to a table whose range @deadline is in. */
static u32 *find_table(struct bheap *heap, u32 wanted, u64 deadline)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_bucket *bucket;
	u32 level, *ref;

	for (level = 0; level < LEVELS; level++)
		if (s->table[level] == wanted)
			return &s->table[level];
	level = radix_level(s, deadline);
	for (ref = &s->table[level]; *ref; ref = &bucket->sub, level--) {
		if (*ref == wanted)
			return ref;
		bucket = radix_table(heap, *ref);
		if (unlikely(!bucket))
			return NULL;
		bucket += radix_digit(deadline, level);
	}
	core_broken(*ref);
	heap->pages->error = -EIO;
	return NULL;
}

/* Returns a deadline of a table's range. */
static u64 table_deadline(const struct radix_bucket *bucket)
{
	u32 i;

	for (i = 0; i < FAN; i++)
		if (!radix_is_empty(bucket + i))
			return bucket[i].least;
	return bucket->least;
}

int radix_table_free(struct bheap *heap, u32 *ref)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_bucket *gap, *moved;
	u32 *moved_ref, last = radix_table_at(s->tables);

	if (*ref != last) {
		gap = radix_table(heap, *ref);
		if (unlikely(!gap))
			return heap->pages->error;
		moved = radix_table(heap, last);
		if (unlikely(!moved))
			return heap->pages->error;
		moved_ref = find_table(heap, last, table_deadline(moved));
		if (unlikely(!moved_ref))
			return heap->pages->error;
		*moved_ref = *ref;
		*ref = 0;
		memcpy(gap, moved, FAN * sizeof(*gap));
	}
	*ref = 0;
	s->tables--;
	radix_set_pages(heap);
	return 0;
}
