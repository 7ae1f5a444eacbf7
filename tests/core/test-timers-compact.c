// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compaction: timers that move to other slots keep their ids, deadlines and order,
 * whatever else goes on. test-give-back.c has how many pages it gives back.
 */
#include "losing.h"

#define ACK	EXPIRY_MODE_ACK
#define KEYED	EXPIRY_MODE_KEYED

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
		assert_true(moves_of(&subject) > left / 2);
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
		moves = moves_of(&subject);
		for (i = 0; i < TEST_ROUNDS(600) &&
			    slots_is_compacting(&timers_of(&subject)->slots); i++) {
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
		assert_true(moves_of(&subject) > moves);
		for (i = subject.cancelled; i < N; i++)
			assert_int_equal(test_op(&subject.queue,
						 EXPIRY_OP_QUERY,
						 subject.ids[i]).status, 0);
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
		moves = moves_of(&subject);
		acknowledge_to(&subject, N / 8);
		pass(&subject.queue, late ? TIMERS_WALK_HOLD : N);
		assert_int_equal(moves_of(&subject) > moves, late);
		while (ret) {
			ret = timers_rewind(timers_of(&subject), &cursor,
					    2 * FAR);
			assert_true(ret >= 0);
		}
		assert_true(timers_of(&subject)->unacked == 0);
		assert_int_equal(timers_validate(timers_of(&subject)), 0);
		pass(&subject.queue, N);
		assert_true(moves_of(&subject) > moves);
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
		moves = moves_of(&subject);
		while (timers_nr(timers_of(&subject)) > N / 50)
			test_op(&subject.queue, EXPIRY_OP_CANCEL,
				subject.ids[subject.cancelled++]);
		pass(&subject.queue, N);
		assert_true(moves_of(&subject) > moves);
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

/* Drops stale nodes until the next deadline is exact, and returns it. */
static u64 exact_next_ns(struct timers *timers)
{
	int ret;

	do {
		ret = timers_drop_stale(timers, 8);
		assert_true(ret >= 0);
	} while (!ret);
	return timers_next_ns(timers);
}

/* The next timer of all moves, alone, and is cancelled where it is then: the node that
 * it had in its old slot is no reason to wake up.
 */
static void the_next_moves_and_goes(void **state)
{
	struct subject subject;
	struct timers *timers = timers_of(&subject);
	u64 id, cursor = 0;
	u32 mode, slot;

	(void)state;
	for (mode = 0; mode < 2; mode++) {
		subject_init(&subject, test_modes[mode]);
		id = slots_get(&timers->slots, N)->id;
		assert_int_equal(test_refresh(&subject.queue, id, 1, 0).status, 0);
		/* Of those before it nothing is left to move for the same record. */
		for (slot = N - 1; !moves_of(&subject); slot--) {
			assert_true(exact_next_ns(timers) == 1);
			test_op(&subject.queue, EXPIRY_OP_CANCEL,
				slots_get(&timers->slots, slot)->id);
		}
		assert_int_equal(moves_of(&subject), 1);
		assert_true(exact_next_ns(timers) == 1);
		/* Nothing else moves meanwhile. */
		assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
		assert_int_equal(test_op(&subject.queue, EXPIRY_OP_CANCEL,
					 id).status, 0);
		assert_true(exact_next_ns(timers) >= FAR);
		cursor = 0;
		subject_free(&subject);
	}
}

/* Arms @n timers, cancels all but the first, and returns how many slots are left. */
static u32 slots_left_of(u32 n)
{
	struct test_queue queue;
	u32 i, left;
	u64 *ids;

	test_queue_init(&queue, 0, n, test_seed);
	ids = test_arm_many(&queue, n, FAR);
	for (i = 1; i < n; i++)
		test_op(&queue, EXPIRY_OP_CANCEL, ids[i]);
	pass(&queue, n);
	left = queue.timers.slots.nr;
	test_queue_free(&queue);
	free(ids);
	return left;
}

/* A table of less than four pages stays as it is. */
static void a_small_table_stays(void **state)
{
	u32 n = 4 * SLOTS_PER_PAGE;

	(void)state;
	assert_int_equal(slots_left_of(n - 1), n - 1);
	assert_in_range(slots_left_of(n), 1, n - 1);
}

/* Compaction that gave up for a timer that must not move begins again when half of the
 * timers are gone.
 */
static void it_begins_again(void **state)
{
	struct expiry_record record;
	struct subject subject;
	struct timers *timers = timers_of(&subject);
	u32 nr, used;

	(void)state;
	subject_init(&subject, ACK);
	test_op(&subject.queue, EXPIRY_OP_CANCEL, subject.ids[N - 1]);
	test_arm(&subject.queue, 0, 1, 0, 1000000);
	assert_int_equal(test_deliver(&subject.queue, &record, 1, 10), 1);
	test_rewind_at(&subject.queue, 20);
	while (!timers->stuck_nr) {
		pass(&subject.queue, 100);
		cancel_one(&subject);
		assert_true(subject.cancelled < N - 20);
	}
	pass(&subject.queue, N);
	assert_false(slots_is_compacting(&timers->slots));
	nr = timers->slots.nr;
	used = timers->stuck_used;
	assert_int_equal(test_deliver(&subject.queue, &record, 1, 30), 1);
	while (timers->slots.used > used / 2 + 1)
		cancel_one(&subject);
	pass(&subject.queue, N);
	assert_int_equal(timers->slots.nr, nr);
	while (timers->slots.used > used / 2)
		cancel_one(&subject);
	pass(&subject.queue, N);
	assert_true(timers->slots.nr < nr);
	assert_int_equal(timers_validate(timers), 0);
	subject_free(&subject);
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
		test_with_layouts(a_full_table_waits_for_its_pages),
		test_with_layouts(a_rewind_misses_none),
		test_with_layouts(a_delivery_to_be_repeated_stays),
		test_with_layouts(held_deliveries_move),
		test_with_layouts(the_next_moves_and_goes),
		test_with_layouts(a_small_table_stays),
		test_with_layouts(it_begins_again),
		test_with_layouts(an_id_is_not_given_twice),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
