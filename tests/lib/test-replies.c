// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Records between replies and after them: expirations, credit, bodies, rows;
 * from a server that sends what no daemon would.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "support-fake.h"

/* ------------------------------------------------------------------------
 * Expirations between replies
 */

static void mix(int fd)
{
	struct expiry_record credit, posted[3], asked[2];

	greet(fd, 100);
	get(fd, &credit, 1);
	get(fd, posted, 3);
	put_event(fd, EXPIRY_OP_EXPIRED, 1000);
	put(fd, posted, 2);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1001);
	get(fd, asked, 2);
	put(fd, posted + 2, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1002);
	put(fd, asked, 1);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 2);
	put_event(fd, EXPIRY_OP_EXPIRED, 1003);
	put(fd, asked + 1, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1004);
	drain(fd);
}

/* Order is kept; of several steps of the clock the program gets the last. */
static void expirations_between_replies(void **state)
{
	static const uint64_t cookies[] = {
		1000, 0, 1, 2, 1001, 2, 1002, 1003, 1004
	};
	struct expiry_record records[3], asked[2], got[9];
	struct fake server;
	struct expiry *h = fake_open(&server, mix, EXPIRY_OPEN_CONSUME, 8);
	int i;

	(void)state;
	fill_arm(records, 3);
	fill_arm(asked, 2);
	asked[0].op = EXPIRY_OP_QUERY;
	asked[1].op = EXPIRY_OP_CANCEL;
	assert_int_equal(expiry_post(h, records, 3), 3);
	assert_int_equal(expiry_submit(h, asked, 2), 2);
	assert_int_equal(asked[0].op, EXPIRY_OP_QUERY);
	assert_int_equal(asked[1].op, EXPIRY_OP_CANCEL);
	assert_int_equal(expiry_receive(h, got, 1, 0), -EBUSY);
	take(h, got, 9);
	for (i = 0; i < 9; i++)
		assert_int_equal(got[i].cookie, cookies[i]);
	assert_int_equal(got[3].op, EXPIRY_OP_CLOCK_SET);
	assert_int_equal(expiry_receive(h, got, 1, 0), 0);
	fake_end(&server, h);
}

static void use_up_credit(int fd)
{
	struct expiry_record credit;
	uint64_t cookie = 0;
	uint32_t i;

	greet(fd, 100);
	while (get(fd, &credit, 1)) {
		if (credit.op != EXPIRY_OP_CREDIT)
			return;
		for (i = 0; i < credit.period_ms; i++)
			put_event(fd, EXPIRY_OP_EXPIRED, cookie++);
	}
}

static void an_event_before_replies(int fd)
{
	struct expiry_record records[3];

	greet(fd, 10);
	get(fd, records, 3);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put(fd, records, 3);
}

/* An error is the handle's for good: replies that stood behind it do not come. */
static void a_broken_handle_stays_broken(void **state)
{
	struct expiry_record records[3];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = fake_open(&server, an_event_before_replies, 0, 0);
	fill_arm(records, 3);
	assert_int_equal(expiry_post(h, records, 3), 3);
	assert_int_equal(expiry_flush(h), 0);
	fake_wait(&server);
	for (i = 0; i < 4; i++)
		assert_int_equal(expiry_next(h, records, 1), -EPROTO);
	fake_end(&server, h);
}

/* Each option works up to its limit, and not beyond. expiry_info() fills the caller's
 * size.
 */
static void options_have_limits(void **state)
{
	static const struct {
		struct expiry_options options;
		int error;
	} cases[] = {
		{ { .credit = EXPIRY_CREDIT_MAX }, 0 },
		{ { .credit = EXPIRY_CREDIT_MAX + 1 }, -EINVAL },
		{ { .window = EXPIRY_WINDOW_MAX }, 0 },
		{ { .window = EXPIRY_WINDOW_MAX + 1 }, -EINVAL },
		{ { .timeout_ms = INT32_MAX }, 0 },
		{ { .timeout_ms = INT32_MAX + 1U }, -EINVAL },
	};
	unsigned char room[2 * sizeof(struct expiry_info)];
	struct expiry_info info;
	size_t i, j, size;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct expiry_options options = cases[i].options;
		struct fake server;
		struct expiry *h;

		options.size = sizeof(options);
		options.flags = EXPIRY_OPEN_CONSUME;
		fake_start(&server, echo);
		assert_int_equal(expiry_open(&h, server.address, &options),
				 cases[i].error);
		if (cases[i].error) {
			fake_stop(&server);
			continue;
		}
		expiry_info(h, &info, sizeof(info));
		assert_int_equal(info.credit,
				 options.credit ?: EXPIRY_CREDIT_DEFAULT);
		assert_int_equal(info.device, 0);
		assert_int_equal(info.reconnects, 0);
		for (size = 0; size <= sizeof(room); size++) {
			memset(room, 0xaa, sizeof(room));
			expiry_info(h, (void *)room, size);
			for (j = 0; j < sizeof(room); j++)
				assert_int_equal(room[j], j >= size ? 0xaa :
					j >= sizeof(info) ? 0 :
					((unsigned char *)&info)[j]);
		}
		fake_end(&server, h);
	}
}

/* Before each reply the clock is set once more. */
static void set_the_clock(int fd)
{
	struct expiry_record record;

	greet(fd, 4);
	while (get(fd, &record, 1)) {
		if (record.op == EXPIRY_OP_CREDIT)
			continue;
		put_event(fd, EXPIRY_OP_CLOCK_SET, record.cookie);
		put(fd, &record, 1);
	}
}

/* The program gets the last step that it has not seen, and each later one. */
static void the_last_step_of_the_clock_is_kept(void **state)
{
	struct expiry_record record;
	uint64_t cookie = 0;
	struct fake server;
	struct expiry *h;
	int round, steps;

	(void)state;
	h = fake_open(&server, set_the_clock, EXPIRY_OPEN_CONSUME, 3);
	for (round = 0; round < 12; round++) {
		for (steps = 0; steps <= round % 3; steps++) {
			record = (struct expiry_record){
				.op = EXPIRY_OP_QUERY,
				.cookie = ++cookie,
			};
			assert_int_equal(expiry_submit(h, &record, 1), 1);
		}
		assert_int_equal(expiry_pending(h), 1);
		take(h, &record, 1);
		assert_int_equal(record.op, EXPIRY_OP_CLOCK_SET);
		assert_int_equal(record.cookie, cookie);
		assert_int_equal(expiry_pending(h), 0);
	}
	fake_end(&server, h);
}

#define FULL	4

/* All at once: a reply to what was posted, what credit is for, a clock's step. */
static void fill_the_handle(int fd)
{
	struct expiry_record records[FULL], record;
	int i;

	greet(fd, FULL);
	while (get(fd, &record, 1) && record.op == EXPIRY_OP_CREDIT)
		;
	records[0] = record;
	get(fd, records + 1, FULL - 1);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 100);
	for (i = 0; i < FULL; i++) {
		put(fd, records + i, 1);
		put_event(fd, EXPIRY_OP_EXPIRED, i);
	}
	while (get(fd, &record, 1))
		if (record.op != EXPIRY_OP_CREDIT)
			put(fd, &record, 1);
}

/* A call stores the records before its own reply: up to the window, the credit and
 * one more. Later calls return them, as many as they request.
 */
static void all_that_can_wait_is_kept(void **state)
{
	struct expiry_record posted[FULL], record = { .op = EXPIRY_OP_QUERY };
	struct expiry_record got[2 * FULL + 1];
	int i, replies = 0, expired = 0;
	struct fake server;
	struct expiry *h;

	(void)state;
	h = fake_open(&server, fill_the_handle, EXPIRY_OPEN_CONSUME, FULL);
	fill_arm(posted, FULL);
	assert_int_equal(expiry_post(h, posted, FULL), FULL);
	while (expiry_flush(h))
		;
	/* It sends its request only when one of those has been answered. */
	record.cookie = 77;
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(record.cookie, 77);
	assert_int_equal(expiry_pending(h), 2 * FULL + 1);
	assert_int_equal(expiry_next(h, got, 1), 1);
	assert_int_equal(expiry_next(h, got + 1, 2 * FULL), 2 * FULL);
	assert_int_equal(got[0].op, EXPIRY_OP_CLOCK_SET);
	for (i = 1; i <= 2 * FULL; i++) {
		if (got[i].op == EXPIRY_OP_EXPIRED)
			assert_int_equal(got[i].cookie, expired++);
		else
			assert_int_equal(got[i].cookie, replies++);
	}
	assert_int_equal(replies, FULL);
	assert_int_equal(expired, FULL);
	fake_end(&server, h);
}

static void credit_is_topped_up(void **state)
{
	struct expiry_record got[200];
	struct fake server;
	struct expiry *h = fake_open(&server, use_up_credit, EXPIRY_OPEN_CONSUME,
				     100);
	uint64_t cookie = 0;
	int i, nr;

	(void)state;
	while (cookie < 5000) {
		nr = expiry_receive(h, got, 1 + cookie % 199, 60000);
		assert_true(nr > 0 && nr <= 100);
		for (i = 0; i < nr; i++)
			assert_int_equal(got[i].cookie, cookie++);
	}
	fake_end(&server, h);
}

static void credit_by_hand(void **state)
{
	struct expiry_record got[20];
	struct fake server;
	struct expiry *h = fake_open(&server, use_up_credit,
				     EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL,
				     10);

	(void)state;
	assert_int_equal(expiry_next(h, got, 20), 0);
	assert_int_equal(expiry_credit(h, 11), -ENOBUFS);
	assert_int_equal(expiry_credit(h, UINT32_MAX), -ENOBUFS);
	assert_int_equal(expiry_credit(h, 4), 0);
	assert_int_equal(expiry_credit(h, 7), -ENOBUFS);
	take(h, got, 4);
	assert_int_equal(expiry_credit(h, 10), 0);
	take(h, got, 10);
	assert_int_equal(got[9].cookie, 13);
	assert_int_equal(expiry_next(h, got, 20), 0);
	fake_end(&server, h);
}

static void too_many(int fd)
{
	int i;

	greet(fd, 100);
	for (i = 0; i < 11; i++)
		put_event(fd, EXPIRY_OP_EXPIRED, i);
	drain(fd);
}

static void unasked(int fd)
{
	greet(fd, 100);
	put_event(fd, EXPIRY_OP_ARM, 0);
	drain(fd);
}

static void protocol_broken(void **state)
{
	struct expiry_record record = { .op = EXPIRY_OP_QUERY };
	struct fake server;
	struct expiry *h;

	(void)state;
	h = fake_open(&server, too_many,
		      EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL, 10);
	assert_int_equal(expiry_credit(h, 10), 0);
	assert_int_equal(next_error(h), -EPROTO);
	fake_end(&server, h);

	h = fake_open(&server, too_many, EXPIRY_OPEN_CONSUME, 10);
	assert_int_equal(expiry_submit(h, &record, 1), -EPROTO);
	fake_end(&server, h);

	h = fake_open(&server, too_many, 0, 0);
	assert_int_equal(next_error(h), -EPROTO);
	fake_end(&server, h);

	h = fake_open(&server, unasked, 0, 0);
	assert_int_equal(next_error(h), -EPROTO);
	fake_end(&server, h);
}

static void expire_and_go(int fd)
{
	struct expiry_record credit;
	int i;

	greet(fd, 100);
	get(fd, &credit, 1);
	for (i = 0; i < 5; i++)
		put_event(fd, EXPIRY_OP_EXPIRED, i);
}

/* Arrived records come before the end, even if sending failed first. */
static void nothing_is_lost_at_the_end(void **state)
{
	struct expiry_record records[200], got[5];
	struct fake server;
	struct expiry *h = fake_open(&server, expire_and_go,
				     EXPIRY_OPEN_CONSUME, 10);

	(void)state;
	fake_wait(&server);
	fill_arm(records, 200);
	assert_true(expiry_post(h, records, 200) >= 0);
	take(h, got, 5);
	assert_int_equal(got[4].cookie, 4);
	assert_int_equal(next_error(h), -ECONNRESET);
	fake_end(&server, h);
}

static void stay_silent(int fd)
{
	greet(fd, 100);
	drain(fd);
}

static void server_falls_silent(void **state)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.timeout_ms = 1000,
	};
	struct fake server;
	struct expiry *h;

	(void)state;
	fake_start(&server, stay_silent);
	assert_int_equal(expiry_open(&h, server.address, &options), 0);
	assert_int_equal(expiry_cancel(h, 1, NULL), -ETIMEDOUT);
	assert_int_equal(expiry_cancel(h, 1, NULL), -ETIMEDOUT);
	fake_end(&server, h);
}

static volatile sig_atomic_t ticks_left;

/* Signals end, so that a call that begins its wait anew with each ends as well. */
static void tick(int number)
{
	const struct itimerval none = { 0 };

	(void)number;
	if (!--ticks_left)
		setitimer(ITIMER_REAL, &none, NULL);
}

static void signals_do_not_prolong_a_wait(void **state)
{
	const struct itimerval each = { { 0, 20000 }, { 0, 20000 } };
	const struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	struct expiry_options options = {
		.size = sizeof(options),
		.timeout_ms = 100,
	};
	struct sigaction before;
	struct fake server;
	struct expiry *h;

	(void)state;
	fake_start(&server, stay_silent);
	assert_int_equal(expiry_open(&h, server.address, &options), 0);
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	/* Ten seconds of them. */
	ticks_left = 500;
	assert_int_equal(setitimer(ITIMER_REAL, &each, NULL), 0);
	assert_int_equal(expiry_cancel(h, 1, NULL), -ETIMEDOUT);
	assert_true(ticks_left > 0);
	ticks_left = 1;
	while (ticks_left > 0)
		pause();
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	fake_end(&server, h);
}

/* ------------------------------------------------------------------------
 * Replies of more than one record
 */

static void put_stat(int fd, uint32_t units)
{
	struct expiry_record *body = calloc(units + 1, RECORD);
	uint32_t i;

	body[0].op = EXPIRY_OP_STAT;
	body[0].period_ms = units;
	/* Bytes that would be expirations if they were taken for records. */
	memset(body + 1, EXPIRY_OP_EXPIRED, units * RECORD);
	for (i = 0; i <= units; i++)
		put(fd, body + i, 1);
	free(body);
}

static void stat_longer(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		if (record.op == EXPIRY_OP_STAT)
			put_stat(fd, 100);
		else
			put(fd, &record, 1);
	}
}

static void stat_short(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	get(fd, &record, 1);
	put_stat(fd, 3);
	drain(fd);
}

static void stat_of_another_version(void **state)
{
	struct {
		struct expiry_server_stat server;
		uint64_t guard;
	} s = { .guard = 42 };
	struct expiry_stat stat;
	struct fake server;
	struct expiry *h = fake_open(&server, stat_longer, 0, 0);
	uint64_t count = 1;

	(void)state;
	assert_int_equal(expiry_stat(h, &stat, &s.server, sizeof(s.server)), 0);
	assert_int_equal(stat.clock_id, 0x10101010);
	assert_int_equal(s.server.engine, 0x10101010);
	assert_int_equal(s.guard, 42);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_int_equal(count, 0);
	fake_end(&server, h);

	h = fake_open(&server, stat_short, 0, 0);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), -EPROTO);
	fake_end(&server, h);
}

/* Puts the requested number of queues, and @more, with bodies of @units. */
static void put_queues(int fd, uint32_t units, uint32_t more)
{
	struct expiry_record record, *row = calloc(units + 1, RECORD);
	uint32_t i;

	greet(fd, 100);
	get(fd, &record, 1);
	row[0].op = EXPIRY_OP_QUEUES;
	row[0].period_ms = units;
	memset(&row[0].id, 'q', EXPIRY_NAME_MAX);
	memset(row + 1, EXPIRY_OP_EXPIRED, units * RECORD);
	for (i = 0; i < record.period_ms + more; i++)
		put(fd, row, units + 1);
	put(fd, &(struct expiry_record){
		.op = EXPIRY_OP_QUEUES, .cookie = 77 }, 1);
	drain(fd);
	free(row);
}

static void queues_longer(int fd)
{
	put_queues(fd, 40, 0);
}

static void queues_short(int fd)
{
	put_queues(fd, 3, 0);
}

static void queues_too_many(int fd)
{
	put_queues(fd, 19, 1);
}

static void queues_of_another_version(void **state)
{
	static void (*const wrong[])(int fd) = {
		queues_short, queues_too_many,
	};
	struct {
		struct expiry_queue rows[3];
		uint64_t guard;
	} q = { .guard = 42 };
	struct fake server;
	struct expiry *h = fake_open(&server, queues_longer, 0, 0);
	uint64_t cursor = 0;
	size_t i;

	(void)state;
	assert_int_equal(expiry_queues(h, &cursor, q.rows, 3), 3);
	assert_int_equal(cursor, 77);
	assert_string_equal(q.rows[2].name, "qqqqqqqqqqqqqqqqqqqqqqqq");
	assert_int_equal(q.rows[2].daemon.uid, 0x10101010);
	assert_int_equal(q.rows[2].stat.mode, 0x10101010);
	assert_int_equal(q.guard, 42);
	fake_end(&server, h);

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		cursor = 5;
		h = fake_open(&server, wrong[i], 0, 0);
		assert_int_equal(expiry_queues(h, &cursor, q.rows, 3), -EPROTO);
		assert_int_equal(cursor, 5);
		assert_int_equal(q.guard, 42);
		fake_end(&server, h);
	}
}

static void scan_too_much(int fd)
{
	struct expiry_record record;
	uint32_t i, rows;

	greet(fd, 100);
	get(fd, &record, 1);
	rows = record.period_ms + 1;
	for (i = 0; i < rows; i++) {
		record.id = 1 + i;
		put(fd, &record, 1);
	}
	drain(fd);
}

static void scans(void **state)
{
	struct expiry_record rows[8];
	struct fake server;
	struct expiry *h = fake_open(&server, scan_too_much, 0, 0);
	uint64_t cursor = 0;

	(void)state;
	assert_int_equal(expiry_scan(h, &cursor, rows, 7), -EPROTO);
	fake_end(&server, h);

	h = fake_open(&server, scan_refused, 0, 0);
	cursor = 77;
	assert_int_equal(expiry_scan(h, &cursor, rows, 8), -EINVAL);
	assert_int_equal(cursor, 77);
	assert_int_equal(expiry_clear(h, NULL), 0);
	fake_end(&server, h);
}

static void after_drop(void **state)
{
	struct fake server;
	struct expiry *h = fake_open(&server, echo, 0, 0);

	(void)state;
	assert_int_equal(expiry_drop(h), 0);
	assert_int_equal(expiry_drop(h), -ENOTCONN);
	assert_int_equal(expiry_clear(h, NULL), -ENOTCONN);
	fake_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expirations_between_replies),
		cmocka_unit_test(a_broken_handle_stays_broken),
		cmocka_unit_test(options_have_limits),
		cmocka_unit_test(the_last_step_of_the_clock_is_kept),
		cmocka_unit_test(all_that_can_wait_is_kept),
		cmocka_unit_test(credit_is_topped_up),
		cmocka_unit_test(credit_by_hand),
		cmocka_unit_test(protocol_broken),
		cmocka_unit_test(nothing_is_lost_at_the_end),
		cmocka_unit_test(server_falls_silent),
		cmocka_unit_test(signals_do_not_prolong_a_wait),
		cmocka_unit_test(stat_of_another_version),
		cmocka_unit_test(queues_of_another_version),
		cmocka_unit_test(scans),
		cmocka_unit_test(after_drop),
	};

	return cmocka_run_group_tests_name("replies", tests, NULL, NULL);
}
