// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The index against a naive map: the id of each slot, looked up by all.
 */
#include <stdlib.h>

#include "siphash.h"
#include "support.h"

/* Enough for tables of several pages. */
#define LIMIT	(INDEX_PER_PAGE > 1024 ? 4 * INDEX_PER_PAGE : 4096U)

/**
 * struct subject - an index, its slots, and the expected contents
 * @ids: by slot number; 0 = free
 * @hashes: likewise; as given to the index
 * @moving: the second table was in use
 */
struct subject {
	struct index index;
	struct slots slots;
	struct test_faults faults[3];	/* of each run */
	struct test_pages table[2], run;
	u64 ids[LIMIT + 1];
	u32 hashes[LIMIT + 1];
	u32 nr;
	u64 random;
	u32 moving;
};

static void subject_init(struct subject *subject)
{
	const u64 seed[2] = { test_seed, ~test_seed };

	memset(subject, 0, sizeof(*subject));
	subject->random = test_seed;
	test_pages_init(&subject->table[0], index_pages_max(LIMIT),
			&subject->faults[0], test_seed);
	test_pages_init(&subject->table[1], index_pages_max(LIMIT),
			&subject->faults[1], test_seed + 1);
	test_pages_init(&subject->run, slots_pages_max(LIMIT),
			&subject->faults[2], test_seed + 2);
	slots_init(&subject->slots, &subject->run.pages);
	index_init(&subject->index, &subject->table[0].pages,
		   &subject->table[1].pages, seed);
}

static void subject_free(struct subject *subject)
{
	test_pages_free(&subject->table[0]);
	test_pages_free(&subject->table[1]);
	test_pages_free(&subject->run);
}

static void evict(struct subject *subject, u32 nr)
{
	test_pages_trim(&subject->table[0]);
	test_pages_trim(&subject->table[1]);
	test_pages_evict(&subject->table[0], nr);
	test_pages_evict(&subject->table[1], nr);
	test_pages_evict(&subject->run, nr);
}

/* Adds @id under @hash; returns index_prepare()'s answer. */
static int try_add(struct subject *subject, u64 id, u32 hash)
{
	struct slot *slot = NULL;
	u32 nr = slots_offer(&subject->slots, &slot);
	int err;

	assert_in_range(nr, 1, LIMIT);
	err = index_prepare(&subject->index, hash);
	if (err)
		return err;
	slots_take(&subject->slots, nr, slot);
	slot->id = id;
	slot->tag = SLOT_ARMED;
	index_add(&subject->index, hash, nr);
	subject->ids[nr] = id;
	subject->hashes[nr] = hash;
	subject->nr++;
	subject->moving += subject->index.phase == INDEX_MOVING;
	return 0;
}

static void add(struct subject *subject, u64 id, u32 hash)
{
	assert_int_equal(try_add(subject, id, hash), 0);
}

static void add_id(struct subject *subject, u64 id)
{
	add(subject, id, index_hash(&subject->index, id));
}

/* Removes slot @nr; returns index_prepare_remove()'s answer. */
static int try_remove(struct subject *subject, u32 nr)
{
	int err = index_prepare_remove(&subject->index, subject->hashes[nr],
				       nr);
	struct slot *slot;

	if (err)
		return err;
	index_remove(&subject->index, subject->hashes[nr], nr);
	slot = slots_get(&subject->slots, nr);
	assert_non_null(slot);
	slots_put(&subject->slots, nr, slot);
	subject->ids[nr] = 0;
	subject->nr--;
	subject->moving += subject->index.phase == INDEX_MOVING;
	return 0;
}

static void find(struct subject *subject, u64 id, u32 hash, u32 nr)
{
	struct slot *slot = NULL;

	assert_int_equal(index_find(&subject->index, &subject->slots, id, hash,
				    &slot), nr);
	if (nr)
		assert_true(slot && slot->id == id);
}

static void find_all(struct subject *subject)
{
	u32 nr;

	for (nr = 1; nr <= LIMIT; nr++)
		if (subject->ids[nr])
			find(subject, subject->ids[nr], subject->hashes[nr],
			     nr);
}

static void validate(struct subject *subject)
{
	assert_int_equal(index_validate(&subject->index, &subject->slots), 0);
}

static u32 any_slot(struct subject *subject)
{
	u32 nr;

	do {
		nr = 1 + test_below(&subject->random, LIMIT);
	} while (!subject->ids[nr]);
	return nr;
}

/* Fills the tables to less than three quarters, when one would grow. */
static void pages_for_a_limit(void **state)
{
	u64 full;
	u32 pages;

	(void)state;
	assert_int_equal(index_pages_max(1), 1);
	for (pages = 1; pages <= 1024; pages *= 2) {
		full = 3ULL * pages * INDEX_PER_PAGE / 4;
		assert_int_equal(index_pages_max(full - 1), pages);
		assert_int_equal(index_pages_max(full), 2 * pages);
	}
	/* No table has more entries than that. */
	assert_int_equal(index_pages_max(~0ULL), (1U << 31) / INDEX_PER_PAGE);
}

/**
 * struct pace - how large the table is to be, and what the next one waits for
 * @size: entries of the table that takes what is new
 * @next: of the one that is being cleared
 * @old: of the one that is being emptied
 * @done: pages cleared, entries passed
 */
struct pace {
	enum index_phase phase;
	u32 size, next, old, done;
};

/* Makes one change with @nr entries, at the pace that index.c describes. */
static void pace_change(struct pace *pace, u32 nr)
{
	switch (pace->phase) {
	case INDEX_STABLE:
		if (nr >= pace->size / 4 * 3)
			pace->next = 2 * pace->size;
		else if (pace->size > INDEX_PER_PAGE && nr < pace->size / 8)
			pace->next = pace->size / 2;
		else
			return;
		pace->phase = INDEX_CLEARING;
		pace->done = 0;
		fallthrough;
	case INDEX_CLEARING:
		pace->done += 2;
		if (pace->done < pace->next / INDEX_PER_PAGE)
			return;
		pace->old = pace->size;
		pace->size = pace->next;
		pace->phase = INDEX_MOVING;
		pace->done = 0;
		return;
	default:
		pace->done += 8;
		if (pace->done >= pace->old)
			pace->phase = INDEX_STABLE;
	}
}

/* Memory and the work of one change have bounds: the table is doubled at three
 * quarters, halved below an eighth, by two pages or eight entries a change.
 */
static void resizes_when_and_as_fast_as_it_says(void **state)
{
	struct pace pace = { INDEX_STABLE, .size = INDEX_PER_PAGE };
	struct subject subject;
	u32 i, turn, most[] = { LIMIT, LIMIT / 8, LIMIT / 2, LIMIT / 64, 20, 0 };

	(void)state;
	subject_init(&subject);
	for (turn = 0, i = 0; turn < ARRAY_SIZE(most);) {
		if (subject.nr < most[turn] && turn % 2 == 0) {
			pace_change(&pace, subject.nr);
			add_id(&subject, ++i);
		} else if (subject.nr > most[turn]) {
			assert_int_equal(try_remove(&subject,
						    any_slot(&subject)), 0);
			pace_change(&pace, subject.nr);
		} else {
			turn++;
		}
		assert_int_equal(subject.index.phase, pace.phase);
		assert_int_equal(1U << subject.index.table[subject.index.cur].bits,
				 pace.size);
	}
	subject_free(&subject);
}

/* A table that cannot grow is filled to fifteen sixteenths and one entry, in
 * which probing ends.
 */
static void refuses_what_would_crowd_it(void **state)
{
	const u32 size = 4 * INDEX_PER_PAGE, full = size - size / 16 - 1;
	struct subject subject;
	u32 i = 0;

	(void)state;
	subject_init(&subject);
	subject.table[0].pages.nr_max = 4;
	subject.table[1].pages.nr_max = 4;
	while (subject.nr < full)
		add_id(&subject, ++i);
	assert_int_equal(try_add(&subject, 1000000,
				 index_hash(&subject.index, 1000000)), -ENOMEM);
	assert_int_equal(subject.nr, full);
	find_all(&subject);
	assert_int_equal(try_remove(&subject, any_slot(&subject)), 0);
	add_id(&subject, 1000000);
	find_all(&subject);
	subject_free(&subject);
}

static void grows_and_shrinks(void **state)
{
	struct subject subject;
	u32 i;

	(void)state;
	subject_init(&subject);
	find(&subject, 1, index_hash(&subject.index, 1), 0);
	for (i = 1; i <= LIMIT; i++) {
		add_id(&subject, i);
		find(&subject, i, index_hash(&subject.index, i), i);
		find(&subject, i + 1, index_hash(&subject.index, i + 1), 0);
		if (i < 100 || i % 256 == 0) {
			validate(&subject);
			find_all(&subject);
		}
	}
	assert_true(subject.moving > 0);
	assert_true(subject.index.table[subject.index.cur].pages->nr > 1);
	subject.moving = 0;
	while (subject.nr) {
		i = any_slot(&subject);
		find(&subject, subject.ids[i], subject.hashes[i], i);
		assert_int_equal(try_remove(&subject, i), 0);
		find(&subject, i, index_hash(&subject.index, i), 0);
		if (subject.nr < 100 || subject.nr % 256 == 0) {
			validate(&subject);
			find_all(&subject);
		}
	}
	assert_true(subject.moving > 0);

	/* Halving follows the removals gradually. */
	for (i = 1; i <= 2 * LIMIT; i++) {
		add_id(&subject, i);
		assert_int_equal(try_remove(&subject, any_slot(&subject)), 0);
	}
	assert_int_equal(subject.table[0].pages.nr + subject.table[1].pages.nr,
			 1);
	subject_free(&subject);
}

static void random_operations(u32 most, u32 rounds, u32 evictions)
{
	struct subject subject;
	u32 i, grow = 1;
	u64 id;

	subject_init(&subject);
	for (i = 0; i < rounds; i++) {
		if (subject.nr >= most)
			grow = 0;
		if (!subject.nr)
			grow = 1;
		id = test_random(&subject.random) | 1;
		if (test_below(&subject.random, 4) < (grow ? 3 : 1)) {
			add_id(&subject, id);
		} else if (subject.nr) {
			assert_int_equal(try_remove(&subject,
						    any_slot(&subject)), 0);
			find(&subject, id, index_hash(&subject.index, id), 0);
		}
		if (i % 64 == 0)
			find_all(&subject);
		if (i % 512 == 0)
			validate(&subject);
		evict(&subject, evictions);
	}
	find_all(&subject);
	assert_true(subject.moving > 0 || most < INDEX_PER_PAGE);
	subject_free(&subject);
}

static void random_operations_small(void **state)
{
	(void)state;
	random_operations(40, 4000, 0);
	random_operations(40, 4000, 2);
}

static void random_operations_large(void **state)
{
	(void)state;
	random_operations(3000, 10000, 0);
	random_operations(3000, 10000, 4);
}

/* Ids with the same home, or with homes at the table's end that wrap around to
 * its start. They are found by comparing ids, and removed without breaking the
 * run.
 */
static void hashes_that_collide(void **state)
{
	const u32 hashes[] = { 0, 0x80000000U, ~0U };
	struct subject subject;
	u32 i, j;

	(void)state;
	for (j = 0; j < ARRAY_SIZE(hashes); j++) {
		subject_init(&subject);
		for (i = 1; i <= 300; i++) {
			add(&subject, i, hashes[j] - (j == 2 && i % 3 == 0));
			if (i % 10 == 0)
				find_all(&subject);
		}
		find(&subject, 1000, hashes[j], 0);
		while (subject.nr) {
			i = any_slot(&subject);
			assert_int_equal(try_remove(&subject, i), 0);
			find_all(&subject);
		}
		subject_free(&subject);
	}
}

/* Hashes close together, so that runs of displaced entries join and part. */
static void hashes_that_crowd(void **state)
{
	struct subject subject;
	u32 i, hash;

	(void)state;
	subject_init(&subject);
	for (i = 1; i < 6000; i++) {
		hash = (test_below(&subject.random, 24) - 12) << 20;
		if (subject.nr < 200 && !test_one_in(&subject.random, 3)) {
			add(&subject, i, hash);
		} else if (subject.nr) {
			assert_int_equal(try_remove(&subject,
						    any_slot(&subject)), 0);
		}
		if (i % 8 == 0)
			find_all(&subject);
		evict(&subject, 1);
	}
	subject_free(&subject);
}

/* Every page of every operation fails once: nothing is lost. */
static void faults_change_nothing(void **state)
{
	struct subject subject;
	u32 i, k, table, nr, before, failures = 0;
	int err;

	(void)state;
	subject_init(&subject);
	for (i = 1; i < 600; i++) {
		before = subject.nr;
		for (k = 1;; k++) {
			for (table = 0; table < 2; table++) {
				test_pages_trim(&subject.table[table]);
				test_pages_evict_all(&subject.table[table]);
				subject.faults[table].fail_in = (k + 1) / 2;
				subject.faults[table].for_good = k % 2;
				subject.faults[table].error = -EIO;
			}
			if (i % 4) {
				err = try_add(&subject, i,
					      index_hash(&subject.index, i));
			} else {
				nr = any_slot(&subject);
				err = try_remove(&subject, nr);
			}
			subject.faults[0].fail_in = 0;
			subject.faults[1].fail_in = 0;
			if (!err)
				break;
			/* -ENOMEM: earlier faults had delayed its growth. */
			assert_true(err == -EIO || err == -ENOMEM);
			assert_int_equal(subject.nr, before);
			failures++;
			if (i % 16 == 0)
				find_all(&subject);
		}
		if (i % 16 == 0) {
			find_all(&subject);
			validate(&subject);
		}
	}
	assert_true(failures > 100);
	subject_free(&subject);
}

/* Removes slot @nr when no page is in memory and the k-th and later page-ins fail,
 * for every k: the removal is atomic.
 */
static void remove_at_last(struct subject *subject, u32 nr)
{
	u32 k = 0, table;
	int err;

	do {
		k++;
		for (table = 0; table < 2; table++) {
			test_pages_trim(&subject->table[table]);
			test_pages_evict_all(&subject->table[table]);
			subject->faults[table].fail_in = k;
			subject->faults[table].for_good = true;
			subject->faults[table].error = -EIO;
		}
		err = try_remove(subject, nr);
		for (table = 0; table < 2; table++) {
			subject->faults[table].fail_in = 0;
			subject->faults[table].for_good = false;
		}
		assert_true(!err || err == -EIO);
	} while (err);
}

/* Runs that begin at the table's first and at its last entry, and cross pages:
 * what may move back is in memory before anything moves.
 */
static void removal_has_all_its_pages(void **state)
{
	const u32 hashes[] = { 0, ~0U };
	struct subject subject;
	u32 i, j, nr;
	u64 id;

	(void)state;
	for (j = 0; j < ARRAY_SIZE(hashes); j++) {
		subject_init(&subject);
		for (i = 1; i <= 60; i++) {
			add(&subject, i, hashes[j]);
			for (nr = 1; nr <= i; nr++) {
				id = subject.ids[nr];
				remove_at_last(&subject, nr);
				find(&subject, id, hashes[j], 0);
				add(&subject, id, hashes[j]);
			}
			find_all(&subject);
		}
		subject_free(&subject);
	}
}

/* A lookup's page fails: it returns that error rather than "not found". */
static void find_tells_a_fault_from_nothing(void **state)
{
	struct slot *slot;
	struct subject subject;
	u32 hash;

	(void)state;
	subject_init(&subject);
	add_id(&subject, 77);
	hash = index_hash(&subject.index, 77);

	evict(&subject, 0);
	test_pages_evict_all(&subject.table[subject.index.cur]);
	subject.faults[subject.index.cur].fail_in = 1;
	subject.faults[subject.index.cur].error = -EAGAIN;
	assert_int_equal(index_find(&subject.index, &subject.slots, 77, hash,
				    &slot), -EAGAIN);
	test_pages_evict_all(&subject.run);
	subject.faults[2].fail_in = 1;
	subject.faults[2].error = -EIO;
	assert_int_equal(index_find(&subject.index, &subject.slots, 77, hash,
				    &slot), -EIO);
	find(&subject, 77, hash, 1);
	subject_free(&subject);
}

/* The old table is unreadable until the new one is full. Further entries are
 * refused. When the pages are back everything is found and growth continues,
 * after a few more refusals at most.
 */
static void moving_that_is_held_up(void **state)
{
	struct subject subject;
	u32 i = 0, old, cur, refused = 0, last;

	(void)state;
	subject_init(&subject);
	while (subject.index.phase != INDEX_MOVING || subject.nr < 40) {
		evict(&subject, 0);
		add_id(&subject, ++i);
		assert_true(i < LIMIT);
	}
	cur = subject.index.cur;
	old = !cur;
	while (!refused && subject.nr < LIMIT) {
		test_pages_evict_all(&subject.table[old]);
		subject.faults[old].for_good = true;
		subject.faults[old].fail_in = 1;
		subject.faults[old].error = -EAGAIN;
		i++;
		refused = !!try_add(&subject, i,
				    index_hash(&subject.index, i));
		assert_int_equal(subject.index.cur, cur);
	}
	assert_true(refused);
	subject.faults[old].fail_in = 0;
	subject.faults[old].for_good = false;
	find_all(&subject);
	validate(&subject);
	last = i;
	while (try_add(&subject, i, index_hash(&subject.index, i)))
		assert_true(++i < last + LIMIT);
	while (subject.nr < LIMIT)
		add_id(&subject, ++i);
	find_all(&subject);
	validate(&subject);
	subject_free(&subject);
}

/* The new table's pages are not available: the error is theirs, so that the
 * caller knows whether to wait.
 */
static void clearing_that_is_held_up(void **state)
{
	const int errors[] = { -EAGAIN, -ENOMEM, -EIO };
	struct subject subject;
	u32 i, id, other;
	int err;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		subject_init(&subject);
		add_id(&subject, 1);
		other = !subject.index.cur;
		subject.faults[other].for_good = true;
		subject.faults[other].fail_in = 1;
		subject.faults[other].error = errors[i];
		id = 2;
		do {
			err = try_add(&subject, id,
				      index_hash(&subject.index, id));
			id++;
		} while (!err && subject.nr < LIMIT);
		assert_int_equal(err, errors[i]);
		find_all(&subject);
		subject.faults[other].fail_in = 0;
		while (subject.nr < LIMIT)
			add_id(&subject, id++);
		find_all(&subject);
		validate(&subject);
		subject_free(&subject);
	}
}

/* As soon as the pages are available there is room again, however much of the
 * new table was still missing.
 */
static void held_up_then_caught_up(void **state)
{
	struct subject subject;
	u32 id = 0, other;

	(void)state;
	subject_init(&subject);
	while (subject.nr < 40 || subject.index.phase != INDEX_STABLE)
		add_id(&subject, ++id);
	other = !subject.index.cur;
	subject.faults[other].for_good = true;
	subject.faults[other].fail_in = 1;
	subject.faults[other].error = -EIO;
	do {
		id++;
		assert_true(id < LIMIT);
	} while (!try_add(&subject, id, index_hash(&subject.index, id)));
	subject.faults[other].fail_in = 0;
	subject.faults[other].for_good = false;
	add_id(&subject, id);
	find_all(&subject);
	validate(&subject);
	subject_free(&subject);
}

static void reset_forgets_all(void **state)
{
	struct subject subject;
	u32 nr, round;

	(void)state;
	subject_init(&subject);
	for (round = 1; round < 200; round += 7) {
		for (nr = 1; nr <= round; nr++)
			add_id(&subject, nr);
		index_reset(&subject.index);
		slots_reset(&subject.slots);
		memset(subject.ids, 0, sizeof(subject.ids));
		subject.nr = 0;
		assert_int_equal(subject.table[0].pages.nr, 0);
		assert_int_equal(subject.table[1].pages.nr, 0);
		find(&subject, 1, index_hash(&subject.index, 1), 0);
		evict(&subject, 100);
	}
	subject_free(&subject);
}

/* A guess may be empty or wrong, and never reads a page that is out. */
static void guesses_are_harmless(void **state)
{
	struct subject subject;
	u32 i, right = 0;
	u64 before;

	(void)state;
	subject_init(&subject);
	index_prefetch(&subject.index, 1);
	assert_int_equal(index_guess(&subject.index, 1), 0);
	for (i = 1; i <= 1000; i++)
		add_id(&subject, i);
	for (i = 1; i <= 1000; i++) {
		index_prefetch(&subject.index, subject.hashes[i]);
		right += index_guess(&subject.index, subject.hashes[i]) == i;
	}
	assert_true(right > 400);
	test_pages_evict_all(&subject.table[0]);
	test_pages_evict_all(&subject.table[1]);
	before = subject.faults[0].ins + subject.faults[1].ins;
	for (i = 1; i <= 1000; i++) {
		index_prefetch(&subject.index, subject.hashes[i]);
		assert_int_equal(index_guess(&subject.index,
					     subject.hashes[i]), 0);
	}
	assert_true(before == subject.faults[0].ins + subject.faults[1].ins);
	subject_free(&subject);
}

/* SipHash-1-3 of eight bytes; the values are another implementation's
 * (CPython's, which hashes bytes so).
 */
static void siphash_is_siphash(void **state)
{
	static const struct {
		u64 key[2], word, hash;
	} known[] = {
		{ { 0, 0 }, 0, 0xbd60acb658c79e45 },
		{ { 0, 0 }, 1, 0x1e9f734161d62dd9 },
		{ { 0, 0 }, 0x0123456789abcdef, 0x8662046e52264db8 },
		{ { 0, 0 }, ~0ULL, 0x2f205be2fec8e38d },
		{ { 0xdc504fd368cd90af, 0xb920bb9ffe99e9c1 },
		  0, 0xff8022ca61836881 },
		{ { 0xdc504fd368cd90af, 0xb920bb9ffe99e9c1 },
		  0x0123456789abcdef, 0x009f3909b890b8a2 },
		{ { 0xdc504fd368cd90af, 0xb920bb9ffe99e9c1 },
		  0x0000000100000007, 0xf2e80e2844e0b753 },
	};
	struct subject subject;
	struct index index;
	u32 i;

	(void)state;
	subject_init(&subject);
	for (i = 0; i < ARRAY_SIZE(known); i++) {
		assert_true(siphash_word(known[i].word, known[i].key) ==
			    known[i].hash);
		/* The index's own copy was compiled elsewhere. */
		index_init(&index, &subject.table[0].pages,
			   &subject.table[1].pages, known[i].key);
		assert_int_equal(index_hash(&index, known[i].word),
				 known[i].hash >> 32);
	}
	subject_free(&subject);
}

/* Both halves of the seed count: with any two that differ in one half, ids have
 * other hashes. Among 1000 ids, random 32-bit hashes give less than one equal
 * pair.
 */
static void the_seed_decides(void **state)
{
	const u64 seeds[][2] = { { 1, 2 }, { 1, 3 }, { 2, 2 }, { 0, 2 }, { 1, 0 } };
	u32 buckets[256] = { 0 }, same = 0, i, j;
	struct index indexes[ARRAY_SIZE(seeds)];
	struct subject subject;
	u64 id;

	(void)state;
	subject_init(&subject);
	memset(indexes, 0, sizeof(indexes));
	for (i = 0; i < ARRAY_SIZE(seeds); i++) {
		index_init(&indexes[i], &subject.table[0].pages,
			   &subject.table[1].pages, seeds[i]);
		for (j = 0; j < i; j++)
			for (id = 1; id <= 1000; id++)
				same += index_hash(&indexes[i], id) ==
					index_hash(&indexes[j], id);
	}
	assert_in_range(same, 0, 2);

	/* Sequential ids spread evenly: 256 a bucket, plus or minus 6 sigma. */
	for (i = 0; i < 65536; i++)
		buckets[index_hash(&subject.index, i) >> 24]++;
	for (i = 0; i < 256; i++)
		assert_in_range(buckets[i], 160, 352);
	subject_free(&subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_for_a_limit),
		cmocka_unit_test(resizes_when_and_as_fast_as_it_says),
		cmocka_unit_test(refuses_what_would_crowd_it),
		cmocka_unit_test(grows_and_shrinks),
		cmocka_unit_test(random_operations_small),
		cmocka_unit_test(random_operations_large),
		cmocka_unit_test(hashes_that_collide),
		cmocka_unit_test(hashes_that_crowd),
		cmocka_unit_test(faults_change_nothing),
		cmocka_unit_test(removal_has_all_its_pages),
		cmocka_unit_test(find_tells_a_fault_from_nothing),
		cmocka_unit_test(moving_that_is_held_up),
		cmocka_unit_test(clearing_that_is_held_up),
		cmocka_unit_test(held_up_then_caught_up),
		cmocka_unit_test(reset_forgets_all),
		cmocka_unit_test(guesses_are_harmless),
		cmocka_unit_test(siphash_is_siphash),
		cmocka_unit_test(the_seed_decides),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
