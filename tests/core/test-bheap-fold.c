// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Radix pages: the finger's tables when the front moves back, and their folds. The far
 * part is built here node by node, because these are states that pushes and pops reach
 * seldom: a lowest table whose first bucket alone is in use, a page that is missing just
 * where it is needed.
 */
#include "support.h"
#include "bheap_radix_pages.h"

#define MOST	(16 * FAN * NODES)
#define TOP	12U	/* the level that the front leaves */

/**
 * struct far - a heap with a far part alone, behind its first node
 * @sum: of all deadlines in it
 */
struct far {
	struct bheap heap;
	struct test_faults faults;
	struct test_pages run;
	u64 sum;
};

/* Begins with a front of digit 2 at @level, 1 at those above, and 0 below it. The front
 * has entered its bucket down to @lowest.
 */
static void far_init(struct far *far, u32 level, u32 lowest)
{
	const struct bheap_node first = { .deadline = 0 };
	u64 front = 2ULL << level * BITS;
	u32 i;

	memset(far, 0, sizeof(*far));
	far->faults.error = -EIO;
	test_pages_init(&far->run, bheap_pages_max(&bheap_radix, MOST), &far->faults,
			test_seed);
	bheap_init(&far->heap, &bheap_radix, &far->run.pages);
	assert_int_equal(bheap_push(&far->heap, &first), 0);
	for (i = level + 1; i < LEVELS; i++)
		front |= 1ULL << i * BITS;
	assert_int_equal(radix_retreat(&far->heap, front, front), 0);
	far->heap.radix.level = lowest;
}

static void far_push(struct far *far, u64 deadline)
{
	const struct bheap_node node = { .deadline = deadline, .slot = far->heap.nr };

	assert_true(deadline >= far->heap.radix.front);
	assert_int_equal(radix_push_anywhere(&far->heap, &node), 0);
	far->heap.nr++;
	far->sum += deadline;
}

/* Returns the first deadline of bucket @digit of the finger's table of @level. */
static u64 bucket_at(const struct far *far, u32 level, u32 digit)
{
	return radix_floor(far->heap.radix.front, level + 1) |
	       (u64)digit << level * BITS;
}

static void subtract(void *context, const struct bheap_node *node)
{
	*(u64 *)context -= node->deadline;
}

/* Nothing is lost, and all is where it belongs. */
static void far_check(struct far *far)
{
	u64 sum = far->sum;

	assert_int_equal(bheap_radix.validate(&far->heap, subtract, &sum), 0);
	assert_true(!sum);
}

static void far_free(struct far *far)
{
	test_pages_free(&far->run);
}

/* A fold copies a bounded number of nodes. The lowest table keeps what it has in its first
 * bucket.
 */
static void a_table_with_its_first_bucket_stays(void **state)
{
	u32 level, digit, i;
	struct far far;
	u64 front;

	(void)state;
	if (FAN < 16)
		skip();
	far_init(&far, TOP, 1);
	front = far.heap.radix.front;
	for (level = 2; level < TOP; level++)
		for (digit = 2; digit < FAN; digit++)
			for (i = 1; i < NODES / 2; i++)
				far_push(&far, bucket_at(&far, level, digit) + i);
	for (i = 1; i < NODES / 2; i++)
		far_push(&far, front + i % FAN);
	far_check(&far);
	assert_int_equal(radix_retreat(&far.heap, front - (1ULL << TOP * BITS), front),
			 0);
	far_check(&far);
	far.heap.radix.fold_level = TOP;
	far.heap.radix.fold = front;
	assert_int_equal(radix_fold(&far.heap), 0);
	assert_int_equal(far.heap.radix.fold_level, 0);
	/* The lowest is the first to go, and is not empty. */
	assert_int_equal(far.heap.radix.tables, TOP);
	far_check(&far);
	far_free(&far);
}

/* The front moves back past four tables, and each page that it asks for fails in turn. */
static void each_page_of_a_retreat_is_missing_once(void **state)
{
	const u32 top = 4;
	u32 level, k;
	struct far far;
	u64 front;
	int err = -EIO;

	(void)state;
	if (FAN < 16)
		skip();
	for (k = 1; err; k++) {
		far_init(&far, top, 0);
		front = far.heap.radix.front;
		/* The tables above first: that of @top has a page without those below. */
		for (level = top; level < top + 8; level++)
			far_push(&far, bucket_at(&far, level, 3));
		for (level = 0; level < top; level++)
			far_push(&far, bucket_at(&far, level, 3));
		test_pages_evict_all(&far.run);
		far.faults.fail_in = k;
		err = radix_retreat(&far.heap, front - (1ULL << top * BITS), front);
		far.faults.fail_in = 0;
		assert_true(!err || err == -EIO);
		assert_true(far.heap.radix.front < front || err);
		far_check(&far);
		far_free(&far);
	}
	/* A large page has all tables. */
	assert_true(k > 3 || TABLES_PER_PAGE > 8);
}

/* A missing page may have kept a fold back: the next retreat does it first. Its table may
 * be gone by then.
 */
static void a_fold_that_is_owed_comes_first(void **state)
{
	struct bheap_radix_state *s;
	struct far far;
	u64 front;

	(void)state;
	if (FAN < 16)
		skip();
	far_init(&far, 4, 0);
	s = &far.heap.radix;
	front = s->front;
	far_push(&far, bucket_at(&far, 5, 3));
	assert_false(s->used[6]);
	s->table[6] = ~0U;	/* to be looked at by nobody */
	s->fold_level = 6;
	s->fold = bucket_at(&far, 6, 3);
	assert_int_equal(radix_retreat(&far.heap, front - (1ULL << 4 * BITS), front), 0);
	assert_int_equal(s->fold_level, 0);
	s->table[6] = 0;
	far_check(&far);
	far_free(&far);
}

/* Begins with a table of @nr nodes that the front, once at *@leftp, has left. Returns the
 * bucket above it.
 */
static struct radix_bucket *far_init_table(struct far *far, u32 nr, u64 *leftp)
{
	struct bheap_radix_state *s = &far->heap.radix;
	u32 i;

	far_init(far, 1, 0);
	*leftp = s->front;
	for (i = 0; i < nr; i++)
		far_push(far, *leftp + i % FAN);
	assert_int_equal(radix_retreat(&far->heap, *leftp - FAN, *leftp), 0);
	return radix_table(&far->heap, s->table[1]) + radix_digit(*leftp, 1);
}

/* Returns the bucket of that table where the front was. */
static struct radix_bucket *bucket_below(struct far *far,
					 const struct radix_bucket *above, u64 left)
{
	return radix_table(&far->heap, above->sub) + radix_digit(left, 0);
}

/* Does the fold of that table. */
static void far_fold(struct far *far, u64 left)
{
	far->heap.radix.fold_level = 1;
	far->heap.radix.fold = left;
	assert_int_equal(radix_fold(&far->heap), 0);
}

/* The node of a table was the only one: with the table the bucket above it is empty. */
static void the_bucket_of_empty_tables_is_not_in_use(void **state)
{
	struct radix_bucket *above, *bucket;
	struct bheap_radix_state *s;
	struct far far;
	u64 front;

	(void)state;
	if (FAN < 16)
		skip();
	above = far_init_table(&far, 1, &front);
	s = &far.heap.radix;
	bucket = bucket_below(&far, above, front);
	assert_int_equal(bucket->pos, 1);
	radix_page_put(&far.heap, bucket->tail);
	bucket->pos = 0;
	far.heap.nr--;
	far.sum -= front;
	far_fold(&far, front);
	assert_false(s->used[1] >> radix_digit(front, 1) & 1);
	far_check(&far);
	far_free(&far);
}

/* A fold may come amid a sweep, which is at a chain that the fold moves: its page may be
 * another chain's from then on.
 */
static void a_fold_takes_the_chain_from_the_sweep(void **state)
{
	struct radix_bucket *above, *bucket;
	struct bheap_radix_state *s;
	struct far far;
	u64 front;

	(void)state;
	if (FAN < 16)
		skip();
	above = far_init_table(&far, 1, &front);
	s = &far.heap.radix;
	bucket = bucket_below(&far, above, front);
	s->hand = front;
	s->hand_level = 0;
	radix_hand_to_page(s, bucket->head);
	far_fold(&far, front);
	assert_int_equal(s->hand_page, RADIX_HAND_LOST);
	far_check(&far);
	far_free(&far);
}

static bool never_stale(void *context, const struct bheap_node *node)
{
	(void)context, (void)node;
	return false;
}

static void ignore(void *context, const struct bheap_node *node,
		   enum bheap_when when)
{
	(void)context, (void)node, (void)when;
}

/* The tables below where the sweep was may be gone when it goes on. It then is at the
 * bucket above them, and so loses the chain when that is taken.
 */
static void the_sweep_knows_its_level(void **state)
{
	struct bheap_radix_state *s;
	struct far far;

	(void)state;
	if (FAN < 16)
		skip();
	far_init(&far, 1, 1);
	s = &far.heap.radix;
	far_push(&far, bucket_at(&far, 1, 3));
	bheap_radix.sweep(&far.heap, 1, never_stale, ignore, NULL);
	s->hand = bucket_at(&far, 1, 3);
	s->hand_level = 0;
	radix_hand_to_page(s, 0);
	bheap_radix.sweep(&far.heap, 1, never_stale, ignore, NULL);
	assert_int_equal(s->hand_level, 1);
	far_free(&far);
}

/* Else a call would copy a page of nodes and more. */
static void a_table_of_many_nodes_is_not_folded(void **state)
{
	struct radix_bucket *above;
	struct far far;
	u64 front;
	u32 more;

	(void)state;
	if (FAN < 16)
		skip();
	for (more = 0; more < 2; more++) {
		above = far_init_table(&far, NODES / 2 + more, &front);
		assert_true(above->sub);
		assert_int_equal(radix_fold_table(&far.heap, above, 1), 0);
		assert_int_equal(!!above->sub, more);
		far_check(&far);
		far_free(&far);
	}
}

/* Makes @nr pages and frees them: the last is the first of the free ones. */
static void free_pages(struct far *far, u32 nr)
{
	struct radix_page *record, *last = NULL;
	u32 first = 0, page, next;
	struct bheap_node *nodes;

	while (nr--) {
		page = radix_page_get(&far->heap, &nodes, &record);
		assert_true(page);
		record->next = 0;
		if (last)
			last->next = page;
		else
			first = page;
		last = record;
	}
	for (page = first; page; page = next) {
		next = radix_page(&far->heap, page)->next;
		radix_page_put(&far->heap, page);
	}
}

/* A table of few nodes is folded, and each page that this asks for fails in turn: the
 * first free one's record, too, in whose list the chains' pages go.
 */
static void each_page_of_a_fold_is_missing_once(void **state)
{
	struct radix_bucket *above;
	struct far far;
	u64 front;
	int err = -EIO;
	u32 k;

	(void)state;
	if (FAN < 16 || bheap_pages_max(&bheap_radix, MOST) < RADIX_BLOCKS + 4 * BLOCK)
		skip();
	for (k = 1; err; k++) {
		far_init_table(&far, NODES / 2 < FAN ? NODES / 2 : FAN, &front);
		free_pages(&far, 3 * BLOCK);
		far_check(&far);
		test_pages_evict_all(&far.run);
		above = radix_table(&far.heap, far.heap.radix.table[1]) +
			radix_digit(front, 1);
		assert_true(above->sub);
		far.faults.fail_in = k;
		err = radix_fold_table(&far.heap, above, 1);
		far.faults.fail_in = 0;
		assert_true(!err || err == -EIO);
		assert_true(!above->sub == !err);
		far_check(&far);
		far_free(&far);
	}
	assert_true(k > 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_with_its_first_bucket_stays),
		cmocka_unit_test(each_page_of_a_retreat_is_missing_once),
		cmocka_unit_test(a_fold_that_is_owed_comes_first),
		cmocka_unit_test(the_bucket_of_empty_tables_is_not_in_use),
		cmocka_unit_test(a_fold_takes_the_chain_from_the_sweep),
		cmocka_unit_test(the_sweep_knows_its_level),
		cmocka_unit_test(a_table_of_many_nodes_is_not_folded),
		cmocka_unit_test(each_page_of_a_fold_is_missing_once),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
