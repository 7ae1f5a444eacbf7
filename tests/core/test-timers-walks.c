// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Walks over the slots (SCAN, REWIND) beside compaction: nothing moves while one is in
 * progress, and nothing waits for one that has ended or was given up.
 */
#include "losing.h"

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
		moves = moves_of(&subject);
		do {
			assert_true(scan_some(&subject, seen, &cursor) >= 0);
			scan_some(&subject, NULL, &other);
			if (subject.cancelled < N - left)
				cancel_one(&subject);
			if (cursor)
				assert_int_equal(moves_of(&subject),
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
		assert_true(moves_of(&subject) > moves);
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
	moves = moves_of(&subject);
	pass(&subject.queue, TIMERS_WALK_HOLD - 1);
	assert_int_equal(moves_of(&subject), moves);
	/* It goes on, and holds the timers as long again. */
	assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
	assert_true(cursor != again);
	pass(&subject.queue, TIMERS_WALK_HOLD - 1);
	assert_int_equal(moves_of(&subject), moves);
	pass(&subject.queue, 1024);
	assert_true(moves_of(&subject) > moves);
	assert_int_equal(scan_some(&subject, NULL, &cursor), -ECANCELED);
	assert_int_equal(scan_some(&subject, NULL, &cursor), -ECANCELED);
	/* It counts no more: when another scan has ended, nothing holds the timers. */
	cursor = 0;
	do {
		assert_true(scan_some(&subject, NULL, &cursor) >= 0);
	} while (cursor);
	moves = moves_of(&subject);
	cancel_to(&subject, N / 50);
	pass(&subject.queue, N);
	assert_true(moves_of(&subject) > moves);
	subject_free(&subject);
}

/* Each record counts for a scan that is not continued, also while most slots are in
 * use: the cancels that empty the queue are some of them.
 */
static void all_records_count_for_a_walk(void **state)
{
	struct subject subject;
	u32 mode, left = N / 50;
	u64 cursor;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		subject_init(&subject, test_modes[mode]);
		cursor = 0;
		assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
		pass(&subject.queue, TIMERS_WALK_HOLD - N);
		cancel_to(&subject, left);
		assert_int_equal(moves_of(&subject), 0);
		pass(&subject.queue, left - 1);
		assert_int_equal(moves_of(&subject), 0);
		pass(&subject.queue, N);
		assert_true(timers_of(&subject)->slots.nr < 2 * left + SLOTS_PER_PAGE);
		subject_free(&subject);
	}
}

/* Tidies without an error until nothing is left to do. Returns how often. */
static u32 tidy(struct subject *subject, bool gives_up)
{
	u32 calls = 0;
	int ret;

	do {
		ret = timers_tidy(timers_of(subject), 1, gives_up);
		assert_in_range(ret, 0, 1);
		calls++;
	} while (ret);
	assert_int_equal(timers_validate(timers_of(subject)), 0);
	return calls;
}

/* The owner of an idle queue gives up its scan, and the timers move, by bounded
 * steps. A page may be missing for each of them.
 */
static void an_idle_queue_is_tidied(void **state)
{
	struct subject subject;
	u32 mode, i, left = N / 50;
	u64 cursor;

	(void)state;
	for (mode = 0; mode < ARRAY_SIZE(test_modes); mode++) {
		struct timers *timers = timers_of(&subject);
		struct test_faults *faults = &subject.queue.faults;

		subject_init(&subject, test_modes[mode]);
		assert_false(timers_is_sparse(timers));
		assert_int_equal(timers_tidy(timers, 1, true), 0);
		cursor = 0;
		assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
		cancel_to(&subject, left);
		assert_true(timers_is_sparse(timers));
		assert_int_equal(tidy(&subject, false), 1);
		assert_int_equal(moves_of(&subject), 0);

		for (i = 0; i < 9; i++) {
			test_queue_evict_all(&subject.queue);
			faults->error = -EAGAIN;
			faults->fail_in = 1 + i;
			while (faults->fail_in &&
			       timers_tidy(timers, 1, true) == 1)
				;
			faults->fail_in = 0;
			assert_int_equal(timers_validate(timers), 0);
		}
		assert_true(tidy(&subject, true) > 8);
		assert_false(timers_is_sparse(timers));
		assert_int_equal(timers_tidy(timers, 1, true), 0);
		assert_true(moves_of(&subject) > 0);
		assert_true(timers->slots.nr < 2 * left + SLOTS_PER_PAGE);
		for (i = 0; i < N; i++)
			assert_int_equal(test_op(&subject.queue, EXPIRY_OP_QUERY,
						 subject.ids[i]).status,
					 i < N - left ? -ENOENT : 0);
		assert_int_equal(scan_some(&subject, NULL, &cursor), -ECANCELED);
		subject_free(&subject);
	}
}

/* A walk that is stopped holds nothing, and no other ends with it. */
static void a_walk_that_is_stopped(void **state)
{
	struct subject subject;
	u64 cursor = 0, other = 0;
	u32 left = N / 50;

	(void)state;
	subject_init(&subject, 0);
	timers_walk_stop(timers_of(&subject), &cursor);
	assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
	assert_int_equal(scan_some(&subject, NULL, &other), 7);
	timers_walk_stop(timers_of(&subject), &cursor);
	assert_true(cursor == 0);
	timers_walk_stop(timers_of(&subject), &cursor);
	cancel_to(&subject, left);
	pass(&subject.queue, N);
	assert_int_equal(moves_of(&subject), 0);
	timers_walk_stop(timers_of(&subject), &other);
	pass(&subject.queue, N);
	assert_true(moves_of(&subject) > 0);
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
		assert_true(moves_of(&subject) > 0);
		subject_free(&subject);
	}
}

/* Scans from @cursor to the end. */
static void scan_to_end(struct subject *subject, u64 *cursor)
{
	do {
		assert_true(scan_some(subject, NULL, cursor) >= 0);
	} while (*cursor);
}

/* Two scans at once: when one has ended, nothing moves before the other has. */
static void each_of_two_scans_holds(void **state)
{
	struct subject subject;
	u64 cursor = 0, other = 0;
	u32 moves;

	(void)state;
	subject_init(&subject, 0);
	cancel_until_moving(&subject);
	moves = moves_of(&subject);
	assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
	assert_int_equal(scan_some(&subject, NULL, &other), 7);
	scan_to_end(&subject, &other);
	pass(&subject.queue, N);
	assert_int_equal(moves_of(&subject), moves);
	scan_to_end(&subject, &cursor);
	pass(&subject.queue, N);
	assert_true(moves_of(&subject) > moves);
	subject_free(&subject);
}

/* A scan that a single call completes ends no other, and is none to wait for. */
static void a_scan_in_one_call(void **state)
{
	static struct expiry_record rows[1024];
	struct subject subject;
	struct timers *timers = timers_of(&subject);
	u64 cursor = 0, other = 0;
	u32 moves;

	(void)state;
	subject_init(&subject, 0);
	cancel_until_moving(&subject);
	/* Until one call of timers_scan() comes to the end. */
	while (timers->slots.nr > 3000)
		cancel_one(&subject);
	assert_true(timers_scan(timers, rows, ARRAY_SIZE(rows), &other) > 0 && !other);
	assert_int_equal(timers->walks, 0);
	assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
	moves = moves_of(&subject);
	assert_true(timers_scan(timers, rows, ARRAY_SIZE(rows), &other) > 0 && !other);
	cancel_to(&subject, N / 50);
	pass(&subject.queue, N);
	assert_int_equal(moves_of(&subject), moves);
	scan_to_end(&subject, &cursor);
	pass(&subject.queue, N);
	assert_true(moves_of(&subject) > moves);
	subject_free(&subject);
}

/* ARMs list all free slots while a scan holds the timers. The compaction has nothing
 * left to do then, and ends.
 */
static void armed_until_all_are_listed(void **state)
{
	struct subject subject;
	struct slots *slots = &timers_of(&subject)->slots;
	u64 cursor = 0;

	(void)state;
	subject_init(&subject, 0);
	cancel_until_moving(&subject);
	assert_int_equal(scan_some(&subject, NULL, &cursor), 7);
	while (slots->known < slots->nr)
		assert_int_equal(test_arm(&subject.queue, 0, FAR, 0, 0).status, 0);
	assert_true(slots_is_compacting(slots));
	scan_to_end(&subject, &cursor);
	pass(&subject.queue, 1);
	assert_false(slots_is_compacting(slots));
	assert_int_equal(timers_validate(timers_of(&subject)), 0);
	subject_free(&subject);
}

/* The least cursor that no table can have ends a scan, rather than be refused. */
static void a_cursor_behind_all_slots(void **state)
{
	struct subject subject;
	struct timers *timers = timers_of(&subject);
	struct expiry_record row;
	u64 end, cursor;

	(void)state;
	subject_init(&subject, 0);
	end = (u64)timers->slots.pages->nr_max * SLOTS_PER_PAGE;
	cursor = (u64)(timers->moves + 1) << 32 | (end - 1);
	assert_int_equal(timers_scan(timers, &row, 1, &cursor), -ECANCELED);
	cursor = (u64)(timers->moves + 1) << 32 | end;
	assert_int_equal(timers_scan(timers, &row, 1, &cursor), 0);
	assert_true(cursor == 0);
	subject_free(&subject);
}

/* Two queues with the same timers and secrets of their own, as a durable queue before
 * and after a restart: each refuses the other's cursor.
 */
static void a_cursor_of_another_life(void **state)
{
	struct expiry_record rows[7];
	struct test_queue lives[2];
	u64 cursors[2] = { 0, 0 }, cursor;
	u32 i;

	(void)state;
	for (i = 0; i < 2; i++) {
		test_queue_init(&lives[i], EXPIRY_MODE_KEYED, N, test_seed + i);
		free(test_arm_many(&lives[i], N, FAR));
		assert_int_equal(timers_scan(&lives[i].timers, rows, 7,
					     &cursors[i]), 7);
	}
	for (i = 0; i < 2; i++) {
		cursor = cursors[!i];
		assert_int_equal(timers_scan(&lives[i].timers, rows, 7, &cursor),
				 -ECANCELED);
		assert_int_equal(timers_scan(&lives[i].timers, rows, 7,
					     &cursors[i]), 7);
	}
	for (i = 0; i < 2; i++)
		test_queue_free(&lives[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		test_with_layouts(a_scan_lists_each_once),
		test_with_layouts(a_scan_given_up),
		test_with_layouts(all_records_count_for_a_walk),
		test_with_layouts(an_idle_queue_is_tidied),
		test_with_layouts(a_walk_that_is_stopped),
		test_with_layouts(a_scan_tried_again_ends),
		test_with_layouts(each_of_two_scans_holds),
		test_with_layouts(a_scan_in_one_call),
		test_with_layouts(armed_until_all_are_listed),
		test_with_layouts(a_cursor_behind_all_slots),
		test_with_layouts(a_cursor_of_another_life),
	};

	test_arguments(argc, argv, 0);
	return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
