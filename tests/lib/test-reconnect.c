// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT's handling of requests, with a fake server whose
 * connections break at the worst moments.
 */
#include <errno.h>
#include <string.h>

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

#define POSTED	300
#define ANSWERED	10

static void answer_ten_and_go(int fd)
{
	struct expiry_record records[POSTED];

	greet(fd, 1000);
	get(fd, records, POSTED);
	put(fd, records, ANSWERED);
}

/* Also where all that the broken connection leaves in doubt does not fit. */
static void no_more_than_there_is_room_for(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { answer_ten_and_go };
	struct expiry_record records[POSTED];
	struct fake server;
	struct expiry *h;
	int i, nr, max = 1, taken = 0;

	(void)state;
	h = reconnect_open(&server, scripts, EXPIRY_OPEN_RECONNECT, WAIT_MS);
	fill_arm(records, POSTED);
	assert_int_equal(expiry_post(h, records, POSTED), POSTED);
	assert_int_equal(expiry_flush(h), 0);
	fake_wait(&server);
	/* The first leaves others that have arrived. */
	for (; taken < POSTED; taken += nr, max = 128) {
		nr = expiry_next(h, records, max);
		assert_in_range(nr, 1, max);
		for (i = 0; i < nr; i++) {
			assert_int_equal(records[i].cookie, taken + i);
			assert_int_equal(records[i].status,
					 taken + i < ANSWERED ? 0 : -ECONNRESET);
		}
	}
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

static void get_three_and_go(int fd)
{
	greet_and_get(fd, 3);
}

static bool answers_one;

/* Then nothing, until the client gives up. */
static void absolute_and_silent(int fd)
{
	struct expiry_record records[3];

	greet_again(fd);
	if (!get(fd, records, 3))
		return;
	script_expect(!records[0].flags && !records[2].flags &&
		      records[2].deadline_ns > HOUR,
		      "what is sent again is not absolute");
	if (answers_one)
		put(fd, records, 1);
	drain(fd);
}

/* Returns the result of a call with three requests. At most one gets an answer. */
static int submit_three(struct expiry_record *records)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { get_three_and_go,
						     absolute_and_silent };
	struct expiry_record sent[3];
	struct fake server;
	struct expiry *h;
	int i, ret, done;

	for (i = 0; i < 3; i++) {
		records[i] = reconnect_request(EXPIRY_OP_ARM, i);
		records[i].flags = EXPIRY_F_RELATIVE;
	}
	memcpy(sent, records, sizeof(sent));
	h = reconnect_open(&server, scripts, KEYED, 300);
	ret = expiry_submit(h, records, 3);
	done = ret > 0 ? ret : 0;
	assert_memory_equal(records + done, sent + done, (3 - done) * RECORD);
	reconnect_end(&server, h);
	return ret;
}

/* A program that tries again sends what it meant: from now on, not from 1970 on. */
static void what_is_not_answered_is_unchanged(void **state)
{
	struct expiry_record records[3];
	int i, ret;

	(void)state;
	answers_one = false;
	assert_int_equal(submit_three(records), -ETIMEDOUT);
	answers_one = true;
	/* The machine may stand still for longer than the limit. */
	for (i = 0; i < TRIES; i++) {
		ret = submit_three(records);
		if (ret != -ETIMEDOUT)
			break;
	}
	assert_int_equal(ret, 1);
	assert_int_equal(records[0].flags, 0);
}

/* More than is copied at once. */
#define MANY	1300

static void get_many_and_go(int fd)
{
	greet_and_get(fd, 1000);
}

static void all_are_answered_in_order(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { get_many_and_go, echo_again };
	static struct expiry_record records[MANY];
	struct fake server;
	struct expiry *h;
	uint32_t i;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	for (i = 0; i < MANY; i++) {
		records[i] = reconnect_request(EXPIRY_OP_ARM, i);
		records[i].flags = EXPIRY_F_RELATIVE;
	}
	assert_int_equal(expiry_submit(h, records, MANY), MANY);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(records[i].cookie, i);
		assert_int_equal(records[i].flags, 0);
	}
	reconnect_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unanswered_are_sent_again),
		cmocka_unit_test(what_has_arrived_is_pending),
		cmocka_unit_test(the_last_reply_before_the_end),
		cmocka_unit_test(no_more_than_there_is_room_for),
		cmocka_unit_test(relative_the_first_time),
		cmocka_unit_test(what_is_not_answered_is_unchanged),
		cmocka_unit_test(all_are_answered_in_order),
	};

	return cmocka_run_group_tests_name("reconnect", tests, NULL, NULL);
}
