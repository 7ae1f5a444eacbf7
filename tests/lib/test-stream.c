// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The library against a server made for the test, which says what no daemon
 * would: records in pieces, too much, too little, in the worst order.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include <expiry/expiry.h>

#define RECORD	sizeof(struct expiry_record)

/* ------------------------------------------------------------------------
 * The server: one thread, one connection, one script
 */

struct server {
	pthread_t thread;
	char directory[32];
	char address[64];
	int listen_fd;
	void (*script)(int fd);
};

static bool get(int fd, struct expiry_record *records, uint32_t nr)
{
	char *at = (void *)records;
	size_t left = nr * RECORD;
	ssize_t ret;

	while (left) {
		ret = read(fd, at, left);
		if (ret <= 0)
			return false;
		at += ret;
		left -= ret;
	}
	return true;
}

static void put_bytes(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;
	ssize_t ret;

	while (len) {
		ret = send(fd, at, len, MSG_NOSIGNAL);
		if (ret <= 0)
			return;
		at += ret;
		len -= ret;
	}
}

static void put(int fd, const struct expiry_record *records, uint32_t nr)
{
	put_bytes(fd, records, nr * RECORD);
}

static void put_event(int fd, uint8_t op, uint64_t cookie)
{
	struct expiry_record event = { .op = op, .cookie = cookie };

	put(fd, &event, 1);
}

/* HELLO is answered with a window of @window. */
static void greet(int fd, uint64_t window)
{
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return;
	hello = (struct expiry_record){
		.op = EXPIRY_OP_HELLO,
		.id = 5,
		.cookie = window,
	};
	put(fd, &hello, 1);
}

/* Whatever comes until the client goes. */
static void drain(int fd)
{
	struct expiry_record record;

	while (get(fd, &record, 1))
		;
}

static void *serve(void *arg)
{
	struct server *server = arg;
	int fd = accept(server->listen_fd, NULL, NULL);

	if (fd >= 0) {
		server->script(fd);
		close(fd);
	}
	return NULL;
}

static void server_start(struct server *server, void (*script)(int fd))
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(server->directory, "/tmp/expiry-test-XXXXXX");
	assert_non_null(mkdtemp(server->directory));
	snprintf(server->address, sizeof(server->address), "unix:%s/s",
		 server->directory);
	strcpy(addr.sun_path, server->address + strlen("unix:"));
	server->script = script;
	server->listen_fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(server->listen_fd >= 0);
	assert_int_equal(bind(server->listen_fd, (void *)&addr, sizeof(addr)),
			 0);
	assert_int_equal(listen(server->listen_fd, 1), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server),
			 0);
}

static void server_stop(struct server *server)
{
	/* If nobody came, accept() ends with this. */
	shutdown(server->listen_fd, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->listen_fd);
	unlink(server->address + strlen("unix:"));
	rmdir(server->directory);
}

/* A handle on a server that follows @script. */
static struct expiry *open_on(struct server *server, void (*script)(int fd),
			      uint32_t flags, uint32_t credit)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = flags,
		.credit = credit,
	};
	struct expiry *h = NULL;

	server_start(server, script);
	assert_int_equal(expiry_open(&h, server->address, &options), 0);
	assert_non_null(h);
	return h;
}

static void end(struct server *server, struct expiry *h)
{
	expiry_close(h);
	server_stop(server);
}

/* What opening on such a server returns. */
static int open_fails(void (*script)(int fd), uint32_t timeout_ms)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.timeout_ms = timeout_ms,
	};
	struct server server;
	struct expiry *h;
	int ret;

	server_start(&server, script);
	ret = expiry_open(&h, server.address, &options);
	if (!ret)
		expiry_close(h);
	server_stop(&server);
	return ret;
}

static void fill_arm(struct expiry_record *records, uint32_t nr)
{
	uint32_t i;

	for (i = 0; i < nr; i++)
		records[i] = (struct expiry_record){
			.op = EXPIRY_OP_ARM,
			.deadline_ns = 1000 + i,
			.cookie = i,
		};
}

/* Take @nr records, waiting for each. */
static void take(struct expiry *h, struct expiry_record *records, uint32_t nr)
{
	uint32_t done = 0;
	int ret;

	while (done < nr) {
		ret = expiry_next(h, records + done, nr - done);
		assert_true(ret >= 0);
		done += ret;
		if (!ret)
			assert_int_equal(expiry_wait(h, 60000), 1);
	}
}

/* The errno that comes when nothing else does any more. */
static int next_error(struct expiry *h)
{
	struct expiry_record record;
	int ret;

	do {
		ret = expiry_next(h, &record, 1);
		if (!ret)
			assert_int_equal(expiry_wait(h, 60000), 1);
	} while (ret >= 0);
	return ret;
}

/* ------------------------------------------------------------------------
 * Opening
 */

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
	struct server server;
	struct expiry *h;

	(void)state;
	server_start(&server, say_what_came);
	assert_int_equal(expiry_open(&h, server.address, &options), 0);
	assert_int_equal(expiry_submit(h, &row, 1), 1);
	assert_int_equal(row.flags, EXPIRY_HELLO_KEYED | EXPIRY_HELLO_ACK);
	assert_int_equal(row.status, -EXPIRY_WIRE_VERSION);
	assert_int_equal(row.period_ms, 7);
	assert_memory_equal(&row.id, options.queue, 24);
	expiry_info(h, &info, sizeof(info));
	assert_int_equal(info.window, 10);
	assert_int_equal(info.clock_id, 7);
	assert_int_equal(info.mode, EXPIRY_MODE_ALL);
	end(&server, h);
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
	struct server server;
	struct expiry *h = open_on(&server, answer_in_pieces, 0, 0);

	(void)state;
	fill_arm(records, 3);
	memcpy(sent, records, sizeof(sent));
	assert_int_equal(expiry_submit(h, records, 3), 3);
	assert_memory_equal(records, sent, sizeof(sent));
	end(&server, h);
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
	struct server server;
	struct expiry *h = open_on(&server, answer_two_and_a_half, 0, 0);
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
	end(&server, h);
}

static void echo(int fd)
{
	struct expiry_record record;

	greet(fd, 5);
	while (get(fd, &record, 1))
		put(fd, &record, 1);
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

/* Far more than both sockets hold: who only wrote would wait for ever. */
static void full_sockets(void **state)
{
	struct expiry_record *records = malloc(MANY * RECORD);
	struct server server;
	struct expiry *h = open_on(&server, answer_in_small_turns, 0, 0);
	uint32_t i;

	(void)state;
	assert_non_null(records);
	fill_arm(records, MANY);
	assert_int_equal(expiry_submit(h, records, MANY), MANY);
	for (i = 0; i < MANY; i++)
		assert_int_equal(records[i].cookie, i);
	free(records);
	end(&server, h);
}

/* The same without a call that waits: the program polls. */
static void full_sockets_posted(void **state)
{
	struct expiry_record *records = malloc(MANY * RECORD);
	struct expiry_record replies[100];
	struct server server;
	struct expiry *h = open_on(&server, answer_in_small_turns, 0, 0);
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
	end(&server, h);
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

/* Who stopped writing when the socket was full, and read, would wait for ever;
 * the buffer's odd size cuts records in two.
 */
static void full_socket_and_late_replies(void **state)
{
	struct expiry_record *records = malloc(LATE * RECORD);
	struct server server;
	struct expiry *h = open_on(&server, answer_late, 0, 0);
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
	end(&server, h);
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
	struct server server;
	struct expiry *h = open_on(&server, cut_in_a_record, 0, 0);
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
	end(&server, h);
}

/* The ring of what is kept goes round. */
static void many_small_turns(void **state)
{
	struct expiry_record posted[3], asked, got[3];
	struct server server;
	struct expiry *h;
	uint64_t turn;
	int i;

	(void)state;
	h = open_on(&server, echo, 0, 0);
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
	end(&server, h);
}

static void answer_four_at_a_time(int fd)
{
	struct expiry_record records[4];

	greet(fd, 4);
	while (get(fd, records, 4)) {
		/* One more on its way is one too many. */
		if (recv(fd, records, 1, MSG_DONTWAIT | MSG_PEEK) > 0)
			return;
		put(fd, records, 4);
	}
}

static void window_is_kept(void **state)
{
	struct expiry_record records[40], reply[4];
	struct server server;
	struct expiry *h = open_on(&server, answer_four_at_a_time, 0, 0);

	(void)state;
	fill_arm(records, 40);
	assert_int_equal(expiry_submit(h, records, 40), 40);
	assert_int_equal(expiry_post(h, records, 40), 4);
	assert_int_equal(expiry_post(h, records, 40), 0);
	take(h, reply, 4);
	assert_int_equal(expiry_post(h, records, 2), 2);
	/* Two of the window are taken: two and two, not four. */
	assert_int_equal(expiry_submit(h, records, 2), 2);
	end(&server, h);
}

static void refused_ops(void **state)
{
	static const uint8_t ops[] = {
		EXPIRY_OP_EXPIRED, EXPIRY_OP_CLOCK_SET, EXPIRY_OP_HELLO,
		EXPIRY_OP_CREDIT, EXPIRY_OP_SCAN, EXPIRY_OP_STAT,
		EXPIRY_OP_DROP, 69, 255,
	};
	struct expiry_record records[2];
	struct server server;
	struct expiry *h = open_on(&server, answer_in_small_turns, 0, 0);
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
	end(&server, h);
}

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

/* Order is kept; of the clock's steps the program hears of the last. */
static void expirations_between_replies(void **state)
{
	static const uint64_t cookies[] = {
		1000, 0, 1, 2, 1001, 2, 1002, 1003, 1004
	};
	struct expiry_record records[3], asked[2], got[9];
	struct server server;
	struct expiry *h = open_on(&server, mix, EXPIRY_OPEN_CONSUME, 8);
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
	end(&server, h);
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

static void credit_is_topped_up(void **state)
{
	struct expiry_record got[200];
	struct server server;
	struct expiry *h = open_on(&server, use_up_credit, EXPIRY_OPEN_CONSUME,
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
	end(&server, h);
}

static void credit_by_hand(void **state)
{
	struct expiry_record got[20];
	struct server server;
	struct expiry *h = open_on(&server, use_up_credit,
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
	end(&server, h);
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
	struct server server;
	struct expiry *h;

	(void)state;
	h = open_on(&server, too_many,
		    EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL, 10);
	assert_int_equal(expiry_credit(h, 10), 0);
	assert_int_equal(next_error(h), -EPROTO);
	end(&server, h);

	h = open_on(&server, too_many, EXPIRY_OPEN_CONSUME, 10);
	assert_int_equal(expiry_submit(h, &record, 1), -EPROTO);
	end(&server, h);

	h = open_on(&server, too_many, 0, 0);
	assert_int_equal(next_error(h), -EPROTO);
	end(&server, h);

	h = open_on(&server, unasked, 0, 0);
	assert_int_equal(next_error(h), -EPROTO);
	end(&server, h);
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

/* What arrived before the end is handed out, even if sending failed first. */
static void nothing_is_lost_at_the_end(void **state)
{
	struct expiry_record records[200], got[5];
	struct server server;
	struct expiry *h = open_on(&server, expire_and_go,
				   EXPIRY_OPEN_CONSUME, 10);

	(void)state;
	pthread_join(server.thread, NULL);
	fill_arm(records, 200);
	assert_true(expiry_post(h, records, 200) >= 0);
	take(h, got, 5);
	assert_int_equal(got[4].cookie, 4);
	assert_int_equal(next_error(h), -ECONNRESET);
	expiry_close(h);

	/* server_stop() would join again. */
	server_start(&server, end_at_once);
	server_stop(&server);
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
	struct server server;
	struct expiry *h;

	(void)state;
	server_start(&server, stay_silent);
	assert_int_equal(expiry_open(&h, server.address, &options), 0);
	assert_int_equal(expiry_cancel(h, 1, NULL), -ETIMEDOUT);
	assert_int_equal(expiry_cancel(h, 1, NULL), -ETIMEDOUT);
	end(&server, h);
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
	struct server server;
	struct expiry *h = open_on(&server, stat_longer, 0, 0);
	uint64_t count = 1;

	(void)state;
	assert_int_equal(expiry_stat(h, &stat, &s.server, sizeof(s.server)), 0);
	assert_int_equal(stat.clock_id, 0x10101010);
	assert_int_equal(s.server.engine, 0x10101010);
	assert_int_equal(s.guard, 42);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), 0);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_int_equal(count, 0);
	end(&server, h);

	h = open_on(&server, stat_short, 0, 0);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), -EPROTO);
	end(&server, h);
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

static void scan_refused(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		if (record.op == EXPIRY_OP_SCAN)
			record.status = -EINVAL;
		put(fd, &record, 1);
	}
}

static void scans(void **state)
{
	struct expiry_record rows[8];
	struct server server;
	struct expiry *h = open_on(&server, scan_too_much, 0, 0);
	uint64_t cursor = 0;

	(void)state;
	assert_int_equal(expiry_scan(h, &cursor, rows, 7), -EPROTO);
	end(&server, h);

	h = open_on(&server, scan_refused, 0, 0);
	cursor = 77;
	assert_int_equal(expiry_scan(h, &cursor, rows, 8), -EINVAL);
	assert_int_equal(cursor, 77);
	assert_int_equal(expiry_clear(h, NULL), 0);
	end(&server, h);
}

static void after_drop(void **state)
{
	struct server server;
	struct expiry *h = open_on(&server, answer_in_small_turns, 0, 0);

	(void)state;
	end(&server, h);
	h = open_on(&server, scan_refused, 0, 0);
	assert_int_equal(expiry_drop(h), 0);
	assert_int_equal(expiry_drop(h), -ENOTCONN);
	assert_int_equal(expiry_clear(h, NULL), -ENOTCONN);
	end(&server, h);
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
		cmocka_unit_test(window_is_kept),
		cmocka_unit_test(refused_ops),
		cmocka_unit_test(expirations_between_replies),
		cmocka_unit_test(credit_is_topped_up),
		cmocka_unit_test(credit_by_hand),
		cmocka_unit_test(protocol_broken),
		cmocka_unit_test(nothing_is_lost_at_the_end),
		cmocka_unit_test(server_falls_silent),
		cmocka_unit_test(stat_of_another_version),
		cmocka_unit_test(scans),
		cmocka_unit_test(after_drop),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
