// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compaction: timers that move to other slots keep their ids, deadlines and order,
 * whatever else goes on. test-give-back.c has how many pages it gives back.
 */
#include <stdlib.h>

#include "lifecycle.h"
#include "support.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED
/* Enough for many pages: a table of four is too small to be compacted. */
#define N	(CORE_PAGE_SHIFT > 12 ? 4000U << (CORE_PAGE_SHIFT - 12) : 4000U)
#define FAR	(1000 * SECOND)

/**
 * struct subject - a queue that loses most of its timers
 * @ids: in the order in which they are cancelled
 * @cancelled: how many are gone
 */
struct subject {
	struct test_queue queue;
	u64 *ids;
	u32 cancelled;
	u64 random;
};

static void subject_init(struct subject *subject, u32 mode)
{
	u32 i, j;
	u64 id;

	*subject = (struct subject) { .random = test_seed };
	test_queue_init(&subject->queue, mode, N, test_seed);
	subject->ids = test_arm_many(&subject->queue, N, FAR);
	for (i = N - 1; i > 0; i--) {
		j = test_below(&subject->random, i + 1);
		id = subject->ids[i];
		subject->ids[i] = subject->ids[j];
		subject->ids[j] = id;
	}
}

static void subject_free(struct subject *subject)
{
	test_queue_free(&subject->queue);
	free(subject->ids);
}

static struct timers *timers_of(struct subject *subject)
{
	return &subject->queue.timers;
}

static void cancel_one(struct subject *subject)
{
	u64 id = subject->ids[subject->cancelled++];

	assert_int_equal(test_op(&subject->queue, EXPIRY_OP_CANCEL, id).status, 0);
}

/* Cancels until only @left are there. */
static void cancel_to(struct subject *subject, u32 left)
{
	while (subject->cancelled < N - left)
		cancel_one(subject);
}

/* Does work that changes nothing: @count requests. */
static void pass(struct test_queue *queue, u32 count)
{
	static struct expiry_record batch[1024];	/* too large for the stack */
	u32 i, nr;

	for (; count; count -= nr) {
		nr = count < ARRAY_SIZE(batch) ? count : ARRAY_SIZE(batch);
		for (i = 0; i < nr; i++)
			batch[i] = (struct expiry_record) {
				.op = EXPIRY_OP_QUERY,
			};
		assert_int_equal(timers_submit(&queue->timers, batch, nr, 0),
				 nr);
	}
}

/* Cancels until moves are going on. */
static void cancel_until_moving(struct subject *subject)
{
	u32 moves = timers_of(subject)->moves;

	while (timers_of(subject)->moves < moves + 20)
		cancel_one(subject);
	assert_true(slots_is_compacting(&timers_of(subject)->slots));
}

static void ids_stay(void **state)
{
	struct expiry_record *records = calloc(N, sizeof(*records)), reply;
	struct subject subject;
	u32 mode, i, left = N / 50;
	u64 last;

	(void)state;
	assert_non_null(records);
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		subject_init(&subject, test_modes[mode]);
		cancel_to(&subject, left);
		pass(&subject.queue, N);
		assert_true(timers_of(&subject)->moves > left / 2);
		assert_true(timers_of(&subject)->slots.nr <
			    4 * left + 4 * SLOTS_PER_PAGE);
		assert_int_equal(timers_validate(timers_of(&subject)), 0);
		for (i = 0; i < N; i++) {
			reply = test_op(&subject.queue, EXPIRY_OP_QUERY,
					subject.ids[i]);
			assert_int_equal(reply.status,
					 i < N - left ? -ENOENT : 0);
		}
		/* To later, to earlier, once more, and away. */
		for (i = N - left; i < N; i++) {
			reply = test_refresh(&subject.queue, subject.ids[i],
					     i % 2 ? 2 * FAR + i : FAR - i, 0);
			assert_int_equal(reply.status, 0);
			if (i % 5 == 0)
				test_op(&subject.queue, EXPIRY_OP_CANCEL,
					subject.ids[i]);
		}
		assert_int_equal(timers_validate(timers_of(&subject)), 0);
		left = timers_nr(timers_of(&subject));
		assert_int_equal(test_deliver(&subject.queue, records, N,
					      3 * FAR), left);
		for (i = 0, last = 0; i < left; i++) {
			assert_true(records[i].deadline_ns >= last);
			last = records[i].deadline_ns;
		}
		left = N / 50;
		subject_free(&subject);
	}
	free(records);
}

/* ARMs in the middle get slots, up to the limit, and ids of their own. */
static void armed_meanwhile(void **state)
{
	struct expiry_record reply;
	struct subject subject;
	u32 mode, i, n;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		subject_init(&subject, test_modes[mode]);
		cancel_until_moving(&subject);
		n = N - timers_nr(timers_of(&subject));
		for (i = 0; i < n; i++) {
			reply = test_arm(&subject.queue, mode ? 2 * N + i : 0,
					 FAR, i, 0);
			assert_int_equal(reply.status, 0);
		}
		reply = test_arm(&subject.queue, mode ? 3 * N : 0, FAR, i, 0);
		assert_int_equal(reply.status, -ENOSPC);
		assert_true(timers_of(&subject)->slots.nr <
			    N + N / 4 + SLOTS_PER_PAGE);
		assert_int_equal(timers_validate(timers_of(&subject)), 0);
		for (i = subject.cancelled; i < N; i++)
			assert_int_equal(test_op(&subject.queue,
						 EXPIRY_OP_QUERY,
						 subject.ids[i]).status, 0);
		subject_free(&subject);
	}
}

/* A page may be missing for each step, and everything is as if it were not done. */
static void pages_may_be_missing(void **state)
{
	const int errors[] = { -EAGAIN, -ENOMEM, -EIO };
	struct subject subject;
	u32 mode, i, moves;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		struct test_faults *faults = &subject.queue.faults;

		subject_init(&subject, test_modes[mode]);
		cancel_until_moving(&subject);
		moves = timers_of(&subject)->moves;
		for (i = 0; i < 600 && slots_is_compacting(&timers_of(&subject)->slots);
		     i++) {
			test_queue_evict_all(&subject.queue);
			faults->error = errors[i % ARRAY_SIZE(errors)];
			faults->fail_in = 1 + i % 9;
			pass(&subject.queue, 1);
			faults->fail_in = 0;
			if (i % 16 == 0)
				assert_int_equal(timers_validate(timers_of(&subject)), 0);
		}
		assert_true(faults->failed > 20);
		pass(&subject.queue, N);
		assert_false(slots_is_compacting(&timers_of(&subject)->slots));
		assert_true(timers_of(&subject)->moves > moves);
		for (i = subject.cancelled; i < N; i++)
			assert_int_equal(test_op(&subject.queue,
						 EXPIRY_OP_QUERY,
						 subject.ids[i]).status, 0);
		subject_free(&subject);
	}
}

/* Marks what a scan lists, each at most once, unless @seen is NULL. */
static int scan_some(struct subject *subject, u8 *seen, u64 *cursor)
{
	struct expiry_record rows[7];
	int ret, i;

	ret = timers_scan(timers_of(subject), rows, ARRAY_SIZE(rows), cursor);
	for (i = 0; seen && i < ret; i++)
		assert_int_equal(seen[rows[i].cookie]++, 0);
	return ret;
}

/* A timer that is there all the time is listed once, though most others go. */
static void a_scan_lists_each_once(void **state)
{
	struct subject subject;
	u32 mode, i, moves, left = N / 50;
	u8 *seen;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		u64 cursor = 0, other = 0;

		seen = calloc(N, 1);
		assert_non_null(seen);
		subject_init(&subject, test_modes[mode]);
		cancel_until_moving(&subject);
		moves = timers_of(&subject)->moves;
		do {
			assert_true(scan_some(&subject, seen, &cursor) >= 0);
			scan_some(&subject, NULL, &other);
			if (subject.cancelled < N - left)
				cancel_one(&subject);
			if (cursor)
				assert_int_equal(timers_of(&subject)->moves,
						 moves);
		} while (cursor);
		while (other)
			scan_some(&subject, NULL, &other);
		for (i = N - left; i < N; i++) {
			struct expiry_record reply;

			reply = test_op(&subject.queue, EXPIRY_OP_QUERY,
					subject.ids[i]);
			assert_int_equal(reply.status, 0);
			assert_int_equal(seen[reply.cookie], 1);
		}
		pass(&subject.queue, N);
		cancel_to(&subject, left);
		assert_true(timers_of(&subject)->moves > moves);
		free(seen);
		subject_free(&subject);
	}
}

/* A scan that was given up delays compaction only so long. Its cursor is refused
 * then: what has moved may lie before it.
 */
static void a_scan_given_up(void **state)
{
	struct subject subject;
	u64 cursor = 0, again;
	u32 moves;

	(void)state;
	subject_init(&subject, 0);
	cancel_until_moving(&subject);
	assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
	again = cursor;
	moves = timers_of(&subject)->moves;
	pass(&subject.queue, TIMERS_WALK_HOLD - 1);
	assert_int_equal(timers_of(&subject)->moves, moves);
	/* It goes on, and holds the timers as long again. */
	assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
	assert_true(cursor != again);
	pass(&subject.queue, TIMERS_WALK_HOLD - 1);
	assert_int_equal(timers_of(&subject)->moves, moves);
	pass(&subject.queue, 1024);
	assert_true(timers_of(&subject)->moves > moves);
	assert_int_equal(scan_some(&subject, NULL, &cursor), -ECANCELED);
	assert_int_equal(scan_some(&subject, NULL, &cursor), -ECANCELED);
	subject_free(&subject);
}

/* A scan that found its first page missing, or had no room for a row, and was tried
 * again until it came to its end holds nothing any more.
 */
static void a_scan_tried_again_ends(void **state)
{
	struct expiry_record row;
	struct subject subject;
	u64 cursor = 0;
	u32 mode, i;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		struct test_faults *faults = &subject.queue.faults;

		subject_init(&subject, test_modes[mode]);
		for (i = 0; i < 3; i++) {
			test_queue_evict_all(&subject.queue);
			faults->error = -EAGAIN;
			faults->fail_in = 1;
			assert_int_equal(scan_some(&subject, NULL, &cursor),
					 -EAGAIN);
			faults->fail_in = 0;
			assert_int_equal(timers_scan(timers_of(&subject), &row,
						     0, &cursor), 0);
		}
		do {
			assert_true(scan_some(&subject, NULL, &cursor) >= 0);
		} while (cursor);
		cancel_to(&subject, N / 50);
		pass(&subject.queue, N);
		assert_true(timers_of(&subject)->moves > 0);
		subject_free(&subject);
	}
}

/* A table whose compaction is held up grows to its last page. An ARM then waits for
 * the page with free slots that is missing, rather than being refused.
 */
static void a_full_table_waits_for_its_pages(void **state)
{
	struct expiry_record record;
	struct subject subject;
	u64 cursor = 0;
	u32 mode, armed;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		struct slots *slots = &timers_of(&subject)->slots;
		struct test_faults *faults = &subject.queue.faults;

		subject_init(&subject, test_modes[mode]);
		cancel_until_moving(&subject);
		/* No timer moves, so that no other slot is listed. */
		assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
		cursor = 0;
		for (armed = 0;; armed++) {
			record = (struct expiry_record) {
				.op = EXPIRY_OP_ARM,
				.id = mode ? 2 * N + armed : 0,
				.deadline_ns = FAR,
			};
			if (!slots->listed) {
				test_pages_evict_one(&subject.queue.runs[TIMERS_PAGES_SLOTS],
						     slots->known / SLOTS_PER_PAGE);
				faults->error = -EAGAIN;
				faults->fail_in = 1;
			}
			if (!timers_submit(timers_of(&subject), &record, 1, 0))
				break;
			assert_int_equal(record.status, 0);
			assert_true(armed < N);
		}
		faults->fail_in = 0;
		assert_true(armed > N / 4);
		assert_int_equal(timers_submit(timers_of(&subject), &record, 1, 0),
				 1);
		assert_int_equal(record.status, 0);
		assert_int_equal(timers_validate(timers_of(&subject)), 0);
		subject_free(&subject);
	}
}

/* Acknowledges deliveries in the order of the ids until only @left wait. */
static void acknowledge_to(struct subject *subject, u32 left)
{
	while (timers_of(subject)->unacked > left)
		test_op(&subject->queue, EXPIRY_OP_ACK,
			subject->ids[subject->cancelled++]);
}

/* A rewind misses no delivery, though slots move while it pauses for long. */
static void a_rewind_misses_none(void **state)
{
	struct expiry_record *records = calloc(N, sizeof(*records));
	struct subject subject;
	u32 mode, late, moves;
	u64 cursor = 0;
	int ret;

	(void)state;
	assert_non_null(records);
	for (late = 0; late < 2; late++)
	for (mode = 2; mode < ARRAY_SIZE(test_modes); mode++) {
		subject_init(&subject, test_modes[mode]);
		assert_int_equal(test_deliver(&subject.queue, records, N,
					      2 * FAR), N);
		acknowledge_to(&subject, N / 4);
		ret = timers_rewind(timers_of(&subject), &cursor, 2 * FAR);
		assert_int_equal(ret, 1);
		moves = timers_of(&subject)->moves;
		acknowledge_to(&subject, N / 8);
		pass(&subject.queue, late ? TIMERS_WALK_HOLD : N);
		assert_int_equal(timers_of(&subject)->moves > moves, late);
		while (ret) {
			ret = timers_rewind(timers_of(&subject), &cursor,
					    2 * FAR);
			assert_true(ret >= 0);
		}
		assert_true(timers_of(&subject)->unacked == 0);
		assert_int_equal(timers_validate(timers_of(&subject)), 0);
		pass(&subject.queue, N);
		assert_true(timers_of(&subject)->moves > moves);
		assert_int_equal(test_deliver(&subject.queue, records, N,
					      2 * FAR),
				 timers_nr(timers_of(&subject)));
		subject_free(&subject);
	}
	free(records);
}

/* The last delivery of a periodic timer is to be repeated. Only its node has that
 * deadline, so it stays where it is, and the queue works on.
 */
static void a_delivery_to_be_repeated_stays(void **state)
{
	struct expiry_record record;
	struct subject subject;
	u32 nr;
	u64 id;

	(void)state;
	subject_init(&subject, ACK);
	test_op(&subject.queue, EXPIRY_OP_CANCEL, subject.ids[N - 1]);
	/* At the limit now: the slot of the one just cancelled. */
	id = test_arm(&subject.queue, 0, 1, 0, 1000000).id;
	nr = (u32)id;
	assert_int_equal(test_deliver(&subject.queue, &record, 1, 10), 1);
	test_rewind_at(&subject.queue, 20);
	while (subject.cancelled < N - 1)
		cancel_one(&subject);
	pass(&subject.queue, N);
	assert_false(slots_is_compacting(&timers_of(&subject)->slots));
	assert_true(timers_of(&subject)->slots.nr == nr ||
		    nr < 4 * SLOTS_PER_PAGE);
	assert_int_equal(timers_validate(timers_of(&subject)), 0);
	assert_int_equal(test_deliver(&subject.queue, &record, 1, 30), 1);
	assert_true(record.id == id && record.deadline_ns == 1);
	assert_int_equal(record.flags, EXPIRY_F_REDELIVERED);
	subject_free(&subject);
}

/* Deliveries are held while their slots move; then they end, or are due again. */
static void held_deliveries_move(void **state)
{
	struct expiry_record records[TIMERS_HELD_MAX], again[TIMERS_HELD_MAX];
	struct subject subject;
	u32 mode, i, nr, moves;
	int ret;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		subject_init(&subject, test_modes[mode]);
		cancel_to(&subject, N / 3);
		do {	/* a call may only look for the first, or find one */
			ret = timers_deliver(timers_of(&subject), records, 32,
					     2 * FAR, true);
			assert_true(ret >= 0);
			if (ret == 1)
				assert_int_equal(timers_restore(timers_of(&subject),
								records, 1), 0);
		} while (ret < 2);
		assert_in_range(ret, 2, 32);
		nr = ret / 2 * 2;
		assert_int_equal(timers_restore(timers_of(&subject),
						records + nr, ret - nr), 0);
		moves = timers_of(&subject)->moves;
		while (timers_nr(timers_of(&subject)) > N / 50)
			test_op(&subject.queue, EXPIRY_OP_CANCEL,
				subject.ids[subject.cancelled++]);
		pass(&subject.queue, N);
		assert_true(timers_of(&subject)->moves > moves);
		assert_int_equal(timers_restore(timers_of(&subject),
						records + nr / 2, nr / 2), 0);
		assert_int_equal(timers_release(timers_of(&subject), records,
						nr / 2), 0);
		assert_int_equal(timers_validate(timers_of(&subject)), 0);
		assert_int_equal(test_deliver(&subject.queue, again, nr / 2,
					      2 * FAR), nr / 2);
		for (i = 0; i < nr / 2; i++)
			assert_int_equal(again[i].deadline_ns,
					 records[nr / 2 + i].deadline_ns);
		subject_free(&subject);
	}
}

/* When generations begin anew, a moved timer keeps its id for itself. */
static void an_id_is_not_given_twice(void **state)
{
	struct expiry_record reply;
	struct subject subject;
	struct timers *timers;
	u32 nr;
	u64 id;

	(void)state;
	subject_init(&subject, 0);
	timers = timers_of(&subject);
	cancel_to(&subject, N / 50);
	pass(&subject.queue, N);
	id = subject.ids[N - 1];
	for (nr = 2; (u32)id <= timers->slots.nr; nr++)
		id = subject.ids[N - nr];
	do {
		timers->generation = (id >> 32) - 1;
		reply = test_arm(&subject.queue, 0, FAR, 0, 0);
		assert_int_equal(reply.status, 0);
		assert_true(reply.id != id);
	} while ((u32)reply.id != (u32)id);
	assert_true(reply.id >> 32 == (id >> 32) + 1);
	assert_int_equal(test_op(&subject.queue, EXPIRY_OP_CANCEL, id).status, 0);
	assert_int_equal(test_op(&subject.queue, EXPIRY_OP_CANCEL, id).status,
			 -ENOENT);
	assert_int_equal(test_op(&subject.queue, EXPIRY_OP_QUERY,
				 reply.id).status, 0);
	subject_free(&subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(ids_stay),
		test_with_layouts(armed_meanwhile),
		test_with_layouts(pages_may_be_missing),
		test_with_layouts(a_scan_lists_each_once),
		test_with_layouts(a_scan_given_up),
		test_with_layouts(a_scan_tried_again_ends),
		test_with_layouts(a_full_table_waits_for_its_pages),
		test_with_layouts(a_rewind_misses_none),
		test_with_layouts(a_delivery_to_be_repeated_stays),
		test_with_layouts(held_deliveries_move),
		test_with_layouts(an_id_is_not_given_twice),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
