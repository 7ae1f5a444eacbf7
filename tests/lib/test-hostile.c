// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A server that breaks the protocol costs its client the handle, never the program:
 * no assertion of the library depends on what a server sends.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support-fake.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#define BODY		64	/* records of the longest body */
#define CALLS		30	/* by a client */
#define SEEDS		120

/* Of the client that is running; the server has a number of its own. */
static unsigned int client_seed, server_seed;

/* Expirations that the connection may get. */
static uint32_t credit;

static unsigned int draw(unsigned int *seed, unsigned int below)
{
	return rand_r(seed) % below;
}

/* Sends a record or a piece of one, of any kind. */
static void put_anything(int fd)
{
	static const uint8_t ops[] = {
		EXPIRY_OP_ARM, EXPIRY_OP_QUERY, EXPIRY_OP_CANCEL, EXPIRY_OP_EXPIRED,
		EXPIRY_OP_EXPIRED, EXPIRY_OP_CLOCK_SET, EXPIRY_OP_MISSED,
		EXPIRY_OP_HELLO, EXPIRY_OP_SCAN, EXPIRY_OP_STAT, EXPIRY_OP_QUEUES,
		EXPIRY_OP_DROP, EXPIRY_OP_CREDIT, 0, UINT8_MAX,
	};
	static const int32_t statuses[] = {
		0, 0, 0, 1, -ENOENT, -ERESTART, INT_MAX, INT_MIN,
	};
	struct expiry_record record = {
		.op = ops[draw(&server_seed, ARRAY_SIZE(ops))],
		.status = statuses[draw(&server_seed, ARRAY_SIZE(statuses))],
		.period_ms = draw(&server_seed, 4) ? draw(&server_seed, BODY) :
						     UINT32_MAX,
		.id = draw(&server_seed, 3),
		.cookie = draw(&server_seed, 2) ? draw(&server_seed, 4) :
						  UINT64_MAX,
	};

	put_bytes(fd, &record, draw(&server_seed, 20) ? sizeof(record) :
				draw(&server_seed, sizeof(record)));
}

/* Answers a request as a server does, more or less. */
static void answer_it(int fd, struct expiry_record *record)
{
	struct expiry_record body[BODY] = { 0 };

	switch (record->op) {
	case EXPIRY_OP_CREDIT:
		credit += record->period_ms;
		return;
	case EXPIRY_OP_HELLO:
		credit = record->flags & EXPIRY_HELLO_OBSERVE ? UINT32_MAX : 0;
		*record = (struct expiry_record){
			.op = EXPIRY_OP_HELLO,
			.cookie = draw(&server_seed, 20) * 10,
		};
		break;
	case EXPIRY_OP_STAT:
		record->period_ms = draw(&server_seed, BODY);
		put(fd, record, 1);
		memset(body, 0x7f, sizeof(body));
		put(fd, body, record->period_ms);
		return;
	case EXPIRY_OP_SCAN:
	case EXPIRY_OP_QUEUES:
		record->id = draw(&server_seed, 2);
		break;
	}
	put(fd, record, 1);
}

static void misbehave(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	const unsigned int rarely = 10 + draw(&server_seed, 1000);
	struct expiry_record record;

	while (draw(&server_seed, 2 * rarely)) {
		if (poll(&pfd, 1, 1) > 0) {
			if (!get(fd, &record, 1))
				return;
			if (draw(&server_seed, rarely))
				answer_it(fd, &record);
		}
		if (credit && !draw(&server_seed, 2)) {
			put_event(fd, EXPIRY_OP_EXPIRED, 1);
			credit--;
		}
		if (!draw(&server_seed, rarely))
			put_anything(fd);
	}
}

static void call_anything(struct expiry *h)
{
	struct expiry_record records[100] = { 0 };
	struct expiry_server_stat server;
	struct expiry_queue queues[4];
	struct expiry_stat stat;
	uint64_t cursor = 0;
	uint32_t i, nr = 1 + draw(&client_seed, ARRAY_SIZE(records));

	for (i = 0; i < nr; i++) {
		records[i].op = draw(&client_seed, 2) ? EXPIRY_OP_ARM :
							EXPIRY_OP_QUERY;
		records[i].id = i + 1;
	}
	switch (draw(&client_seed, 10)) {
	case 0:
	case 1:
		expiry_submit(h, records, nr);
		break;
	case 2:
	case 3:
	case 4:
		expiry_post(h, records, nr);
		break;
	case 5:
		expiry_credit(h, draw(&client_seed, 8));
		break;
	case 6:
		expiry_stat(h, &stat, &server, sizeof(server));
		break;
	case 7:
		expiry_scan(h, &cursor, records, nr);
		break;
	case 8:
		expiry_queues(h, &cursor, queues, ARRAY_SIZE(queues));
		break;
	default:
		expiry_wait(h, 1);
		expiry_next(h, records, nr);
	}
}

static void nothing_that_a_server_sends_ends_the_program(void **state)
{
	static const uint32_t kinds[] = {
		0, EXPIRY_OPEN_CONSUME, EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL,
		EXPIRY_OPEN_OBSERVE, EXPIRY_OPEN_RECONNECT | EXPIRY_OPEN_KEYED,
		EXPIRY_OPEN_RECONNECT | EXPIRY_OPEN_OBSERVE,
		EXPIRY_OPEN_RECONNECT | EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK,
	};
	struct expiry_options options = {
		.size = sizeof(options),
		.queue = "q",
		.clock_id = CLOCK_MONOTONIC,
		.timeout_ms = 5,
	};
	unsigned int seed, opened = 0, broken = 0;
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++) {
		client_seed = seed;
		server_seed = seed;
		fake_start(&server, misbehave);
		server.repeat = true;
		options.flags = kinds[seed % ARRAY_SIZE(kinds)];
		options.credit = 1 + draw(&client_seed, 10);
		options.window = draw(&client_seed, 40);
		if (expiry_open(&h, server.address, &options)) {
			fake_stop(&server);
			continue;
		}
		opened++;
		for (i = 0; i < CALLS; i++)
			call_anything(h);
		broken += expiry_flush(h) < 0;
		expiry_close(h);
		fake_stop(&server);
	}
	print_message("# of %d handles %u were opened, %u broke\n", SEEDS, opened,
		      broken);
	assert_in_range(opened, SEEDS / 2, SEEDS);
	assert_in_range(broken, SEEDS / 10, opened);
}

/* ------------------------------------------------------------------------
 * Replies that answer no request
 */

/* The change that a lying server makes to a reply. */
static void (*lie)(struct expiry_record *reply);

static void other_op(struct expiry_record *reply)
{
	reply->op = EXPIRY_OP_REFRESH;
}

static void other_timer(struct expiry_record *reply)
{
	reply->id++;
}

static void status_above_zero(struct expiry_record *reply)
{
	reply->status = 1;
}

static void daemons_own_op(struct expiry_record *reply)
{
	reply->op = EXPIRY_OP_SCAN;
}

static void expiration_with_status(struct expiry_record *reply)
{
	reply->op = EXPIRY_OP_EXPIRED;
	reply->status = -ENOENT;
}

/* Answers two requests, and lies about the third. */
static void lie_at_last(int fd)
{
	struct expiry_record given, records[3];

	greet(fd, 100);
	if (!get(fd, &given, 1) || !get(fd, records, ARRAY_SIZE(records)))
		return;
	assert_int_equal(given.op, EXPIRY_OP_CREDIT);
	lie(&records[2]);
	put(fd, records, ARRAY_SIZE(records));
	drain(fd);
}

static void fill_query(struct expiry_record *records, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_QUERY,
			.id = i + 1,
		};
}

/* A call hands out the replies before the lie. The record behind them stays a request. */
static void a_lie_ends_the_call_at_its_record(void **state)
{
	static void (*const lies[])(struct expiry_record *reply) = {
		other_op, other_timer, status_above_zero, daemons_own_op,
		expiration_with_status,
	};
	struct expiry_record records[3];
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		lie = lies[i];
		h = fake_open(&server, lie_at_last, EXPIRY_OPEN_CONSUME, 4);
		fill_query(records, ARRAY_SIZE(records));
		assert_int_equal(expiry_submit(h, records, ARRAY_SIZE(records)), 2);
		assert_int_equal(records[2].op, EXPIRY_OP_QUERY);
		assert_int_equal(records[2].status, 0);
		assert_int_equal(records[2].id, 3);
		assert_int_equal(expiry_flush(h), -EPROTO);
		fake_end(&server, h);
	}
}

/* The handle keeps no copy of a posted request: it sees what answers none at all. */
static void a_posted_request_gets_no_impossible_reply(void **state)
{
	static void (*const lies[])(struct expiry_record *reply) = {
		status_above_zero, daemons_own_op, expiration_with_status,
	};
	struct expiry_record records[3];
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		lie = lies[i];
		h = fake_open(&server, lie_at_last, EXPIRY_OPEN_CONSUME, 4);
		fill_query(records, ARRAY_SIZE(records));
		assert_int_equal(expiry_post(h, records, ARRAY_SIZE(records)), 3);
		assert_int_equal(next_error(h), -EPROTO);
		fake_end(&server, h);

		/* Likewise while another call waits. */
		h = fake_open(&server, lie_at_last, EXPIRY_OPEN_CONSUME, 4);
		assert_int_equal(expiry_post(h, records, ARRAY_SIZE(records)), 3);
		assert_int_equal(expiry_query(h, 9, NULL), -EPROTO);
		fake_end(&server, h);
	}
}

static void answer_twice(int fd)
{
	struct expiry_record replies[2];

	greet(fd, 100);
	while (get(fd, replies, 1)) {
		replies[0].id = 11;
		replies[1] = replies[0];
		put(fd, replies, ARRAY_SIZE(replies));
	}
}

/* Of a plain queue's new timer the id does not tell it. */
static void a_reply_before_its_request_is_none(void **state)
{
	struct fake server;
	struct expiry *h;
	uint64_t id = 0;

	(void)state;
	h = fake_open(&server, answer_twice, 0, 0);
	assert_int_equal(expiry_arm(h, &id, 5, 0, 0, 0), 0);
	assert_true(id == 11);
	assert_int_equal(expiry_arm(h, NULL, 5, 0, 0, 0), -EPROTO);
	assert_int_equal(expiry_arm(h, NULL, 5, 0, 0, 0), -EPROTO);
	fake_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lie_ends_the_call_at_its_record),
		cmocka_unit_test(a_posted_request_gets_no_impossible_reply),
		cmocka_unit_test(a_reply_before_its_request_is_none),
		cmocka_unit_test(nothing_that_a_server_sends_ends_the_program),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
