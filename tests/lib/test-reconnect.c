// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT's handling of requests, with a fake server whose
 * connections break at the worst moments.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "support-reconnect.h"

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
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	for (i = 0; i < 4; i++)
		records[i] = reconnect_request(ops[i], i);
	memcpy(sent, records, sizeof(sent));
	assert_int_equal(expiry_submit(h, records, 4), 4);
	assert_memory_equal(records, sent, sizeof(sent));
	assert_int_equal(reconnect_count(h), 1);
	reconnect_end(&server, h);
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
	h = reconnect_open(&server, scripts, KEYED, 0);
	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, expiry_fd(h),
				   &event), 0);
	for (i = 0; i < 7; i++)
		records[i] = reconnect_request(EXPIRY_OP_ARM, i);
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
	assert_int_equal(reconnect_count(h), 1);
	close(epoll_fd);
	reconnect_end(&server, h);
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
	greet_and_get(fd, 2);
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
		records[i] = reconnect_request(i ? EXPIRY_OP_REFRESH : EXPIRY_OP_ARM, i);
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
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	relative(records);
	assert_int_equal(expiry_submit(h, records, 2), 2);
	reconnect_end(&server, h);

	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	relative(records);
	assert_int_equal(expiry_post(h, records, 2), 2);
	take(h, records, 2);
	reconnect_end(&server, h);
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
	h = reconnect_open(&server, scripts, KEYED, 0);
	fake_halt(&server);
	assert_int_equal(expiry_next(h, records, 2), 0);
	relative(records);
	assert_int_equal(expiry_post(h, records, 2), 2);
	assert_int_equal(expiry_flush(h), 1);
	latest_ns = in_an_hour();
	poll(NULL, 0, 5);
	fake_resume(&server, later);
	take(h, records, 2);
	reconnect_end(&server, h);
}

static void take_five(int fd)
{
	greet_and_get(fd, 5);
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
			records[k] = reconnect_request(EXPIRY_OP_QUERY, k);
		records[3] = cases[i / 2].record;
		h = reconnect_open(&server, scripts, cases[i / 2].flags, WAIT_MS);
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
		reconnect_end(&server, h);
	}
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
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 5), row;
	struct fake server;
	uint64_t cursor = 0;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_post(h, &record, 1), 1);
	assert_int_equal(expiry_scan(h, &cursor, &row, 1), -EINVAL);
	take(h, &record, 1);
	assert_int_equal(record.cookie, 5);
	assert_int_equal(expiry_next(h, &record, 1), 0);
	reconnect_end(&server, h);
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
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 5);
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	for (i = 0; i < 3; i++)
		assert_int_equal(expiry_post(h, &record, 1), 1);
	assert_int_equal(expiry_pending(h), 0);
	for (i = 0; i < 3; i++) {
		take(h, &record, 1);
		assert_int_equal(expiry_pending(h), 2 - i);
	}
	reconnect_end(&server, h);
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
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	for (i = 0; i < 2; i++) {
		record = reconnect_request(EXPIRY_OP_QUERY, i);
		assert_int_equal(expiry_post(h, &record, 1), 1);
	}
	assert_int_equal(expiry_flush(h), 0);
	fake_wait(&server);
	assert_int_equal(expiry_next(h, &record, 1), 1);
	assert_int_equal(record.cookie, 0);
	assert_int_equal(expiry_next(h, records, 1000), 1);
	assert_int_equal(records[0].cookie, 1);
	reconnect_end(&server, h);
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
	struct expiry_record record = reconnect_request(EXPIRY_OP_ARM, 77);
	struct fake server;
	struct expiry *h;

	(void)state;
	record.flags = EXPIRY_F_RELATIVE;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(record.flags, 0);
	reconnect_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unanswered_are_sent_again),
		cmocka_unit_test(posted_behind_one_descriptor),
		cmocka_unit_test(pause_does_not_move_deadlines),
		cmocka_unit_test(pause_before_the_call),
		cmocka_unit_test(in_doubt),
		cmocka_unit_test(answered_before_a_list_broke_off),
		cmocka_unit_test(what_has_arrived_is_pending),
		cmocka_unit_test(the_last_reply_before_the_end),
		cmocka_unit_test(relative_the_first_time),
	};

	return cmocka_run_group_tests_name("reconnect", tests, NULL, NULL);
}
