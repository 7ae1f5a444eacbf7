// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Tables of radix pages that are not worth their memory.
 *
 * A table divides a bucket. Where its own buckets have few nodes, each of them has
 * a page nevertheless. Such a table is folded: its nodes go to the chain of the
 * bucket above it, and it is given back. When the turn of that bucket comes, they
 * are spread like all others. Whole pages are linked; of a chain only the nodes of
 * a last page that is not half full are copied.
 */
#include "bheap_radix_pages.h"

/* Copies the nodes of a chain's last page to the bucket @to of @level, and puts the page
 * back. Nodes that it could not copy stay. The page before is then the last, with its
 * record in memory.
 */
static int move_tail(struct bheap *heap, struct radix_bucket *bucket,
		     struct radix_bucket *to, u32 level)
{
	u32 page = bucket->tail, nr = radix_fill(bucket);
	struct radix_page *record = radix_page(heap, page), *before = NULL;
	const struct bheap_node *nodes = radix_nodes(heap, page);
	int err;

	if (unlikely(!record || !nodes))
		return heap->pages->error;
	if (page != bucket->head) {
		before = radix_page(heap, record->prev);
		if (unlikely(!before))
			return heap->pages->error;
	}
	while (nr--) {
		err = radix_append(heap, to, level, nodes + nr);
		if (unlikely(err))
			return err;
		bucket->pos--;
	}
	if (before) {
		bucket->tail = record->prev;
		bucket->pos -= NODES - before->nr;
	}
	radix_page_put(heap, page);
	return 0;
}

/* Links a chain, whose last page is at least half full, in front of that of the bucket
 * @to, whose first page has the record @head.
 */
static int link_chain(struct bheap *heap, struct radix_bucket *bucket,
		      struct radix_bucket *to, struct radix_page *head)
{
	struct radix_page *tail = radix_page(heap, bucket->tail);
	u32 fill = radix_fill(bucket);

	if (unlikely(!tail))
		return heap->pages->error;
	tail->nr = fill;
	tail->next = to->head;
	head->prev = bucket->tail;
	to->head = bucket->head;
	to->pos += bucket->pos - fill + NODES;
	to->is_mixed |= bucket->is_mixed || bucket->last > to->least;
	if (bucket->least < to->least)
		to->least = bucket->least;
	if (bucket->last > to->last)
		to->last = bucket->last;
	bucket->pos = 0;
	return 0;
}

/* Moves a chain to the bucket @to of @level. */
static int move_chain(struct bheap *heap, struct radix_bucket *bucket,
		      struct radix_bucket *to, u32 level)
{
	struct radix_page *head;
	u32 sub = to->sub;
	int err = 0;

	if (!to->pos) {
		*to = *bucket;
		to->sub = sub;
		bucket->pos = 0;
		return 0;
	}
	/* Behind a tail that has moved, the chain can always be linked. */
	head = radix_page(heap, to->head);
	if (unlikely(!head))
		return heap->pages->error;
	if (radix_fill(bucket) < NODES / 2)
		err = move_tail(heap, bucket, to, level);
	if (!err && bucket->pos)
		err = link_chain(heap, bucket, to, head);
	if (likely(!err))
		radix_note_if_long(heap, to, level);
	return err;
}

int radix_fold_table(struct bheap *heap, struct radix_bucket *above, u32 level)
{
	struct radix_bucket *table = radix_table(heap, above->sub);
	u32 i, nr = 0;
	int err;

	if (unlikely(!table))
		return heap->pages->error;
	for (i = 0; i < FAN; i++) {
		if (table[i].sub)
			return 0;
		nr += table[i].pos;
	}
	if (nr > NODES / 2)
		return 0;
	err = radix_prepare_put(heap);
	for (i = 0; !err && i < FAN; i++)
		if (table[i].pos)
			err = move_chain(heap, table + i, above, level);
	return err ?: radix_table_free(heap, &above->sub);
}

/**
 * struct fold - a way of tables below a bucket of the finger
 * @level: the bucket's level
 * @deadline: where the way leads to
 * @above: the bucket
 * @most: nodes that may be copied for a chain; others stay
 * @left: nodes that may still be copied
 */
struct fold {
	u32 level;
	u64 deadline;
	struct radix_bucket *above;
	u32 most;
	u32 left;
};

/* Moves chains of a table of @level to the bucket above all. */
static int fold_some(struct bheap *heap, struct fold *fold,
		     struct radix_bucket *table, u32 level)
{
	u32 i, copies;
	int err;

	for (i = 0; i < FAN; i++) {
		if (!table[i].pos)
			continue;
		copies = radix_fill(table + i);
		if (copies >= NODES / 2)
			copies = 0;
		if (copies > fold->most || copies > fold->left)
			continue;
		fold->left -= copies;
		radix_lose_hand(&heap->radix, table + i, level);
		err = move_chain(heap, table + i, fold->above, fold->level);
		if (unlikely(err))
			return err;
	}
	return 0;
}

/* Moves chains of all tables on the way. */
static int fold_chains(struct bheap *heap, struct fold *fold)
{
	struct radix_bucket *bucket = fold->above, *table;
	u32 level = fold->level;
	int err;

	for (; bucket->sub; bucket = table + radix_digit(fold->deadline, level)) {
		table = radix_table(heap, bucket->sub);
		if (unlikely(!table))
			return heap->pages->error;
		level--;
		err = fold_some(heap, fold, table, level);
		if (unlikely(err))
			return err;
	}
	return 0;
}

static bool is_empty(const struct radix_bucket *table)
{
	u32 i;

	for (i = 0; i < FAN; i++)
		if (!radix_is_empty(table + i))
			return false;
	return true;
}

/* Gives back the lowest table on the way. Returns 1 if that is not empty, or there is
 * none.
 */
static int drop_lowest(struct bheap *heap, const struct fold *fold)
{
	struct radix_bucket *bucket = fold->above, *table = NULL;
	u32 level = fold->level, *ref = NULL;

	for (; bucket->sub; bucket = table + radix_digit(fold->deadline, level)) {
		ref = &bucket->sub;
		table = radix_table(heap, *ref);
		if (unlikely(!table))
			return heap->pages->error;
		level--;
	}
	if (!table || !is_empty(table))
		return 1;
	return radix_table_free(heap, ref);
}

/* Folds the tables on a way. */
static int fold_way(struct bheap *heap, struct fold *fold)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 digit = radix_digit(fold->deadline, fold->level);
	int err = radix_prepare_put(heap);

	if (unlikely(err))
		return err;
	fold->above = radix_table(heap, s->table[fold->level]);
	if (unlikely(!fold->above))
		return heap->pages->error;
	fold->above += digit;
	/* First those that are worth the most: each has a page. */
	err = fold_chains(heap, fold);
	fold->most = NODES / 2;
	err = err ?: fold_chains(heap, fold);
	while (!err) {
		/* A table that is given back may have moved another. */
		fold->above = radix_table(heap, s->table[fold->level]) + digit;
		err = drop_lowest(heap, fold);
	}
	if (unlikely(err < 0))
		return err;
	if (radix_is_empty(fold->above))
		radix_unmark(s, fold->level, digit);
	return 0;
}

int radix_fold(struct bheap *heap)
{
	struct bheap_radix_state *s = &heap->radix;
	struct fold fold = {
		.level = s->fold_level,
		.deadline = s->fold,
		.most = NODES / 16,
		.left = RADIX_FOLD_MOST,
	};
	int err;

	/* Since a page was missing, the front may have entered the bucket. */
	if (s->fold >= s->front && s->used[fold.level] &&
	    radix_level(s, s->fold) == fold.level) {
		err = fold_way(heap, &fold);
		if (unlikely(err))
			return err;
	}
	s->fold_level = 0;
	return 0;
}
