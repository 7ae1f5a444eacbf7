// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * The sweep of radix pages.
 *
 * The sweep first spreads what is detached. Then it checks bucket after bucket in
 * the order of deadlines, each before the tables below it, and last the near
 * part, to which nodes of the first buckets may have come. It prefetches the
 * timers of half a page a few nodes a call, then checks that half: the second
 * one first, behind which the page can end. What is left of a page that was not
 * half full fills the chain's last page, and becomes the last page itself. A
 * table whose buckets have together not half a page of nodes is given back; they
 * go to the bucket above it.
 */
#include "bheap_radix_pages.h"
#include "insert_heap.h"

/* The parts of a sweep, in their order. */
enum {
	RADIX_SWEEP_DETACHED,
	RADIX_SWEEP_FAR,
	RADIX_SWEEP_RUN,
	RADIX_SWEEP_NEAR,
	RADIX_SWEEP_SHRINK,
};

#define SWEPT		1	/* to the end; a negative value is an error */

/**
 * struct hand - where the sweep is
 * @bucket: the bucket
 * @above: the bucket that it divides; NULL = in the finger
 * @level: its level
 */
struct hand {
	struct radix_bucket *bucket;
	struct radix_bucket *above;
	u32 level;
};

/**
 * struct sweep - the callbacks of a sweep and the steps left
 * @stale: as in struct bheap_layout
 * @ahead: the same
 * @context: their first argument
 * @steps: nodes that may still be prefetched
 * @buckets: buckets that may still be passed
 */
struct sweep {
	bheap_stale_t *stale;
	bheap_ahead_t *ahead;
	void *context;
	u32 steps;
	u32 buckets;
};

/* Prefetches for the nodes of a page, as many as there are steps. Returns whether
 * it was the last of them.
 */
static bool prefetch_page(struct bheap_radix_state *s, struct sweep *sweep,
			  const struct bheap_node *nodes, u32 nr)
{
	/* One step is already counted. */
	sweep->steps++;
	while (sweep->steps && s->hand_nr < nr) {
		sweep->ahead(sweep->context, nodes + s->hand_nr++, BHEAP_SOON);
		sweep->steps--;
	}
	if (s->hand_nr < nr)
		return false;
	s->hand_nr = 0;
	return true;
}

/* Removes the stale of @nr nodes; the others keep their order. Returns how many
 * are left.
 */
static u32 filter(struct bheap *heap, const struct sweep *sweep,
		  struct bheap_node *nodes, u32 nr)
{
	u32 i, kept = 0;

	for (i = 0; i < nr; i++) {
		struct bheap_node node = nodes[i];

		nodes[kept] = node;
		kept += !sweep->stale(sweep->context, &node);
	}
	heap->nr -= nr - kept;
	return kept;
}

static int sweep_near(struct bheap *heap, struct sweep *sweep)
{
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node *near;
	u32 i;

	if (s->near) {
		near = radix_nodes(heap, RADIX_NEAR);
		if (unlikely(!near))
			return heap->pages->error;
		if (!prefetch_page(s, sweep, near, s->near))
			return 0;
		/* From the end, so that what fills a gap was checked. */
		for (i = s->near; i--;) {
			if (!sweep->stale(sweep->context, near + i))
				continue;
			heap->nr--;
			/* A node that came here from above was not. */
			if (insert_heap_remove(near, i, s->near--))
				i++;
		}
	}
	s->hand_phase = RADIX_SWEEP_SHRINK;
	return 0;
}

static int sweep_run(struct bheap *heap, struct sweep *sweep)
{
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node *run;

	if (s->run_at < s->run_nr) {
		run = radix_nodes(heap, RADIX_RUN);
		if (unlikely(!run))
			return heap->pages->error;
		run += s->run_at;
		if (!prefetch_page(s, sweep, run, s->run_nr - s->run_at))
			return 0;
		s->run_nr = s->run_at +
			    filter(heap, sweep, run, s->run_nr - s->run_at);
	}
	s->hand_phase = RADIX_SWEEP_NEAR;
	return 0;
}

/* Finds the bucket where the hand is. Returns SWEPT after the last. */
static int find_hand(struct bheap *heap, struct hand *hand)
{
	struct bheap_radix_state *s = &heap->radix;

	if (s->hand < s->front) {
		s->hand = s->front;
		s->hand_level = s->level;
		radix_hand_to_page(s, 0);
	}
	for (;;) {
		hand->level = radix_level(s, s->hand);
		if (s->used[hand->level])
			break;
		/* The rest of the finger's table is empty. */
		if (hand->level == LEVELS - 1)
			return SWEPT;
		s->hand = radix_floor(s->hand, hand->level + 1) +
			  (1ULL << (hand->level + 1) * BITS);
		s->hand_level = radix_level_at(s->hand);
		radix_hand_to_page(s, 0);
		if (!s->hand)
			return SWEPT;
	}
	hand->above = NULL;
	hand->bucket = radix_table(heap, s->table[hand->level]);
	if (unlikely(!hand->bucket))
		return heap->pages->error;
	hand->bucket += radix_digit(s->hand, hand->level);
	while (hand->level > s->hand_level && hand->bucket->sub) {
		hand->above = hand->bucket;
		hand->bucket = radix_table(heap, hand->bucket->sub);
		if (unlikely(!hand->bucket))
			return heap->pages->error;
		hand->level--;
		hand->bucket += radix_digit(s->hand, hand->level);
	}
	s->hand_level = hand->level;
	return 0;
}

static void unmark_if_empty(struct bheap_radix_state *s, const struct hand *hand)
{
	if (!hand->above && radix_is_empty(hand->bucket))
		radix_unmark(s, hand->level, radix_digit(s->hand, hand->level));
}

/* Takes a page out of its chain, whose neighbours' records are in memory. */
static void unlink_page(struct bheap *heap, struct radix_bucket *bucket,
			u32 page, const struct radix_page *record)
{
	if (page == bucket->head)
		bucket->head = record->next;
	else
		radix_page(heap, record->prev)->next = record->next;
	if (page == bucket->tail)
		bucket->tail = record->prev;
	else
		radix_page(heap, record->next)->prev = record->prev;
}

/* Removes nodes from the last page of a chain. @kept are left. */
static void shorten_tail(struct bheap *heap, struct radix_bucket *bucket,
			 struct radix_page *record, u32 kept)
{
	u32 page = bucket->tail;

	bucket->pos -= radix_fill(bucket) - kept;
	if (kept)
		return;
	if (bucket->pos) {
		unlink_page(heap, bucket, page, record);
		record = radix_page(heap, bucket->tail);
		record->next = 0;
		bucket->pos -= NODES - record->nr;
	}
	radix_page_put(heap, page);
}

/* Lets what is left of a page that is less than half full fill the last one, or
 * be the last.
 */
static void merge_page(struct bheap *heap, struct radix_bucket *bucket, u32 page,
		       struct radix_page *record, u32 kept)
{
	struct bheap_node *nodes = radix_nodes(heap, page);
	struct bheap_node *tail = radix_nodes(heap, bucket->tail);
	u32 fill = radix_fill(bucket), nr;
	struct radix_page *last;

	if (bucket->least != bucket->last)
		bucket->is_mixed = true;
	nr = NODES - fill < kept ? NODES - fill : kept;
	memcpy(tail + fill, nodes + kept - nr, nr * sizeof(*nodes));
	bucket->pos += nr;
	kept -= nr;
	unlink_page(heap, bucket, page, record);
	if (!kept) {
		bucket->pos -= NODES;
		radix_page_put(heap, page);
		return;
	}
	last = radix_page(heap, bucket->tail);
	last->nr = NODES;
	last->next = page;
	record->prev = bucket->tail;
	record->next = 0;
	bucket->tail = page;
	bucket->pos -= NODES - kept;
}

/* Checks half of the page of a chain where the hand is. */
static int sweep_page(struct bheap *heap, const struct hand *hand,
		      struct sweep *sweep)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_bucket *bucket = hand->bucket;
	u32 page = s->hand_page, nr, from, to, kept, next;
	struct radix_page *record = radix_page(heap, page);
	struct bheap_node *nodes;
	bool is_tail = page == bucket->tail;
	int err;

	if (unlikely(!record))
		return heap->pages->error;
	nodes = radix_nodes(heap, page);
	if (unlikely(!nodes))
		return heap->pages->error;
	nr = is_tail ? radix_fill(bucket) : record->nr;
	from = s->hand_half || nr <= NODES / 2 ? 0 : NODES / 2;
	to = from || nr <= NODES / 2 ? nr : NODES / 2;
	if (!prefetch_page(s, sweep, nodes + from, to - from))
		return 0;
	/* All that may change. */
	err = radix_prepare_put(heap);
	if (unlikely(err))
		return err;
	if (unlikely(!radix_page(heap, bucket->tail)) ||
	    unlikely(!radix_nodes(heap, bucket->tail)) ||
	    unlikely(page != bucket->head && !radix_page(heap, record->prev)) ||
	    unlikely(!is_tail && !radix_page(heap, record->next)))
		return heap->pages->error;

	next = is_tail ? 0 : record->next;
	kept = from + filter(heap, sweep, nodes + from, to - from);
	if (kept < to) {
		memmove(nodes + kept, nodes + to, (nr - to) * sizeof(*nodes));
		kept += nr - to;
		if (is_tail)
			shorten_tail(heap, bucket, record, kept);
		else if (kept >= NODES / 2)
			record->nr = kept;
		else
			merge_page(heap, bucket, page, record, kept);
		unmark_if_empty(s, hand);
	}
	if (from)
		s->hand_half = true;
	else
		radix_hand_to_page(s, next ?: RADIX_HAND_LOST);
	return 0;
}

/* Folds the hand's table, if it has few nodes. */
static int collapse(struct bheap *heap, const struct hand *hand)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 level, digit;
	struct radix_bucket *bucket;
	int err;

	/* Nodes that are being spread may come to it. */
	if (s->spread[BHEAP_RADIX_BACKGROUND].head)
		return 0;
	err = radix_fold_table(heap, hand->above, hand->level + 1);
	if (unlikely(err))
		return err;
	/* In the finger, that may have left the bucket above empty. */
	level = radix_level(s, s->hand);
	digit = radix_digit(s->hand, level);
	bucket = radix_table(heap, s->table[level]);
	if (unlikely(!bucket))
		return heap->pages->error;
	if (radix_is_empty(bucket + digit))
		radix_unmark(s, level, digit);
	return 0;
}

/* Moves the hand behind the chain of its bucket. */
static int next_bucket(struct bheap *heap, const struct hand *hand)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 level = hand->level;
	int err;

	radix_hand_to_page(s, 0);
	if (hand->bucket->sub) {
		s->hand = radix_floor(s->hand, level);
		if (s->hand < s->front)
			s->hand = s->front;
		s->hand_level = level - 1;
		return 0;
	}
	if (hand->above && radix_digit(s->hand, level) == FAN - 1) {
		/* Again if it fails: the chain is then checked once more. */
		err = collapse(heap, hand);
		if (unlikely(err))
			return err;
	}
	s->hand = radix_floor(s->hand, level) + (1ULL << level * BITS);
	s->hand_level = radix_level_at(s->hand);
	return s->hand ? 0 : SWEPT;
}

static int end_far(struct bheap_radix_state *s)
{
	s->hand_phase = RADIX_SWEEP_RUN;
	s->hand_nr = 0;
	return 0;
}

static int sweep_far(struct bheap *heap, struct sweep *sweep)
{
	struct bheap_radix_state *s = &heap->radix;
	struct hand hand;
	int err;

	err = s->tables ? find_hand(heap, &hand) : SWEPT;
	if (err == SWEPT)
		return end_far(s);
	if (unlikely(err))
		return err;
	if (!s->hand_page && hand.bucket->pos)
		s->hand_page = hand.bucket->head;
	if (s->hand_page && s->hand_page != RADIX_HAND_LOST)
		return sweep_page(heap, &hand, sweep);
	sweep->buckets--;
	sweep->steps++;
	err = next_bucket(heap, &hand);
	return err == SWEPT ? end_far(s) : err;
}

/* Spreads a page of what is detached, for a step a node. */
static int sweep_detached(struct bheap *heap, struct sweep *sweep)
{
	struct bheap_radix_state *s = &heap->radix;
	u32 which = !s->spread[BHEAP_RADIX_FRONT].head;

	if (s->spread[which].head) {
		sweep->steps -= sweep->steps < NODES ? sweep->steps : NODES;
		return radix_spread(heap, which);
	}
	s->hand_phase = RADIX_SWEEP_FAR;
	s->hand = s->front;
	s->hand_level = s->level;
	radix_hand_to_page(s, 0);
	return 0;
}

/* Takes pages that the sweep has freed from the end of those in use. */
static int sweep_shrink(struct bheap *heap, struct sweep *sweep)
{
	if (!radix_has_surplus(&heap->radix))
		return SWEPT;
	sweep->steps -= sweep->steps < NODES / 4 ? sweep->steps : NODES / 4;
	return radix_shrink(heap);
}

bool radix_sweep(struct bheap *heap, u32 steps, bheap_stale_t *stale,
		 bheap_ahead_t *ahead, void *context)
{
	struct bheap_radix_state *s = &heap->radix;
	struct sweep sweep = { stale, ahead, context, steps, steps };
	int err = 0;

	if (!heap->sweep) {
		heap->sweep = 1;
		s->hand_phase = RADIX_SWEEP_DETACHED;
	}
	while (!err && sweep.steps && sweep.buckets) {
		sweep.steps--;
		switch (s->hand_phase) {
		case RADIX_SWEEP_DETACHED:
			err = sweep_detached(heap, &sweep);
			break;
		case RADIX_SWEEP_FAR:
			err = sweep_far(heap, &sweep);
			break;
		case RADIX_SWEEP_RUN:
			err = sweep_run(heap, &sweep);
			break;
		case RADIX_SWEEP_NEAR:
			err = sweep_near(heap, &sweep);
			break;
		default:
			err = sweep_shrink(heap, &sweep);
			break;
		}
	}
	if (s->tables && !radix_far_nr(heap))
		radix_release(heap);
	radix_set_pages(heap);
	if (err == SWEPT)
		heap->sweep = 0;
	return heap->sweep;
}
