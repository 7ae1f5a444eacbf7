// SPDX-License-Identifier: LGPL-2.1-or-later
/* A client's guarantees about its timers, from their arming to their end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support-queue.h"

static void arm_refresh_query_cancel(void **state)
{
	struct expiry *h = open_queue(0);
	uint64_t now = expiry_now(h), id = 77, deadline = 0;
	struct expiry_record timer;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 4711, 0), 0);
	assert_true(id != 77 && id != 0);
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_true(timer.id == id && timer.deadline_ns == now + HOUR);
	assert_true(timer.cookie == 4711 && timer.period_ms == 0);

	/* later, earlier, and not earlier */
	assert_int_equal(expiry_refresh(h, id, now + 3 * HOUR, 0, &deadline), 0);
	assert_true(deadline == now + 3 * HOUR);
	assert_int_equal(expiry_refresh(h, id, now + 2 * HOUR, 0, &deadline), 0);
	assert_true(deadline == now + 2 * HOUR);
	assert_int_equal(expiry_refresh(h, id, now + HOUR, EXPIRY_F_LATER,
					&deadline), 0);
	assert_true(deadline == now + 2 * HOUR);
	assert_int_equal(expiry_refresh(h, id, 5 * HOUR, EXPIRY_F_RELATIVE,
					&deadline), 0);
	assert_true(deadline >= now + 5 * HOUR &&
		    deadline <= expiry_now(h) + 5 * HOUR);

	assert_int_equal(expiry_cancel(h, id, &timer), 0);
	assert_true(timer.deadline_ns == deadline && timer.cookie == 4711);
	timer.cookie = 1;
	assert_int_equal(expiry_cancel(h, id, &timer), -ENOENT);
	assert_true(timer.cookie == 1);
	assert_int_equal(expiry_query(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_refresh(h, id, now + HOUR, 0, NULL), -ENOENT);
	expiry_close(h);
}

/* A program that never names its timers passes no room for an id. */
static void id_is_not_wanted(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record;

	(void)state;
	assert_int_equal(expiry_arm(h, NULL, 0, 0, 7, 0), 0);
	take_due(h, &record, 1);
	assert_true(record.cookie == 7);
	expiry_close(h);
	h = open_queue(EXPIRY_OPEN_KEYED);
	assert_int_equal(expiry_arm(h, NULL, HOUR, 0, 7, 0), -EINVAL);
	expiry_close(h);
}

/* A former id never means the timer in its slot. */
static void stale_ids(void **state)
{
	struct expiry *h = open_queue(0);
	uint64_t first, second;

	(void)state;
	assert_int_equal(expiry_arm(h, &first, HOUR, 0, 1,
				    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_cancel(h, first, NULL), 0);
	assert_int_equal(expiry_arm(h, &second, HOUR, 0, 2,
				    EXPIRY_F_RELATIVE), 0);
	assert_true(first != second);
	assert_int_equal(expiry_cancel(h, first, NULL), -ENOENT);
	assert_int_equal(expiry_query(h, second, NULL), 0);
	expiry_close(h);
}

#define ORDERED	2000

static void delivered_in_order(void **state)
{
	static struct expiry_record records[ORDERED];
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL);
	uint64_t now = expiry_now(h), sum = 0;
	unsigned int seed = 1;
	int i;

	(void)state;
	for (i = 0; i < ORDERED; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.deadline_ns = now - 50 * MS + rand_r(&seed) % (100 * MS),
			.cookie = i,
		};
	assert_int_equal(expiry_submit(h, records, ORDERED), ORDERED);
	for (i = 0; i < ORDERED; i++)
		assert_int_equal(records[i].status, 0);
	memset(records, 0, sizeof(records));

	/* Only now may they come. */
	for (i = 0; i < ORDERED; i += 1000) {
		assert_int_equal(expiry_credit(h, 1000), 0);
		take_due(h, records + i, 1000);
	}
	for (i = 0; i < ORDERED; i++) {
		sum += records[i].cookie;
		if (i)
			assert_true(records[i - 1].deadline_ns <=
				    records[i].deadline_ns);
	}
	assert_true(sum == (uint64_t)ORDERED * (ORDERED - 1) / 2);
	assert_nothing(h);
	expiry_close(h);
}

static void every_clock(void **state)
{
	static const uint32_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME
	};
	struct expiry_record record;
	uint64_t id, deadline;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		const struct expiry_options options = {
			.size = sizeof(options),
			.flags = EXPIRY_OPEN_CONSUME,
			.clock_id = clocks[i],
		};
		struct expiry *h = open_options(&options);

		deadline = expiry_now(h) + 5 * MS;
		assert_int_equal(expiry_arm(h, &id, deadline, 0, i, 0), 0);
		take_due(h, &record, 1);
		assert_true(record.deadline_ns == deadline);
		assert_true(record.id == id && record.cookie == i);
		assert_int_equal(record.flags, 0);
		assert_int_equal(record.status, 0);
		assert_int_equal(expiry_cancel(h, id, NULL), -ENOENT);
		expiry_close(h);
	}
}

static void relative_and_past(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record = {
		.op = EXPIRY_OP_ARM,
		.flags = EXPIRY_F_RELATIVE,
		.deadline_ns = MS,
		.cookie = 1,
	};
	uint64_t before = expiry_now(h), id;

	(void)state;
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(record.status, 0);
	assert_true(record.deadline_ns >= before + MS);
	assert_true(record.deadline_ns <= expiry_now(h) + MS);
	take_due(h, &record, 1);

	assert_int_equal(expiry_arm(h, &id, 0, 0, 2, 0), 0);
	take_due(h, &record, 1);
	assert_true(record.cookie == 2 && record.deadline_ns == 0);
	expiry_close(h);
}

static void never(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record;
	struct expiry_stat stat;
	uint64_t id, other;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, EXPIRY_NEVER, 0, 1, 0), 0);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1 && stat.next_ns == EXPIRY_NEVER);
	assert_int_equal(expiry_arm(h, &other, 0, 0, 2, 0), 0);
	take_due(h, &record, 1);
	assert_true(record.cookie == 2);
	assert_nothing(h);
	/* It can still be called. */
	assert_int_equal(expiry_refresh(h, id, 1, 0, NULL), 0);
	take_due(h, &record, 1);
	assert_true(record.cookie == 1);
	expiry_close(h);
}

static void refreshed_to_now(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record record;
	uint64_t near, far;

	(void)state;
	assert_int_equal(expiry_arm(h, &far, 2 * HOUR, 0, 1,
				    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_arm(h, &near, HOUR, 0, 2,
				    EXPIRY_F_RELATIVE), 0);
	assert_nothing(h);
	assert_int_equal(expiry_refresh(h, far, MS, EXPIRY_F_RELATIVE, NULL), 0);
	take_due(h, &record, 1);
	assert_true(record.id == far);
	assert_nothing(h);
	expiry_close(h);
}

static void periodic(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	struct expiry_record records[5], timer;
	uint64_t id, start = expiry_now(h), next = start;
	int i;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, start, 20, 9, 0), 0);
	take_due(h, records, 5);
	for (i = 0; i < 5; i++) {
		assert_true(records[i].id == id && records[i].cookie == 9);
		assert_true(records[i].deadline_ns == next);
		assert_true(records[i].count >= 1);
		next += records[i].count * 20 * MS;
	}
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_int_equal(timer.period_ms, 20);
	assert_int_equal(expiry_cancel(h, id, NULL), 0);
	assert_int_equal(expiry_query(h, id, NULL), -ENOENT);
	expiry_close(h);
}

static void keyed(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_KEYED | EXPIRY_OPEN_CONSUME);
	uint64_t id = UINT64_MAX, zero = 0, now = expiry_now(h);
	struct expiry_record timer;
	struct expiry_stat stat;

	(void)state;
	assert_int_equal(expiry_arm(h, &zero, now, 0, 0, 0), -EINVAL);
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 1, EXPIRY_F_NEW), 0);
	assert_true(id == UINT64_MAX);
	assert_int_equal(expiry_arm(h, &id, now, 0, 2, EXPIRY_F_NEW), -EEXIST);

	/* in place: one timer, with what came last */
	assert_int_equal(expiry_arm(h, &id, now + 2 * HOUR, 7, 3, 0), 0);
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_true(timer.deadline_ns == now + 2 * HOUR && timer.cookie == 3);
	assert_int_equal(timer.period_ms, 7);
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 4, EXPIRY_F_LATER),
			 0);
	assert_int_equal(expiry_query(h, id, &timer), 0);
	assert_true(timer.deadline_ns == now + 2 * HOUR);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1);
	assert_int_equal(stat.mode, EXPIRY_MODE_KEYED);

	assert_int_equal(expiry_arm(h, &id, now, 0, 5, 0), 0);
	take_due(h, &timer, 1);
	assert_true(timer.id == UINT64_MAX && timer.cookie == 5);
	assert_int_equal(expiry_cancel(h, id, NULL), -ENOENT);
	/* gone, so it is new again */
	assert_int_equal(expiry_arm(h, &id, now + HOUR, 0, 6, EXPIRY_F_NEW), 0);
	assert_int_equal(expiry_cancel(h, id, NULL), 0);
	expiry_close(h);
}

static void acknowledged(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_ACK | EXPIRY_OPEN_CONSUME);
	struct expiry_record records[2];
	struct expiry_stat stat;
	uint64_t id, other;

	(void)state;
	assert_int_equal(expiry_arm(h, &id, 0, 0, 1, 0), 0);
	assert_int_equal(expiry_arm(h, &other, HOUR, 0, 2,
				    EXPIRY_F_RELATIVE), 0);
	take_due(h, records, 1);
	assert_int_equal(expiry_cancel(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1 && stat.unacked == 1);
	assert_int_equal(expiry_ack(h, other), -ENOENT);
	assert_int_equal(expiry_ack(h, id), 0);
	assert_int_equal(expiry_ack(h, id), -ENOENT);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 1 && stat.unacked == 0);
	expiry_close(h);
}

/* Read, unacknowledged timers are delivered again, marked: on a socket when the
 * consumer returns, on a device when it rewinds.
 */
static void delivered_again(void **state)
{
	const uint32_t flags = EXPIRY_OPEN_ACK | EXPIRY_OPEN_CONSUME;
	struct expiry_record records[3];
	struct expiry *h = NULL;
	uint64_t ids[3];
	int i;

	(void)state;
	if (on_device())
		h = open_queue(flags);
	else
		assert_int_equal(open_named(&h, "again", flags), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(expiry_arm(h, &ids[i], 1 + i, 0, i, 0), 0);
	take_due(h, records, 3);
	assert_int_equal(expiry_ack(h, ids[1]), 0);

	if (on_device()) {
		assert_int_equal(expiry_rewind(h), 0);
	} else {
		assert_int_equal(expiry_rewind(h), -EOPNOTSUPP);
		expiry_close(h);
		/* The daemon may need a turn to see that we left. */
		do
			i = open_named(&h, "again", flags);
		while (i == -EBUSY);
		assert_int_equal(i, 0);
	}
	take_due(h, records, 2);
	for (i = 0; i < 2; i++) {
		assert_int_equal(records[i].flags, EXPIRY_F_REDELIVERED);
		assert_true(records[i].id == ids[i * 2]);
		assert_int_equal(expiry_ack(h, records[i].id), 0);
	}
	assert_nothing(h);
	if (!on_device())
		assert_int_equal(expiry_drop(h), 0);
	expiry_close(h);
}

static void clear(void **state)
{
	struct expiry *h = open_queue(EXPIRY_OPEN_CONSUME);
	uint64_t id, count = 0;
	struct expiry_stat stat;
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(expiry_arm(h, &id, HOUR, 0, i,
					    EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_true(count == 100);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_true(stat.armed == 0);
	assert_int_equal(expiry_query(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_true(count == 0);
	expiry_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arm_refresh_query_cancel),
		cmocka_unit_test(id_is_not_wanted),
		cmocka_unit_test(stale_ids),
		cmocka_unit_test(delivered_in_order),
		cmocka_unit_test(every_clock),
		cmocka_unit_test(relative_and_past),
		cmocka_unit_test(never),
		cmocka_unit_test(refreshed_to_now),
		cmocka_unit_test(periodic),
		cmocka_unit_test(keyed),
		cmocka_unit_test(acknowledged),
		cmocka_unit_test(delivered_again),
		cmocka_unit_test(clear),
	};

	return run_on_engines("timers", tests,
			      sizeof(tests) / sizeof(*tests));
}
