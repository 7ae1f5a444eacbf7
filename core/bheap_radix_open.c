// SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later)
/*
 * Open the first buckets of radix pages: their nodes become the sorted run.
 *
 * At most a page of nodes is copied, looked at while it is in the cache, and
 * sorted. What is stale is dropped here and never sorted. What has moved goes
 * where it belongs now. Small buckets are opened together.
 *
 * A part is sorted by counting, without a branch that depends on a deadline: its
 * range is divided into places, numbers of two digits, and the nodes are ordered by
 * the lower digit, then by the higher. Most then have a place of their own, and are
 * in order. Where many share one, the part is merge-sorted.
 */
#include "bheap_radix_pages.h"
#include "insert_heap.h"
#include "runs.h"

#define PARTS		8U	/* buckets opened together */
#define DIGIT_BITS	6
#define DIGITS		(1U << DIGIT_BITS)
#define FEW		12U	/* nodes that are inserted one by one */
#define MOVES		4U	/* for each node that is inserted, above which to merge */
#define AHEAD		24U

/**
 * struct part - a bucket to be opened, and its nodes
 * @bucket: the bucket
 * @level: its level
 * @start: the first deadline of its range
 * @pages: pages to take from its chain, at most two
 * @nr: their nodes
 */
struct part {
	struct radix_bucket *bucket;
	u32 level;
	u64 start;
	u32 pages;
	u32 nr;
};

/* Inserts the nodes of @from one by one. Returns false, with @to undefined, once that
 * has taken more than @moves moves of others.
 */
static bool insertion_sort(const struct bheap_node *from, u32 nr, u32 moves,
			   struct bheap_node *to)
{
	u32 i, j;

	for (i = 0; i < nr; i++) {
		struct bheap_node node = from[i];

		for (j = i; j && node_less(&node, to + j - 1); j--)
			to[j] = to[j - 1];
		to[j] = node;
		if (unlikely(i - j > moves))
			return false;
		moves -= i - j;
	}
	return true;
}

/* Merges two runs that follow each other. */
static void merge(const struct bheap_node *a, const struct bheap_node *b,
		  const struct bheap_node *end, struct bheap_node *to)
{
	const struct bheap_node *middle = b;

	while (a < middle && b < end) {
		bool is_b = node_less(b, a);

		*to++ = *runs_either(a, b, is_b);
		a += !is_b;
		b += is_b;
	}
	memcpy(to, a, (middle - a) * sizeof(*a));
	memcpy(to + (middle - a), b, (end - b) * sizeof(*b));
}

/* Sorts @from to @to, which does not overlap it. Both change. */
static void merge_sort(struct bheap_node *from, u32 nr, struct bheap_node *to)
{
	struct bheap_node *source = from, *target = to, *swap;
	u32 len, i, middle, end;

	for (len = 1; len < nr; len *= 2) {
		for (i = 0; i < nr; i = end) {
			middle = i + len < nr ? i + len : nr;
			end = middle + len < nr ? middle + len : nr;
			merge(source + i, source + middle, source + end,
			      target + i);
		}
		swap = source;
		source = target;
		target = swap;
	}
	if (source != to)
		memcpy(to, source, nr * sizeof(*to));
}

/* Makes of how many nodes have each digit where the first of them goes. */
static void count_to_place(u16 *digits)
{
	u32 i, here, sum = 0;

	for (i = 0; i < DIGITS; i++) {
		here = digits[i];
		digits[i] = sum;
		sum += here;
	}
}

/* Sorts @from to @to, which does not overlap it. Both change. */
static void radix_sort(struct bheap_node *from, u32 nr, struct bheap_node *to)
{
	u16 low[DIGITS] = { 0 }, high[DIGITS] = { 0 };
	u64 least = ~0ULL, last = 0, before = 0;
	bool is_sorted = true;
	u32 i, shift, place;

	if (nr <= FEW) {
		insertion_sort(from, nr, FEW * FEW, to);
		return;
	}
	for (i = 0; i < nr; i++) {
		u64 deadline = from[i].deadline;

		is_sorted &= deadline >= before;
		before = deadline;
		least = deadline < least ? deadline : least;
		last = deadline > last ? deadline : last;
	}
	if (is_sorted) {
		memcpy(to, from, nr * sizeof(*to));
		return;
	}
	shift = fls64(last - least);
	shift = shift > 2 * DIGIT_BITS ? shift - 2 * DIGIT_BITS : 0;
	for (i = 0; i < nr; i++) {
		place = (from[i].deadline - least) >> shift;
		low[place % DIGITS]++;
		high[place / DIGITS]++;
	}
	count_to_place(low);
	count_to_place(high);
	for (i = 0; i < nr; i++) {
		place = (from[i].deadline - least) >> shift;
		to[low[place % DIGITS]++] = from[i];
	}
	for (i = 0; i < nr; i++) {
		place = (to[i].deadline - least) >> shift;
		from[high[place / DIGITS]++] = to[i];
	}
	if (!insertion_sort(from, nr, MOVES * nr, to))
		merge_sort(from, nr, to);
}

/* Finds how much of a bucket to take, for which there is @room. Returns 0, a
 * page's error, or -E2BIG.
 */
static int measure(struct bheap *heap, struct part *part, u32 room)
{
	const struct radix_bucket *bucket = part->bucket;
	const struct radix_page *head;

	part->pages = (bucket->pos + NODES - 1) / NODES;
	part->nr = radix_fill(bucket);
	head = radix_page(heap, bucket->head);
	if (unlikely(!head))
		return heap->pages->error;
	if (part->pages == 2)
		part->nr += head->nr;
	else if (part->pages > 2)
		part->nr = NODES + 1;
	if (part->nr > room && room == NODES && !bucket->is_mixed) {
		/* The first page of those in order will do. The next one becomes
		 * the first, and the last remains where it is.
		 */
		part->pages = 1;
		part->nr = head->nr;
		if (unlikely(!radix_nodes(heap, bucket->head)) ||
		    unlikely(!radix_nodes(heap, head->next)))
			return heap->pages->error;
		return 0;
	}
	if (part->nr > room)
		return -E2BIG;
	if (unlikely(!radix_nodes(heap, bucket->head)) ||
	    unlikely(!radix_page(heap, bucket->tail)) ||
	    unlikely(!radix_nodes(heap, bucket->tail)))
		return heap->pages->error;
	return 0;
}

/* Finds the finger's bucket in use that comes after @part. Returns false if there
 * is none, or its table is not in memory.
 */
static bool next_part(const struct bheap *heap, const struct part *part,
		      struct part *next)
{
	const struct bheap_radix_state *s = &heap->radix;
	u32 level = part->level, digit = radix_digit(part->start, level);
	u64 left = s->used[level] >> digit >> 1 << digit << 1;

	if (!left) {
		left = s->used_levels >> level >> 1 << level << 1;
		if (!left)
			return false;
		level = fls64(left & -left) - 1;
		left = s->used[level];
	}
	digit = fls64(left & -left) - 1;
	next->level = level;
	next->start = radix_floor(s->front, level + 1) +
		      ((u64)digit << level * BITS);
	next->bucket = radix_table(heap, s->table[level]);
	if (unlikely(!next->bucket))
		return false;
	next->bucket += digit;
	return true;
}

/* Finds the buckets to open, the first of them given. */
static int find_parts(struct bheap *heap, struct part *part, u32 *nrp)
{
	const struct bheap_radix_detached *behind =
		&heap->radix.spread[BHEAP_RADIX_BACKGROUND];
	u32 parts = 1, nr;
	int err = measure(heap, &part[0], NODES);

	if (err)
		return err;
	nr = part[0].nr;
	while (parts < PARTS && nr < NODES / 2 &&
	       next_part(heap, &part[parts - 1], &part[parts])) {
		struct part *next = &part[parts];

		if (next->bucket->sub ||
		    (behind->head &&
		     behind->from <= radix_last(next->start, next->level)))
			break;
		err = measure(heap, next, NODES - nr);
		if (err == -E2BIG)
			break;
		if (unlikely(err))
			return err;
		nr += next->nr;
		parts++;
	}
	*nrp = parts;
	return 0;
}

/* Moves the nodes of a part to @to and its pages to the free ones. Cannot fail. */
static void gather(struct bheap *heap, const struct part *part,
		   struct bheap_node *to)
{
	struct bheap_radix_state *s = &heap->radix;
	struct radix_bucket *bucket = part->bucket;
	u32 page = bucket->head, next, nr, left = part->nr, i;

	radix_lose_hand(s, bucket, part->level);
	for (i = 0; i < part->pages; i++) {
		const struct radix_page *record = radix_page(heap, page);

		nr = page == bucket->tail ? left : record->nr;
		next = record->next;
		memcpy(to, radix_nodes(heap, page), nr * sizeof(*to));
		to += nr;
		left -= nr;
		radix_page_put(heap, page);
		if (page == bucket->tail) {
			bucket->pos = 0;
			radix_unmark(s, part->level,
				     radix_digit(part->start, part->level));
			return;
		}
		page = next;
	}
	bucket->head = page;
	bucket->pos -= part->pages * NODES;
	bucket->least = radix_nodes(heap, page)->deadline;
}

/* Sends a node with a new deadline to its place, or keeps it. Returns whether it
 * is away.
 */
static bool send_moved(struct bheap *heap, const struct bheap_node *node)
{
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node *near;

	if (node->deadline >= s->front)
		return !radix_far_push(heap, node);
	near = s->near < NODES ? radix_nodes(heap, RADIX_NEAR) : NULL;
	if (!near)
		return false;
	insert_heap_up(near, s->near++, node);
	return true;
}

/* Drops the stale nodes of @node and sends away those that moved. Returns how
 * many are left.
 */
static u32 review_part(struct bheap *heap, const struct radix_turn *turn,
		       struct bheap_node *nodes, u32 nr)
{
	u32 i, kept = 0;

	for (i = 0; i < nr && i < AHEAD; i++)
		turn->ahead(turn->context, nodes + i, BHEAP_SOON);
	for (i = 0; i < nr; i++) {
		struct bheap_node node = nodes[i];

		if (i + AHEAD < nr)
			turn->ahead(turn->context, nodes + i + AHEAD,
				    BHEAP_SOON);
		if (!turn->review(turn->context, &node)) {
			heap->nr--;
			continue;
		}
		if (unlikely(node.deadline != nodes[i].deadline) &&
		    send_moved(heap, &node))
			continue;
		/* One that cannot be sent away keeps its old deadline. */
		nodes[kept++] = nodes[i];
	}
	return kept;
}

int radix_open(struct bheap *heap, const struct radix_turn *turn)
{
	struct part part[PARTS] = {
		{ turn->bucket, turn->level, turn->start, 0, 0 },
	};
	struct bheap_radix_state *s = &heap->radix;
	struct bheap_node *scratch, *run, *at;
	u32 parts, i, nr = 0;
	u64 end;
	int err;

	err = find_parts(heap, part, &parts);
	if (err)
		return err;
	err = radix_prepare_put(heap);
	if (unlikely(err))
		return err;
	scratch = radix_nodes(heap, RADIX_SCRATCH);
	if (unlikely(!scratch))
		return heap->pages->error;
	run = radix_nodes(heap, RADIX_RUN);
	if (unlikely(!run))
		return heap->pages->error;

	for (i = 0, at = scratch; i < parts; at += part[i++].nr)
		gather(heap, &part[i], at);
	end = radix_last(part[parts - 1].start, part[parts - 1].level) + 1;
	if (part[0].bucket->pos) {
		/* The rest follows in order. */
		s->front = part[0].bucket->least;
		s->level = part[0].level;
	} else {
		s->front = end ?: ~0ULL;
		s->level = end ? radix_level_at(end) : 0;
	}
	for (i = 0, at = scratch; i < parts; at += part[i++].nr) {
		u32 kept = part[i].nr;

		if (turn->review)
			kept = review_part(heap, turn, at, kept);
		radix_sort(at, kept, run + nr);
		nr += kept;
	}
	s->run_at = 0;
	s->run_nr = nr;
	return 0;
}
