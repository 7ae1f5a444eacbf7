// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The front of radix pages: where the far part begins.
 *
 * The finger has the tables on the way from the whole range of deadlines down
 * to the front, one a level. Those below the front's own level are empty, or
 * hold what came since. The front advances when the near part is used up, a
 * bounded step at a time: a chain is spread by a page, a bucket is entered or
 * opened. It retreats when too much is armed before it.
 */
#include "bheap_radix_pages.h"

/* Finds the finger's first bucket in use. Returns its level. */
static u32 first_bucket(const struct bheap_radix_state *s, u64 *startp)
{
	u32 level = fls64(s->used_levels & -s->used_levels) - 1;
	u32 digit = fls64(s->used[level] & -(u64)s->used[level]) - 1;

	*startp = radix_floor(s->front, level + 1) +
		  ((u64)digit << level * BITS);
	return level;
}

u64 radix_far_bound(const struct bheap *heap)
{
	const struct bheap_radix_state *s = &heap->radix;
	u64 bound = ~0ULL, start;
	const struct radix_bucket *table;
	u32 level, i;

	for (i = 0; i < BHEAP_RADIX_SPREADS; i++)
		if (s->spread[i].head && s->spread[i].from < bound)
			bound = s->spread[i].from;
	if (!s->used_levels)
		return bound;
	level = first_bucket(s, &start);
	table = radix_table_peek(heap, s->table[level]);
	if (likely(table) && !table[radix_digit(start, level)].sub)
		start = table[radix_digit(start, level)].least;
	if (start < s->far_from)
		start = s->far_from;
	/* The front may be within the bucket. */
	if (start < s->front)
		start = s->front;
	return start < bound ? start : bound;
}

void radix_release(struct bheap *heap)
{
	struct bheap_radix_state *s = &heap->radix;

	memset(s->table, 0, sizeof(s->table));
	memset(s->used, 0, sizeof(s->used));
	s->used_levels = 0;
	s->tables = 0;
	s->most = 0;
	s->fold_level = 0;
	s->pages_end = 0;
	s->free = 0;
	s->free_nr = 0;
	s->hints = 0;
	radix_hand_to_page(s, 0);
	radix_set_pages(heap);
}

int radix_retreat(struct bheap *heap, u64 front, u64 last)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 top, level, first = LEVELS, at = radix_level_at(front);
	struct radix_bucket *above;
	u64 left = s->front;
	int err;

	if (!s->tables) {
		s->front = front;
		s->level = at;
		s->far_from = ~0ULL;
		return 0;
	}
	/* A missing page may have kept it from that. */
	if (unlikely(s->fold_level)) {
		err = radix_fold(heap);
		if (unlikely(err))
			return err;
	}
	/* Room for those that this makes, and for the finger's later on. */
	radix_note_most(heap);
	if (unlikely(s->tables + 2 * LEVELS > radix_tables_max(s->most)))
		return -ENOSPC;
	top = radix_level_of(s->front ^ front);
	/* Bring in all tables that change. */
	for (level = s->level; level < top; level++) {
		if (s->used[level] && first > level)
			first = level;
		if (first > level)
			continue;
		if (!s->used[level + 1]) {
			err = radix_finger_prepare(heap, level + 1);
			if (unlikely(err))
				return err;
		}
	}
	for (level = first; level < top; level++)
		if (unlikely(!radix_table(heap, s->table[level + 1])))
			return heap->pages->error;

	/* Each table that the finger leaves divides the bucket above it. */
	for (level = first; level < top; level++) {
		u32 digit = radix_digit(s->front, level + 1);

		above = radix_table(heap, s->table[level + 1]) + digit;
		core_broken(!above->sub);
		if (!above->pos)
			above->least = s->front;
		above->sub = s->table[level];
		s->table[level] = 0;
		s->used[level] = 0;
		s->used_levels &= ~(1ULL << level);
		radix_mark(s, level + 1, digit);
	}
	if (top > s->level) {
		/* The nodes that become far now are divided into one table. If they were
		 * divided further, each such page would leave tables of few nodes.
		 */
		level = radix_level_of(front ^ last);
		if (level < at)
			level = at;
		s->level = level < top ? level : top;
	}
	s->front = front;
	if (likely(first >= top || s->tables <= radix_tables_few(heap->nr)))
		return 0;
	s->fold_level = top;
	s->fold = left;
	return radix_fold(heap);
}

/* Lets the front enter a bucket: its table becomes the finger's, and its own
 * chain is spread.
 */
static int enter(struct bheap *heap, struct radix_bucket *bucket, u32 level,
		 u64 start)
{
	struct bheap_radix_state *s = &heap->radix;
	const struct radix_bucket *sub;
	u32 digit = radix_digit(start, level), below = level - 1, i, used = 0;
	int err;

	if (bucket->sub) {
		/* A table of the finger that is in the way is empty. */
		if (s->table[below])
			return radix_table_free(heap, &s->table[below]);
		sub = radix_table(heap, bucket->sub);
		if (unlikely(!sub))
			return heap->pages->error;
		for (i = 0; i < FAN; i++)
			used |= !radix_is_empty(sub + i) << i;
	} else {
		below = radix_level_of(bucket->least ^ bucket->last);
		start = radix_floor(bucket->least, below + 1);
	}
	err = radix_detach(heap, bucket, level, BHEAP_RADIX_FRONT);
	if (unlikely(err))
		return err;
	if (bucket->sub) {
		s->table[below] = bucket->sub;
		bucket->sub = 0;
		s->used[below] = used;
		if (used)
			s->used_levels |= 1ULL << below;
	}
	radix_unmark(s, level, digit);
	/* It may be within the bucket. */
	if (start > s->front)
		s->front = start;
	s->level = below;
	return 0;
}

/* Moves what is left of the sorted run to the far part, which has earlier
 * nodes. None of the run is before the front.
 */
static int return_run(struct bheap *heap)
{
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node *run = radix_nodes(heap, RADIX_RUN);
	int err;

	if (unlikely(!run))
		return heap->pages->error;
	while (s->run_at < s->run_nr) {
		err = radix_far_push(heap, run + s->run_at);
		if (unlikely(err))
			return err;
		s->run_at++;
	}
	return 0;
}

int radix_advance(struct bheap *heap, bheap_review_t *review,
		  bheap_ahead_t *ahead, void *context)
{
	struct bheap_radix_state *s = &heap->radix;
	const struct bheap_radix_detached *behind;
	struct radix_turn turn = {
		.review = review,
		.ahead = ahead,
		.context = context,
	};
	int err;

	if (s->run_at < s->run_nr)
		return return_run(heap);
	if (s->spread[BHEAP_RADIX_FRONT].head)
		return radix_spread(heap, BHEAP_RADIX_FRONT);
	behind = &s->spread[BHEAP_RADIX_BACKGROUND];
	if (!s->used_levels)
		return core_broken(behind->head) ? -EIO :
		       radix_spread(heap, BHEAP_RADIX_BACKGROUND);
	turn.level = first_bucket(s, &turn.start);
	turn.bucket = radix_table(heap, s->table[turn.level]);
	if (unlikely(!turn.bucket))
		return heap->pages->error;
	turn.bucket += radix_digit(turn.start, turn.level);
	if (behind->head &&
	    behind->from <= radix_last(turn.start, turn.level))
		return radix_spread(heap, BHEAP_RADIX_BACKGROUND);
	if (turn.bucket->sub)
		return enter(heap, turn.bucket, turn.level, turn.start);
	err = radix_open(heap, &turn);
	if (err == -E2BIG)
		err = enter(heap, turn.bucket, turn.level, turn.start);
	return err;
}
