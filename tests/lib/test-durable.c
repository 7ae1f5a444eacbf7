// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_DURABLE: HELLO's flags and its reply, and a reconnecting handle that
 * tells its queue from others by the queue's number.
 */
#include <errno.h>
#include <string.h>

#include "support-reconnect.h"

#define DURABLE	(EXPIRY_OPEN_DURABLE | EXPIRY_OPEN_ACK | EXPIRY_OPEN_KEYED)
#define WINDOW	1000

static uint8_t hello_flags;	/* of the last HELLO */
static uint8_t reply_flags;	/* besides those */
static uint64_t reply_cookie;

static void greet_durable(int fd)
{
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return;
	hello_flags = hello.flags;
	hello = (struct expiry_record){
		.op = EXPIRY_OP_HELLO,
		.flags = hello.flags | reply_flags,
		.id = 5,
		.cookie = reply_cookie,
	};
	put(fd, &hello, 1);
}

static void greet_and_wait(int fd)
{
	greet_durable(fd);
	drain(fd);
}

static void deny(int fd)
{
	greet(fd, WINDOW);
	drain(fd);
}

static int open_durable(const struct fake *server, uint32_t flags,
			const char *name, struct expiry **h)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.queue = name,
	};

	return expiry_open(h, server ? server->address : "unix:/nonexistent/s",
			   &options);
}

static void options(void **state)
{
	static const struct {
		uint32_t flags;
		const char *name;
		int error;
	} cases[] = {
		{ DURABLE, "q", -ENOENT },
		{ DURABLE | EXPIRY_OPEN_RECONNECT, "q", -ENOENT },
		{ DURABLE | EXPIRY_OPEN_OBSERVE, "q", -ENOENT },
		{ DURABLE, "", -EINVAL },
		{ DURABLE, NULL, -EINVAL },
		{ DURABLE & ~EXPIRY_OPEN_ACK, "q", -EINVAL },
		{ DURABLE & ~EXPIRY_OPEN_KEYED, "q", -EINVAL },
		{ EXPIRY_OPEN_DURABLE, "q", -EINVAL },
		{ EXPIRY_OPEN_DURABLE | EXPIRY_OPEN_EXISTING, NULL, -EINVAL },
	};
	struct expiry *h = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(open_durable(NULL, cases[i].flags,
					      cases[i].name, &h),
				 cases[i].error);
	assert_null(h);
}

/* The upper half of HELLO's cookie is no part of the window. */
static void reply_says_the_interval(void **state)
{
	static const struct {
		uint32_t flags;
		uint8_t reply;
		uint64_t commit_ms;
		uint32_t durable;
		uint32_t told_ms;
	} cases[] = {
		{ DURABLE, 0, 0, 1, 0 },
		{ DURABLE, 0, 250, 1, 250 },
		{ DURABLE, 0, UINT32_MAX, 1, UINT32_MAX },
		/* Without asking for it. */
		{ DURABLE & ~EXPIRY_OPEN_DURABLE, EXPIRY_HELLO_DURABLE, 100, 1,
		  100 },
		{ DURABLE & ~EXPIRY_OPEN_DURABLE, 0, 0, 0, 0 },
	};
	struct expiry_info info;
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		reply_flags = cases[i].reply;
		reply_cookie = WINDOW | cases[i].commit_ms << 32;
		fake_start(&server, greet_and_wait);
		assert_int_equal(open_durable(&server, cases[i].flags, "q", &h),
				 0);
		assert_int_equal(hello_flags, cases[i].flags);
		expiry_info(h, &info, sizeof(info));
		assert_int_equal(info.window, WINDOW);
		assert_int_equal(info.durable, cases[i].durable);
		assert_int_equal(info.commit_ms, cases[i].told_ms);
		/* A program built with an earlier header. */
		expiry_info(h, &info, offsetof(struct expiry_info, durable));
		assert_int_equal(info.window, WINDOW);
		fake_end(&server, h);
	}
}

/* A server that does not confirm it, or that has no window, is none. */
static void reply_does_not_confirm(void **state)
{
	struct expiry *h = NULL;
	struct fake server;

	(void)state;
	fake_start(&server, deny);
	assert_int_equal(open_durable(&server, DURABLE, "q", &h), -EPROTO);
	fake_stop(&server);
	reply_flags = 0;
	reply_cookie = 1ULL << 32;
	fake_start(&server, greet_and_wait);
	assert_int_equal(open_durable(&server, DURABLE, "q", &h), -EPROTO);
	fake_stop(&server);
	assert_null(h);
}

/* ------------------------------------------------------------- reconnecting */

static uint64_t numbers[2];	/* of the queue, on both connections */

/* Answers STAT as a daemon that has just begun, with a queue that has counted no
 * timers. Sends @most bytes of it. Returns whether that is all.
 */
static bool put_stat(int fd, uint64_t number, size_t most)
{
	struct stat_reply reply = {
		.head.op = EXPIRY_OP_STAT,
		.head.period_ms = (sizeof(reply) - RECORD) / RECORD,
		.server.engine = EXPIRY_ENGINE_EMBEDDED,
		.server.durable = number,
	};
	struct expiry_record stat;

	if (!get(fd, &stat, 1))
		return false;
	script_expect(stat.op == EXPIRY_OP_STAT, "STAT does not follow HELLO");
	if (most > sizeof(reply))
		most = sizeof(reply);
	put_bytes(fd, &reply, most);
	return most == sizeof(reply);
}

/* The first connection: STAT only if the queue is durable. One request is answered.
 */
static void first_life(int fd)
{
	struct expiry_record request;

	reply_flags = numbers[0] ? EXPIRY_HELLO_DURABLE : 0;
	greet_durable(fd);
	if (numbers[0])
		put_stat(fd, numbers[0], SIZE_MAX);
	if (get(fd, &request, 1))
		put(fd, &request, 1);
}

static void second_life(int fd)
{
	struct expiry_record request;

	reply_flags = numbers[1] ? EXPIRY_HELLO_DURABLE : 0;
	reply_cookie = WINDOW | 70ULL << 32;
	greet_durable(fd);
	put_stat(fd, numbers[1], SIZE_MAX);
	while (get(fd, &request, 1))
		if (request.op != EXPIRY_OP_CREDIT)
			put(fd, &request, 1);
}

/* The same number is the same queue, however young the daemon is and whatever it has
 * counted. Each other pair is a loss.
 */
static void number_tells_the_queue(void **state)
{
	static const struct {
		uint64_t numbers[2];
		int result;
	} cases[] = {
		{ { 7, 7 }, 1 },
		{ { 1ULL << 60, 1ULL << 60 }, 1 },
		{ { 7, 8 }, -ESTALE },
		{ { 7, 7 + (1ULL << 32) }, -ESTALE },
		{ { 7, 0 }, -ESTALE },
		{ { 0, 7 }, -ESTALE },
		{ { 0, 0 }, -ESTALE },
	};
	fake_script *const scripts[FAKE_SCRIPTS] = { first_life, second_life };
	struct expiry_record record;
	struct expiry_info info;
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		memcpy(numbers, cases[i].numbers, sizeof(numbers));
		reply_cookie = WINDOW;
		h = reconnect_open(&server, scripts,
				   DURABLE & ~EXPIRY_OPEN_DURABLE, WAIT_MS);
		record = reconnect_request(EXPIRY_OP_ARM, 1);
		assert_int_equal(expiry_submit(h, &record, 1), 1);
		assert_int_equal(expiry_submit(h, &record, 1), cases[i].result);
		expiry_info(h, &info, sizeof(info));
		assert_int_equal(info.durable, !!numbers[0]);
		if (cases[i].result > 0)
			assert_int_equal(info.commit_ms, 70);
		reconnect_end(&server, h);
	}
}

static size_t cut_after;	/* bytes of the first answer to STAT */

static void cut_in_stat(int fd)
{
	reply_flags = EXPIRY_HELLO_DURABLE;
	greet_durable(fd);
	put_stat(fd, 7, cut_after);
}

/* The connection ends within the answer that has the number: nothing was sent before,
 * and the next connection's is the first.
 */
static void number_comes_late(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { cut_in_stat, second_life };
	struct expiry_record record;
	struct fake server;
	struct expiry *h;

	(void)state;
	numbers[1] = 9;
	for (cut_after = 0; cut_after < sizeof(struct stat_reply);
	     cut_after += cut_after < 2 * RECORD ? 1 : 61) {
		reply_cookie = WINDOW;
		h = reconnect_open(&server, scripts, DURABLE, WAIT_MS);
		record = reconnect_request(EXPIRY_OP_ARM, 1);
		assert_int_equal(expiry_submit(h, &record, 1), 1);
		assert_int_equal(reconnect_count(h), 1);
		reconnect_end(&server, h);
	}
	/* Then it is not durable. */
	numbers[1] = 0;
	cut_after = RECORD;
	fake_start(&server, cut_in_stat);
	server.scripts[1] = second_life;
	assert_int_equal(open_durable(&server, DURABLE & ~EXPIRY_OPEN_DURABLE, "q", &h), 0);
	fake_end(&server, h);
	fake_start(&server, cut_in_stat);
	server.scripts[1] = second_life;
	assert_int_equal(open_durable(&server, (DURABLE & ~EXPIRY_OPEN_DURABLE) |
				      EXPIRY_OPEN_RECONNECT, "q", &h), -ESTALE);
	fake_stop(&server);
}

static void no_journal(int fd)
{
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return;
	script_expect(hello.flags & EXPIRY_HELLO_DURABLE, "HELLO is not as it was");
	hello.status = -EOPNOTSUPP;
	put(fd, &hello, 1);
}

/* A daemon without its journal may get it back. */
static void journal_comes_back(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		first_life, no_journal, second_life
	};
	struct expiry_record record = reconnect_request(EXPIRY_OP_ARM, 1);
	struct fake server;
	struct expiry *h;

	(void)state;
	numbers[0] = numbers[1] = 7;
	reply_cookie = WINDOW;
	h = reconnect_open(&server, scripts, DURABLE, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(reconnect_count(h), 1);
	reconnect_end(&server, h);
}

static void put_late(int fd)
{
	struct expiry_record record = {
		.op = EXPIRY_OP_EXPIRED,
		.flags = EXPIRY_F_LATE | EXPIRY_F_REDELIVERED,
	};
	struct expiry_record credit;

	reply_flags = 0;
	greet_durable(fd);
	get(fd, &credit, 1);
	put(fd, &record, 1);
	record.flags = EXPIRY_F_LATE;
	put(fd, &record, 1);
	drain(fd);
}

static void late_comes_as_it_is(void **state)
{
	struct expiry_record due[2];
	struct fake server;
	struct expiry *h;
	int nr = 0;

	(void)state;
	reply_cookie = WINDOW;
	fake_start(&server, put_late);
	assert_int_equal(open_durable(&server, DURABLE | EXPIRY_OPEN_CONSUME,
				      "q", &h), 0);
	while (nr < 2) {
		int ret = expiry_receive(h, due + nr, 2 - nr, WAIT_MS);

		assert_true(ret > 0);
		nr += ret;
	}
	assert_int_equal(due[0].flags, EXPIRY_F_LATE | EXPIRY_F_REDELIVERED);
	assert_int_equal(due[1].flags, EXPIRY_F_LATE);
	fake_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options),
		cmocka_unit_test(reply_says_the_interval),
		cmocka_unit_test(reply_does_not_confirm),
		cmocka_unit_test(number_tells_the_queue),
		cmocka_unit_test(number_comes_late),
		cmocka_unit_test(journal_comes_back),
		cmocka_unit_test(late_comes_as_it_is),
	};

	return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
