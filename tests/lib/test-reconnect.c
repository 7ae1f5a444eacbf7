// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT's handling of requests and expirations, with a fake
 * server whose connections break at the worst moments.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "support-lasting.h"

/* Take the next request, which is to have this cookie, and answer it. */
static void answer(int fd, uint64_t cookie)
{
	struct expiry_record record;

	if (!get(fd, &record, 1))
		return;
	script_expect(record.cookie == cookie, "requests are not in order");
	script_expect(record.op != EXPIRY_OP_CREDIT, "credit before requests");
	put(fd, &record, 1);
}

/* ------------------------------------------------------------------------
 * Requests
 */

static void answer_two_and_a_half(int fd)
{
	struct expiry_record records[4];

	greet(fd, 1000);
	get(fd, records, 4);
	put_bytes(fd, records, 2 * RECORD + RECORD / 2);
}

static void answer_the_others(int fd)
{
	greet_again(fd);
	answer(fd, 2);
	answer(fd, 3);
	drain(fd);
}

static void unanswered_are_sent_again(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		answer_two_and_a_half, answer_the_others
	};
	static const uint8_t ops[] = {
		EXPIRY_OP_ARM, EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL,
		EXPIRY_OP_QUERY,
	};
	struct expiry_record records[4], sent[4];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = lasting_open(&server, scripts, KEYED, WAIT_MS);
	for (i = 0; i < 4; i++)
		records[i] = lasting_request(ops[i], i);
	memcpy(sent, records, sizeof(sent));
	assert_int_equal(expiry_submit(h, records, 4), 4);
	assert_memory_equal(records, sent, sizeof(sent));
	assert_int_equal(lasting_count(h), 1);
	lasting_end(&server, h);
}

static void answer_three_of_five(int fd)
{
	struct expiry_record records[5];

	greet(fd, 1000);
	get(fd, records, 5);
	put_bytes(fd, records, 3 * RECORD + 5);
}

static void answer_the_two_and_more(int fd)
{
	uint64_t cookie;

	greet_again(fd);
	for (cookie = 3; cookie < 7; cookie++)
		answer(fd, cookie);
	drain(fd);
}

/* A program that has given the descriptor to an epoll of its own, once. */
static void posted_behind_one_descriptor(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		answer_three_of_five, answer_the_two_and_more
	};
	struct epoll_event event = { .events = EPOLLIN };
	struct expiry_record records[7], got[7];
	int i, nr, done = 0, posted, epoll_fd = epoll_create1(0);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = lasting_open(&server, scripts, KEYED, 0);
	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, expiry_fd(h),
				   &event), 0);
	for (i = 0; i < 7; i++)
		records[i] = lasting_request(EXPIRY_OP_ARM, i);
	posted = expiry_post(h, records, 5);
	assert_int_equal(posted, 5);
	while (done < 7) {
		nr = expiry_next(h, got + done, 7 - done);
		assert_true(nr >= 0);
		done += nr;
		if (done >= 3 && posted == 5)
			posted += expiry_post(h, records + 5, 2);
		assert_true(expiry_flush(h) >= 0);
		if (nr || done == 7)
			continue;
		assert_int_equal(expiry_events(h), POLLIN);
		assert_int_equal(epoll_wait(epoll_fd, &event, 1, WAIT_MS), 1);
	}
	assert_memory_equal(got, records, sizeof(got));
	assert_int_equal(lasting_count(h), 1);
	close(epoll_fd);
	lasting_end(&server, h);
}

/* Deadlines an hour from a call, which was made between these, less an hour. */
static uint64_t earliest_ns, latest_ns;

static uint64_t in_an_hour(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec + HOUR;
}

static void take_and_go(int fd)
{
	struct expiry_record records[2];

	greet(fd, 1000);
	get(fd, records, 2);
	latest_ns = in_an_hour();
	/* So long that a deadline from the second time is later. */
	poll(NULL, 0, 5);
}

static void expect_absolute(int fd)
{
	struct expiry_record record;
	int i;

	greet_again(fd);
	for (i = 0; i < 2; i++) {
		if (!get(fd, &record, 1))
			return;
		script_expect(!(record.flags & EXPIRY_F_RELATIVE),
			      "sent again with a deadline from now");
		script_expect(record.deadline_ns >= earliest_ns &&
			      record.deadline_ns <= latest_ns,
			      "the pause moved the deadline");
		put(fd, &record, 1);
	}
	drain(fd);
}

static void relative(struct expiry_record *records)
{
	int i;

	for (i = 0; i < 2; i++) {
		records[i] = lasting_request(i ? EXPIRY_OP_REFRESH : EXPIRY_OP_ARM, i);
		records[i].flags = EXPIRY_F_RELATIVE;
		records[i].deadline_ns = HOUR;
	}
	earliest_ns = in_an_hour();
}

static void pause_does_not_move_deadlines(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		take_and_go, expect_absolute
	};
	struct expiry_record records[2];
	struct fake server;
	struct expiry *h;

	(void)state;
	h = lasting_open(&server, scripts, KEYED, WAIT_MS);
	relative(records);
	assert_int_equal(expiry_submit(h, records, 2), 2);
	lasting_end(&server, h);

	h = lasting_open(&server, scripts, KEYED, WAIT_MS);
	relative(records);
	assert_int_equal(expiry_post(h, records, 2), 2);
	take(h, records, 2);
	lasting_end(&server, h);
}

/* Nor does one that began before the call. */
static void pause_before_the_call(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up };
	fake_script *const later[] = { expect_absolute, NULL };
	struct expiry_record records[2];
	struct fake server;
	struct expiry *h;

	(void)state;
	h = lasting_open(&server, scripts, KEYED, 0);
	fake_halt(&server);
	assert_int_equal(expiry_next(h, records, 2), 0);
	relative(records);
	assert_int_equal(expiry_post(h, records, 2), 2);
	assert_int_equal(expiry_flush(h), 1);
	latest_ns = in_an_hour();
	poll(NULL, 0, 5);
	fake_resume(&server, later);
	take(h, records, 2);
	lasting_end(&server, h);
}

static void take_five(int fd)
{
	struct expiry_record records[5];

	greet(fd, 1000);
	get(fd, records, 5);
}

static void expect_the_last(int fd)
{
	greet_again(fd);
	answer(fd, 4);
	drain(fd);
}

/* Requests that are not idempotent come back, with those before them. */
static void in_doubt(void **state)
{
	static const struct {
		uint32_t flags;
		struct expiry_record record;
	} cases[] = {
		{ 0, { .op = EXPIRY_OP_ARM } },
		{ KEYED, { .op = EXPIRY_OP_ARM, .flags = EXPIRY_F_NEW } },
		{ KEYED, { .op = EXPIRY_OP_CLEAR } },
		{ 0, { .op = 63 } },
	};
	fake_script *const scripts[FAKE_SCRIPTS] = {
		take_five, expect_the_last
	};
	struct expiry_record records[5], got[5];
	struct fake server;
	struct expiry *h;
	size_t i;
	int k;

	(void)state;
	for (i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		for (k = 0; k < 5; k++)
			records[k] = lasting_request(EXPIRY_OP_QUERY, k);
		records[3] = cases[i / 2].record;
		h = lasting_open(&server, scripts, cases[i / 2].flags, WAIT_MS);
		if (i % 2) {
			assert_int_equal(expiry_post(h, records, 5), 5);
			take(h, got, 5);
		} else {
			memcpy(got, records, sizeof(got));
			assert_int_equal(expiry_submit(h, got, 5), 5);
		}
		for (k = 0; k < 4; k++)
			records[k].status = -ECONNRESET;
		assert_memory_equal(got, records, sizeof(got));
		lasting_end(&server, h);
	}
}

/* ------------------------------------------------------------------------
 * Consuming
 */

static void expire_and_go(int fd)
{
	struct expiry_record credit, request;

	greet(fd, 1000);
	get(fd, &credit, 1);
	script_expect(credit.op == EXPIRY_OP_CREDIT && credit.period_ms == 8,
		      "the first credit");
	get(fd, &request, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 2);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 3);
}

/* Read credit until it is so much. */
static void get_credit(int fd, uint32_t wanted)
{
	struct expiry_record record;
	uint32_t sum = 0;

	while (sum < wanted && get(fd, &record, 1))
		if (record.op == EXPIRY_OP_CREDIT)
			sum += record.period_ms;
	script_expect(sum == wanted, "there is more credit");
}

static sem_t credited;

static void expire_again(int fd)
{
	struct expiry_record record = { .op = EXPIRY_OP_EXPIRED };

	greet_again(fd);
	answer(fd, 77);
	get(fd, &record, 1);
	script_expect(record.op == EXPIRY_OP_CREDIT && record.period_ms == 8,
		      "the credit is not as it was");
	for (record.cookie = 1; record.cookie < 9; record.cookie++) {
		record.op = EXPIRY_OP_EXPIRED;
		record.flags = EXPIRY_F_REDELIVERED;
		put(fd, &record, 1);
	}
	get_credit(fd, 8);
	sem_post(&credited);
	drain(fd);
}

/* Waits until the server has the credit that it waits for. */
static void wait_for_credit(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_MS / 1000;
	assert_int_equal(sem_timedwait(&credited, &end), 0);
	sem_destroy(&credited);
}

static void steps_and_go(int fd)
{
	struct expiry_record record;

	greet(fd, 1000);
	get(fd, &record, 1);
	get(fd, &record, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 2);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 3);
}

static void step_again(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 4);
	while (get(fd, &record, 1))
		if (record.op != EXPIRY_OP_CREDIT)
			put(fd, &record, 1);
}

/* A clock that was set before and after the break is one step, the later. */
static void steps_on_two_connections_are_one(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { steps_and_go, step_again };
	struct expiry_record record = lasting_request(EXPIRY_OP_ARM, 77);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = lasting_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(lasting_count(h), 1);
	assert_int_equal(expiry_pending(h), 1);
	take(h, &record, 1);
	assert_int_equal(record.op, EXPIRY_OP_CLOCK_SET);
	assert_int_equal(record.cookie, 4);
	lasting_end(&server, h);
}

static void go_before_the_answer(int fd)
{
	struct expiry_record records[2];

	greet(fd, 1000);
	get(fd, records, 2);
}

static void answer_and_wait_for_credit(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	answer(fd, 77);
	if (get(fd, &record, 1) && record.op == EXPIRY_OP_CREDIT)
		sem_post(&credited);
	drain(fd);
}

/* A call that ends on another connection has given the credit there: the program
 * may wait for expirations by the descriptor alone.
 */
static void credit_follows_the_answer(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		go_before_the_answer, answer_and_wait_for_credit
	};
	struct expiry_record record = lasting_request(EXPIRY_OP_ARM, 77);
	struct fake server;
	struct expiry *h;

	(void)state;
	sem_init(&credited, 0, 0);
	h = lasting_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	wait_for_credit();
	lasting_end(&server, h);
}

static void answer_one_and_go(int fd)
{
	struct expiry_record records[2];

	greet(fd, 1000);
	get(fd, records, 2);
	script_expect(records[1].op == EXPIRY_OP_SCAN, "no SCAN");
	put(fd, records, 1);
}

static void expect_the_scan_alone(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	while (get(fd, &record, 1)) {
		script_expect(record.op == EXPIRY_OP_SCAN,
			      "what was answered is asked again");
		record.status = -EINVAL;
		put(fd, &record, 1);
	}
}

/* An answer that a list met before it broke off is one. */
static void answered_before_a_list_broke_off(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		answer_one_and_go, expect_the_scan_alone
	};
	struct expiry_record record = lasting_request(EXPIRY_OP_QUERY, 5), row;
	struct fake server;
	uint64_t cursor = 0;
	struct expiry *h;

	(void)state;
	h = lasting_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_post(h, &record, 1), 1);
	assert_int_equal(expiry_scan(h, &cursor, &row, 1), -EINVAL);
	take(h, &record, 1);
	assert_int_equal(record.cookie, 5);
	assert_int_equal(expiry_next(h, &record, 1), 0);
	lasting_end(&server, h);
}

static void answer_three_at_once(int fd)
{
	struct expiry_record records[3];

	greet(fd, 1000);
	get(fd, records, 3);
	put(fd, records, 3);
	drain(fd);
}

/* A received record counts as pending: the descriptor is readable only for more. */
static void what_has_arrived_is_pending(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { answer_three_at_once };
	struct expiry_record record = lasting_request(EXPIRY_OP_QUERY, 5);
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = lasting_open(&server, scripts, KEYED, WAIT_MS);
	for (i = 0; i < 3; i++)
		assert_int_equal(expiry_post(h, &record, 1), 1);
	assert_int_equal(expiry_pending(h), 0);
	for (i = 0; i < 3; i++) {
		take(h, &record, 1);
		assert_int_equal(expiry_pending(h), 2 - i);
	}
	lasting_end(&server, h);
}

static void answer_two_and_go(int fd)
{
	struct expiry_record records[2];

	greet(fd, 1000);
	get(fd, records, 2);
	put(fd, records, 2);
}

/* A reply that is met together with the end of its connection is handed out. */
static void the_last_reply_before_the_end(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { answer_two_and_go };
	static struct expiry_record records[1000];
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = lasting_open(&server, scripts, KEYED, WAIT_MS);
	for (i = 0; i < 2; i++) {
		record = lasting_request(EXPIRY_OP_QUERY, i);
		assert_int_equal(expiry_post(h, &record, 1), 1);
	}
	assert_int_equal(expiry_flush(h), 0);
	fake_wait(&server);
	assert_int_equal(expiry_next(h, &record, 1), 1);
	assert_int_equal(record.cookie, 0);
	assert_int_equal(expiry_next(h, records, 1000), 1);
	assert_int_equal(records[0].cookie, 1);
	lasting_end(&server, h);
}

static void relative_and_go(int fd)
{
	struct expiry_record record;

	greet(fd, 1000);
	get(fd, &record, 1);
	script_expect(record.flags & EXPIRY_F_RELATIVE &&
		      record.deadline_ns == HOUR,
		      "what was not sent before is changed");
}

/* Only what is sent again is changed: the server's clock is the right one. */
static void relative_the_first_time(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { relative_and_go, echo_again };
	struct expiry_record record = lasting_request(EXPIRY_OP_ARM, 77);
	struct fake server;
	struct expiry *h;

	(void)state;
	record.flags = EXPIRY_F_RELATIVE;
	h = lasting_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(record.flags, 0);
	lasting_end(&server, h);
}

/* Expirations of the handle come once, marked; credit is given anew, after the
 * repeated requests.
 */
static void held_expirations_come_once(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		expire_and_go, expire_again
	};
	struct expiry_record record = lasting_request(EXPIRY_OP_ARM, 77), got[9];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	sem_init(&credited, 0, 0);
	h = lasting_open(&server, scripts, KEYED | ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	take(h, got, 9);
	wait_for_credit();
	assert_int_equal(got[0].op, EXPIRY_OP_CLOCK_SET);
	for (i = 1; i < 9; i++) {
		assert_int_equal(got[i].cookie, i);
		assert_int_equal(got[i].flags, EXPIRY_F_REDELIVERED);
	}
	lasting_end(&server, h);
}

static void copy_and_go(int fd)
{
	struct expiry_record request;

	greet(fd, 1000);
	get(fd, &request, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_CLOCK_SET, 2);
	put_event(fd, EXPIRY_OP_MISSED, 3);
}

static void copy_again(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	answer(fd, 77);
	put_event(fd, EXPIRY_OP_EXPIRED, 4);
	script_expect(!get(fd, &record, 1), "an observer gives no credit");
}

/* Copies that an observer held do not come again, so they are kept. */
static void held_copies_stay(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { copy_and_go, copy_again };
	struct expiry_record record = lasting_request(EXPIRY_OP_QUERY, 77);
	struct expiry_record got[4];
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = lasting_open(&server, scripts, KEYED | EXPIRY_OPEN_OBSERVE,
			 WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	take(h, got, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(got[i].cookie, i + 1);
	assert_int_equal(got[2].op, EXPIRY_OP_MISSED);
	assert_int_equal(lasting_count(h), 1);
	lasting_end(&server, h);
}

static void expect_two_acks(int fd)
{
	struct expiry_record credit;

	greet_again(fd);
	answer(fd, 1);
	answer(fd, 2);
	get(fd, &credit, 1);
	/* Two were handed out; what is left of eight is more than half. */
	script_expect(credit.op == EXPIRY_OP_CREDIT && credit.period_ms == 6,
		      "the credit is not behind the acknowledgements");
	put_event(fd, EXPIRY_OP_EXPIRED, 3);
	drain(fd);
}

static void expire_two_and_go(int fd)
{
	struct expiry_record records[3];

	greet(fd, 1000);
	get(fd, records, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 2);
	get(fd, records, 2);
}

/* A consumer that only receives and acknowledges does not notice. */
static void consumer_receives_on(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		expire_two_and_go, expect_two_acks
	};
	struct expiry_record got[2], acks[2];
	struct fake server;
	struct expiry *h;
	int i, nr = 0;

	(void)state;
	h = lasting_open(&server, scripts, ACKING, WAIT_MS);
	while (nr < 2) {
		i = expiry_receive(h, got + nr, 2 - nr, WAIT_MS);
		assert_true(i > 0);
		nr += i;
	}
	for (i = 0; i < 2; i++) {
		acks[i] = lasting_request(EXPIRY_OP_ACK, got[i].cookie);
		assert_int_equal(acks[i].cookie, i + 1);
	}
	assert_int_equal(expiry_post(h, acks, 2), 2);
	take(h, acks, 2);
	assert_int_equal(expiry_receive(h, got, 2, WAIT_MS), 1);
	assert_int_equal(got[0].cookie, 3);
	lasting_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unanswered_are_sent_again),
		cmocka_unit_test(posted_behind_one_descriptor),
		cmocka_unit_test(pause_does_not_move_deadlines),
		cmocka_unit_test(pause_before_the_call),
		cmocka_unit_test(in_doubt),
		cmocka_unit_test(held_expirations_come_once),
		cmocka_unit_test(held_copies_stay),
		cmocka_unit_test(steps_on_two_connections_are_one),
		cmocka_unit_test(credit_follows_the_answer),
		cmocka_unit_test(answered_before_a_list_broke_off),
		cmocka_unit_test(what_has_arrived_is_pending),
		cmocka_unit_test(the_last_reply_before_the_end),
		cmocka_unit_test(relative_the_first_time),
		cmocka_unit_test(consumer_receives_on),
	};

	return cmocka_run_group_tests_name("reconnect", tests, NULL, NULL);
}
