// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The library against a server made for the test: records in pieces, full
 * sockets, connections that break.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support-fake.h"

/* ------------------------------------------------------------------------
 * Opening
 */

/* Returns the result of opening on such a server. */
static int open_fails(void (*script)(int fd), uint32_t timeout_ms)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.timeout_ms = timeout_ms,
	};
	struct fake server;
	struct expiry *h;
	int ret;

	fake_start(&server, script);
	ret = expiry_open(&h, server.address, &options);
	if (!ret)
		expiry_close(h);
	fake_stop(&server);
	return ret;
}

static void end_at_once(int fd)
{
	(void)fd;
}

static void no_window(int fd)
{
	greet(fd, 0);
	drain(fd);
}

static void refuse_busy(int fd)
{
	struct expiry_record hello;

	get(fd, &hello, 1);
	hello.status = -EBUSY;
	put(fd, &hello, 1);
}

/* The errno for a version of the protocol that it does not speak. */
static void refuse_version(int fd)
{
	struct expiry_record hello;

	get(fd, &hello, 1);
	hello.status = -EPROTONOSUPPORT;
	put(fd, &hello, 1);
}

static void answer_positive(int fd)
{
	struct expiry_record hello;

	get(fd, &hello, 1);
	hello.status = 1;
	put(fd, &hello, 1);
}

static void answer_http(int fd)
{
	put_bytes(fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n", 45);
	drain(fd);
}

static void expire_before_hello(int fd)
{
	put_event(fd, EXPIRY_OP_CLOCK_SET, 0);
	drain(fd);
}

static void opening(void **state)
{
	(void)state;
	assert_int_equal(open_fails(end_at_once, 0), -ECONNRESET);
	assert_int_equal(open_fails(no_window, 0), -EPROTO);
	assert_int_equal(open_fails(refuse_busy, 0), -EBUSY);
	assert_int_equal(open_fails(refuse_version, 0), -EOPNOTSUPP);
	assert_int_equal(open_fails(answer_positive, 0), -EPROTO);
	assert_int_equal(open_fails(answer_http, 0), -EPROTO);
	assert_int_equal(open_fails(expire_before_hello, 0), -EPROTO);
	assert_int_equal(open_fails(drain, 20), -ETIMEDOUT);
}

static void say_what_came(int fd)
{
	struct expiry_record hello, row;

	get(fd, &hello, 1);
	row = (struct expiry_record){
		.op = EXPIRY_OP_HELLO,
		.cookie = 10,
	};
	put(fd, &row, 1);
	get(fd, &row, 1);
	memcpy(&row.id, (char *)&hello + 8, 24);
	row.op = EXPIRY_OP_QUERY;
	row.flags = hello.flags;
	row.period_ms = hello.period_ms;
	row.status = -hello.status;
	put(fd, &row, 1);
	drain(fd);
}

static void hello_as_specified(void **state)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_KEYED | EXPIRY_OPEN_ACK,
		.queue = "a.name-of_24.bytes......",
		.clock_id = 7,
	};
	struct expiry_record row = { .op = EXPIRY_OP_QUERY };
	struct expiry_info info;
	struct fake server;
	struct expiry *h;

	(void)state;
	fake_start(&server, say_what_came);
	assert_int_equal(expiry_open(&h, server.address, &options), 0);
	/* A reply about another timer would break the handle. */
	memcpy(&row.id, options.queue, sizeof(row.id));
	assert_int_equal(expiry_submit(h, &row, 1), 1);
	assert_int_equal(row.flags, EXPIRY_HELLO_KEYED | EXPIRY_HELLO_ACK);
	assert_int_equal(row.status, -EXPIRY_WIRE_VERSION);
	assert_int_equal(row.period_ms, 7);
	assert_memory_equal(&row.id, options.queue, 24);
	expiry_info(h, &info, sizeof(info));
	assert_int_equal(info.window, 10);
	assert_int_equal(info.clock_id, 7);
	assert_int_equal(info.mode, EXPIRY_MODE_ALL);
	fake_end(&server, h);
}

/* ------------------------------------------------------------------------
 * Requests
 */

static void answer_in_pieces(int fd)
{
	struct expiry_record records[3];
	size_t i;

	greet(fd, 100);
	get(fd, records, 3);
	for (i = 0; i < sizeof(records); i++)
		put_bytes(fd, (char *)records + i, 1);
	drain(fd);
}

static void replies_in_pieces(void **state)
{
	struct expiry_record records[3], sent[3];
	struct fake server;
	struct expiry *h = fake_open(&server, answer_in_pieces, 0, 0);

	(void)state;
	fill_arm(records, 3);
	memcpy(sent, records, sizeof(sent));
	assert_int_equal(expiry_submit(h, records, 3), 3);
	assert_memory_equal(records, sent, sizeof(sent));
	fake_end(&server, h);
}

static void answer_two_and_a_half(int fd)
{
	struct expiry_record records[4];
	int i;

	greet(fd, 100);
	get(fd, records, 4);
	for (i = 0; i < 4; i++)
		records[i].id = 100 + i;
	put_bytes(fd, records, 2 * RECORD + RECORD / 2);
}

/* Requests without an answer stay as they were, so that they can be repeated;
 * the handle says why from then on.
 */
static void connection_breaks(void **state)
{
	struct expiry_record records[4], sent[4];
	struct expiry_stat stat;
	struct fake server;
	struct expiry *h = fake_open(&server, answer_two_and_a_half, 0, 0);
	uint64_t cursor = 0;

	(void)state;
	fill_arm(records, 4);
	memcpy(sent, records, sizeof(sent));
	assert_int_equal(expiry_submit(h, records, 4), 2);
	assert_int_equal(records[1].id, 101);
	assert_memory_equal(records + 2, sent + 2, 2 * RECORD);
	assert_int_equal(expiry_submit(h, records, 4), -ECONNRESET);
	assert_int_equal(expiry_post(h, records, 4), -ECONNRESET);
	assert_int_equal(expiry_flush(h), -ECONNRESET);
	assert_int_equal(expiry_next(h, records, 4), -ECONNRESET);
	assert_int_equal(expiry_wait(h, -1), 1);
	assert_int_equal(expiry_cancel(h, 1, NULL), -ECONNRESET);
	assert_int_equal(expiry_scan(h, &cursor, records, 4), -ECONNRESET);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), -ECONNRESET);
	assert_int_equal(expiry_drop(h), -ECONNRESET);
	fake_end(&server, h);
}

#define MANY	100000

static void answer_in_small_turns(int fd)
{
	struct expiry_record records[64];

	greet(fd, EXPIRY_WINDOW_MAX);
	/* A blocking server: it reads on only when its reply is gone. */
	while (get(fd, records, 40))
		put(fd, records, 40);
}

/* Far more than both sockets hold: a library that only wrote would deadlock. */
static void full_sockets(void **state)
{
	struct expiry_record *records = malloc(MANY * RECORD);
	struct fake server;
	struct expiry *h = fake_open(&server, answer_in_small_turns, 0, 0);
	uint32_t i;

	(void)state;
	assert_non_null(records);
	fill_arm(records, MANY);
	assert_int_equal(expiry_submit(h, records, MANY), MANY);
	for (i = 0; i < MANY; i++)
		assert_int_equal(records[i].cookie, i);
	free(records);
	fake_end(&server, h);
}

/* The same without a call that waits: the program polls. */
static void full_sockets_posted(void **state)
{
	struct expiry_record *records = malloc(MANY * RECORD);
	struct expiry_record replies[100];
	struct fake server;
	struct expiry *h = fake_open(&server, answer_in_small_turns, 0, 0);
	uint32_t posted = 0, taken = 0;
	struct pollfd pfd;
	int i, nr;

	(void)state;
	assert_non_null(records);
	fill_arm(records, MANY);
	while (taken < MANY) {
		nr = expiry_post(h, records + posted, MANY - posted);
		assert_true(nr >= 0);
		posted += nr;
		/* Odd sizes, so that all ways through the buffers are taken. */
		nr = expiry_next(h, replies, 1 + taken % 100);
		assert_true(nr >= 0);
		for (i = 0; i < nr; i++)
			assert_int_equal(replies[i].cookie, taken++);
		if (nr || expiry_pending(h))
			continue;
		pfd.fd = expiry_fd(h);
		pfd.events = expiry_events(h);
		assert_int_equal(poll(&pfd, 1, 60000), 1);
	}
	free(records);
	fake_end(&server, h);
}

#define LATE	30000

static void answer_late(int fd)
{
	struct expiry_record *records = malloc(LATE * RECORD);

	greet(fd, EXPIRY_WINDOW_MAX);
	/* Nothing is said before all of it is there. */
	while (get(fd, records, LATE))
		put(fd, records, LATE);
	free(records);
}

/* A library that only read once the socket is full would deadlock; the buffer's
 * odd size cuts records in two.
 */
static void full_socket_and_late_replies(void **state)
{
	struct expiry_record *records = malloc(LATE * RECORD);
	struct fake server;
	struct expiry *h = fake_open(&server, answer_late, 0, 0);
	const int odd = 2500;
	uint32_t i, posted = 0;
	int nr;

	(void)state;
	assert_non_null(records);
	assert_int_equal(setsockopt(expiry_fd(h), SOL_SOCKET, SO_SNDBUF, &odd,
				    sizeof(odd)), 0);
	fill_arm(records, LATE);
	assert_int_equal(expiry_submit(h, records, LATE), LATE);
	for (i = 0; i < LATE; i++)
		assert_int_equal(records[i].cookie, i);

	/* The same posted: waiting ends when there is room, though nothing comes
	 * to be taken.
	 */
	while (posted < LATE) {
		nr = expiry_post(h, records + posted, LATE - posted);
		assert_true(nr >= 0);
		posted += nr;
		if (!nr)
			assert_int_equal(expiry_wait(h, 60000), 1);
	}
	memset(records, 0, LATE * RECORD);
	take(h, records, LATE);
	for (i = 0; i < LATE; i++)
		assert_int_equal(records[i].cookie, i);
	free(records);
	fake_end(&server, h);
}

static void cut_in_a_record(int fd)
{
	struct expiry_record records[200], more;

	greet(fd, 1000);
	get(fd, records, 200);
	put_bytes(fd, records, 100 * RECORD + 10);
	get(fd, &more, 1);
	put_bytes(fd, (char *)records + 100 * RECORD + 10,
		  100 * RECORD - 10);
	put(fd, &more, 1);
	drain(fd);
}

/* Received straight into the program's array, with half a record at its end. */
static void large_takes(void **state)
{
	struct expiry_record records[201], got[201], rest[101];
	struct fake server;
	struct expiry *h = fake_open(&server, cut_in_a_record, 0, 0);
	uint32_t done = 0;
	int nr;

	(void)state;
	fill_arm(records, 201);
	assert_int_equal(expiry_post(h, records, 200), 200);
	while (done < 100) {
		nr = expiry_next(h, got + done, 201 - done);
		assert_true(nr >= 0);
		done += nr;
		if (!nr)
			assert_int_equal(expiry_wait(h, 60000), 1);
	}
	assert_int_equal(done, 100);
	assert_int_equal(expiry_post(h, records + 200, 1), 1);
	/* to another place, so that nothing is there by chance */
	memset(rest, 0xff, sizeof(rest));
	take(h, rest, 101);
	assert_memory_equal(got, records, 100 * RECORD);
	assert_memory_equal(rest, records + 100, sizeof(rest));
	fake_end(&server, h);
}

/* The ring of kept records wraps around. */
static void many_small_turns(void **state)
{
	struct expiry_record posted[3], asked, got[3];
	struct fake server;
	struct expiry *h;
	uint64_t turn;
	int i;

	(void)state;
	h = fake_open(&server, echo, 0, 0);
	for (turn = 0; turn < 100; turn++) {
		fill_arm(posted, 3);
		fill_arm(&asked, 1);
		for (i = 0; i < 3; i++)
			posted[i].cookie = 3 * turn + i;
		assert_int_equal(expiry_post(h, posted, 3), 3);
		assert_int_equal(expiry_submit(h, &asked, 1), 1);
		assert_int_equal(expiry_pending(h), 3);
		assert_int_equal(expiry_next(h, got, 3), 3);
		for (i = 0; i < 3; i++)
			assert_int_equal(got[i].cookie, 3 * turn + i);
	}
	fake_end(&server, h);
}

static void refused_ops(void **state)
{
	static const uint8_t ops[] = {
		EXPIRY_OP_EXPIRED, EXPIRY_OP_CLOCK_SET, EXPIRY_OP_HELLO,
		EXPIRY_OP_CREDIT, EXPIRY_OP_SCAN, EXPIRY_OP_STAT,
		EXPIRY_OP_DROP, EXPIRY_OP_QUEUES, 70, 255,
	};
	struct expiry_record records[2];
	struct fake server;
	struct expiry *h = fake_open(&server, answer_in_small_turns, 0, 0);
	uint64_t cursor = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ops); i++) {
		fill_arm(records, 2);
		records[1].op = ops[i];
		assert_int_equal(expiry_submit(h, records, 2), -EINVAL);
		assert_int_equal(expiry_post(h, records, 2), -EINVAL);
	}
	assert_int_equal(expiry_submit(h, records, UINT32_MAX), -EINVAL);
	assert_int_equal(expiry_submit(h, NULL, 0), 0);
	assert_int_equal(expiry_post(h, NULL, 0), 0);
	assert_int_equal(expiry_next(h, records, 0), -EINVAL);
	assert_int_equal(expiry_scan(h, &cursor, records, 0), -EINVAL);
	assert_int_equal(expiry_receive(h, records, 1, 0), -EINVAL);
	assert_int_equal(expiry_credit(h, 1), -EINVAL);
	assert_int_equal(expiry_rewind(h), -EOPNOTSUPP);
	fake_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening),
		cmocka_unit_test(hello_as_specified),
		cmocka_unit_test(replies_in_pieces),
		cmocka_unit_test(connection_breaks),
		cmocka_unit_test(full_sockets),
		cmocka_unit_test(full_sockets_posted),
		cmocka_unit_test(full_socket_and_late_replies),
		cmocka_unit_test(large_takes),
		cmocka_unit_test(many_small_turns),
		cmocka_unit_test(refused_ops),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
