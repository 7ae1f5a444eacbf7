// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The results of every call: each errno as the server gave it, with nothing
 * else changed, and each field of a record on each path through the library.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "support-fake.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))
#define GUARD	0x123456789abcdef0ULL

/* All that expiry_open() and the protocol name. */
static const int errnos[] = {
	EINVAL, E2BIG, EACCES, EBUSY, ENOSPC, EDQUOT, EMFILE, ENFILE, EPERM,
	EOPNOTSUPP, ENOENT, ENOMEM, EEXIST, EIO,
};

static int status;

/* Answers HELLO, and refuses all else with that status. */
static void refuse_all(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		record.status = status;
		put(fd, &record, 1);
	}
}

static void errnos_come_as_they_are(void **state)
{
	struct expiry_record timer = { .cookie = GUARD }, before = timer, row;
	uint64_t id, deadline_ns, count, cursor;
	struct expiry_queue queue;
	struct expiry_stat stat;
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	h = fake_open(&server, refuse_all, 0, 0);
	for (i = 0; i < ARRAY_SIZE(errnos); i++) {
		status = -errnos[i];
		id = deadline_ns = count = cursor = GUARD;
		assert_int_equal(expiry_arm(h, &id, 1, 0, 0, 0), status);
		assert_int_equal(expiry_refresh(h, 1, 1, 0, &deadline_ns),
				 status);
		assert_int_equal(expiry_cancel(h, 1, &timer), status);
		assert_int_equal(expiry_query(h, 1, &timer), status);
		assert_int_equal(expiry_ack(h, 1), status);
		assert_int_equal(expiry_clear(h, &count), status);
		assert_int_equal(expiry_scan(h, &cursor, &row, 1), status);
		assert_int_equal(expiry_stat(h, &stat, NULL, 0), status);
		assert_int_equal(expiry_queues(h, &cursor, &queue, 1), status);
		assert_int_equal(expiry_drop(h), status);
		assert_true(id == GUARD && deadline_ns == GUARD &&
			    count == GUARD && cursor == GUARD);
		assert_memory_equal(&timer, &before, sizeof(timer));
		/* A record's errno is its status; the call itself succeeds. */
		assert_int_equal(expiry_submit(h, &timer, 1), 1);
		assert_int_equal(timer.status, status);
		timer.status = 0;
	}
	fake_end(&server, h);
}

static void refuse_hello(int fd)
{
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return;
	hello.status = status;
	put(fd, &hello, 1);
}

static void opening_says_why(void **state)
{
	struct rlimit limit, none;
	struct fake server;
	struct expiry *h = (void *)&limit, *const before = h;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(errnos); i++) {
		status = -errnos[i];
		fake_start(&server, refuse_hello);
		assert_int_equal(expiry_open(&h, server.address, NULL), status);
		fake_stop(&server);
	}
	/* The process has as many descriptors as it may. */
	fake_start(&server, refuse_hello);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ .rlim_max = limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(expiry_open(&h, server.address, NULL), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	fake_stop(&server);
	assert_ptr_equal(h, before);
}

/* The listen backlog is full: one more connection waits only for its timeout. */
static void full_backlog_is_a_time_out(void **state)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.timeout_ms = 20,
	};
	char directory[] = "/tmp/expiry-test-XXXXXX", address[64];
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct expiry *h = NULL;
	int fds[64], nr = 0;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", directory);
	snprintf(address, sizeof(address), "unix:%s", addr.sun_path);
	fds[nr] = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fds[nr], (void *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fds[nr], 0), 0);
	do {
		assert_true(++nr < 64);
		fds[nr] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	} while (!connect(fds[nr], (void *)&addr, sizeof(addr)));
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(expiry_open(&h, address, &options), -ETIMEDOUT);
	assert_null(h);
	for (; nr >= 0; nr--)
		close(fds[nr]);
	unlink(addr.sun_path);
	rmdir(directory);
}

static void say_more_than_asked(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		record.status = 1;
		record.id = 1;
		put(fd, &record, 1);
	}
}

/* No status is above 0: what says so is no server of ours. */
static void status_above_zero_breaks(void **state)
{
	struct expiry_record row;
	struct expiry_stat stat;
	struct fake server;
	uint64_t cursor = 0;
	struct expiry *h;

	(void)state;
	h = fake_open(&server, say_more_than_asked, 0, 0);
	assert_int_equal(expiry_scan(h, &cursor, &row, 1), -EPROTO);
	fake_end(&server, h);
	h = fake_open(&server, say_more_than_asked, 0, 0);
	assert_int_equal(expiry_stat(h, &stat, NULL, 0), -EPROTO);
	fake_end(&server, h);
}

static void row_with_status(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		record.id = 1;
		put(fd, &record, 1);
		record.status = status;
		put(fd, &record, 1);
	}
}

/* Nor is there a status within the rows. */
static void status_between_rows_breaks(void **state)
{
	static const int wrong[] = { 1, 5, -ENOENT };
	struct expiry_record rows[9];
	struct fake server;
	uint64_t cursor;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		status = wrong[i];
		cursor = 0;
		h = fake_open(&server, row_with_status, 0, 0);
		assert_int_equal(expiry_scan(h, &cursor, rows, 9), -EPROTO);
		assert_int_equal(expiry_scan(h, &cursor, rows, 9), -EPROTO);
		assert_true(cursor == 0);
		fake_end(&server, h);
	}
}

/* ------------------------------------------------------------------------
 * Signals
 */

static sem_t signals;

static void on_signal(int number)
{
	(void)number;
	sem_post(&signals);
}

static void answer_after_signals(int fd)
{
	struct expiry_record record;
	int i;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		for (i = 0; i < 20; i++)
			sem_wait(&signals);
		put(fd, &record, 1);
	}
}

static void signals_every_ms(bool on)
{
	const struct itimerval every = {
		.it_interval.tv_usec = on ? 1000 : 0,
		.it_value.tv_usec = on ? 1000 : 0,
	};
	const struct sigaction action = {
		.sa_handler = on ? on_signal : SIG_DFL,
	};

	if (on)
		assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	if (!on)
		assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
}

/* They end what waits for expirations, and nothing that waits for an answer. */
static void signals_end_waiting_alone(void **state)
{
	struct expiry_record record;
	struct fake server;
	sigset_t set;
	struct expiry *h;

	(void)state;
	sem_init(&signals, 0, 0);
	/* They are for this thread, not for the server's. */
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	h = fake_open(&server, answer_after_signals, EXPIRY_OPEN_CONSUME |
		      EXPIRY_OPEN_MANUAL, 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	signals_every_ms(true);
	fill_arm(&record, 1);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(expiry_wait(h, 60000), -EINTR);
	assert_int_equal(expiry_receive(h, &record, 1, -1), -EINTR);
	assert_int_equal(expiry_query(h, 1, NULL), 0);
	signals_every_ms(false);
	fake_end(&server, h);
	sem_destroy(&signals);
}

/* ------------------------------------------------------------------------
 * Expirations
 */

#define NR	200

static struct expiry_record expiration(uint32_t i)
{
	return (struct expiry_record){
		.op = EXPIRY_OP_EXPIRED,
		.flags = i % 3 ? EXPIRY_F_REDELIVERED : 0,
		.period_ms = UINT32_MAX - i,
		.id = 1ULL << 63 | i,
		.deadline_ns = EXPIRY_NEVER - i,
		.cookie = 0x0102030405060708ULL * i,
	};
}

static void expire_all(int fd)
{
	struct expiry_record record;
	uint32_t i;

	greet(fd, 100);
	get(fd, &record, 1);
	for (i = 0; i < NR; i++) {
		record = expiration(i);
		put(fd, &record, 1);
	}
	/* The answer comes behind them: they are in the handle by then. */
	while (get(fd, &record, 1)) {
		if (record.op != EXPIRY_OP_CREDIT)
			put(fd, &record, 1);
	}
}

/* REDELIVERED and all the rest, one by one, in a large array, and out of what a
 * call that waited has kept.
 */
static void expirations_come_whole(void **state)
{
	static const uint32_t at_once[] = { 1, 7, NR };
	struct expiry_record got[NR], expected, asked;
	struct fake server;
	uint32_t done;
	struct expiry *h;
	size_t way;
	int i, nr;

	(void)state;
	for (way = 0; way < 2 * ARRAY_SIZE(at_once); way++) {
		h = fake_open(&server, expire_all, EXPIRY_OPEN_CONSUME, NR);
		if (way % 2) {
			fill_arm(&asked, 1);
			assert_int_equal(expiry_submit(h, &asked, 1), 1);
			assert_int_equal(expiry_pending(h), NR);
		}
		for (done = 0; done < NR; done += nr) {
			nr = expiry_receive(h, got, at_once[way / 2], 60000);
			assert_true(nr > 0);
			for (i = 0; i < nr; i++) {
				expected = expiration(done + i);
				assert_memory_equal(&got[i], &expected,
						    sizeof(expected));
			}
		}
		fake_end(&server, h);
	}
}

static void list_one(int fd)
{
	struct expiry_record record;
	uint32_t i;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		for (i = 1; i < 4; i++) {
			record = expiration(i);
			record.op = EXPIRY_OP_SCAN;
			put(fd, &record, 1);
		}
		record = (struct expiry_record){
			.op = EXPIRY_OP_SCAN, .cookie = GUARD };
		put(fd, &record, 1);
	}
}

static void rows_come_whole(void **state)
{
	struct expiry_record rows[3], expected;
	struct fake server;
	uint64_t cursor = 0;
	struct expiry *h;
	uint32_t i;

	(void)state;
	h = fake_open(&server, list_one, 0, 0);
	assert_int_equal(expiry_scan(h, &cursor, rows, 3), 3);
	assert_true(cursor == GUARD);
	for (i = 0; i < 3; i++) {
		expected = expiration(i + 1);
		expected.op = EXPIRY_OP_QUERY;
		assert_memory_equal(&rows[i], &expected, sizeof(expected));
	}
	fake_end(&server, h);
}

static struct expiry_record asked;

/* Requests are kept; each answer has fields of its own. */
static void answer_otherwise(int fd)
{
	struct expiry_record record;

	greet(fd, 100);
	while (get(fd, &record, 1)) {
		asked = record;
		if (record.op == EXPIRY_OP_ARM)
			record.id = 11;
		record.deadline_ns = 22;
		record.cookie = 33;
		record.period_ms = 44;
		record.flags = 0;
		put(fd, &record, 1);
	}
}

static void assert_asked(uint8_t op, uint8_t flags, uint32_t period_ms,
			 uint64_t id, uint64_t deadline_ns, uint64_t cookie)
{
	const struct expiry_record expected = {
		.op = op,
		.flags = flags,
		.period_ms = period_ms,
		.id = id,
		.deadline_ns = deadline_ns,
		.cookie = cookie,
	};

	assert_memory_equal(&asked, &expected, sizeof(expected));
}

/* The requests of the calls for one timer, and their results. */
static void calls_send_what_they_are_given(void **state)
{
	uint64_t id = 5, deadline_ns = 0, count = 0;
	struct expiry_record timer;
	struct fake server;
	struct expiry *h;

	(void)state;
	h = fake_open(&server, answer_otherwise, 0, 0);
	assert_int_equal(expiry_arm(h, &id, 6, 7, 8, EXPIRY_F_RELATIVE), 0);
	assert_asked(EXPIRY_OP_ARM, EXPIRY_F_RELATIVE, 7, 0, 6, 8);
	assert_true(id == 11);
	assert_int_equal(expiry_refresh(h, 5, 6, EXPIRY_F_LATER, &deadline_ns),
			 0);
	assert_asked(EXPIRY_OP_REFRESH, EXPIRY_F_LATER, 0, 5, 6, 0);
	assert_true(deadline_ns == 22);
	assert_int_equal(expiry_refresh(h, 5, 6, 0, NULL), 0);
	assert_int_equal(expiry_cancel(h, 9, &timer), 0);
	assert_asked(EXPIRY_OP_CANCEL, 0, 0, 9, 0, 0);
	assert_true(timer.id == 9 && timer.deadline_ns == 22 &&
		    timer.cookie == 33 && timer.period_ms == 44);
	assert_int_equal(expiry_query(h, 10, &timer), 0);
	assert_asked(EXPIRY_OP_QUERY, 0, 0, 10, 0, 0);
	assert_int_equal(expiry_query(h, 10, NULL), 0);
	assert_int_equal(expiry_ack(h, 12), 0);
	assert_asked(EXPIRY_OP_ACK, 0, 0, 12, 0, 0);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_asked(EXPIRY_OP_CLEAR, 0, 0, 0, 0, 0);
	assert_true(count == 33);
	assert_int_equal(expiry_drop(h), 0);
	assert_asked(EXPIRY_OP_DROP, 0, 0, 0, 0, 0);
	fake_end(&server, h);

	/* The id is the client's own. */
	h = fake_open(&server, answer_otherwise, EXPIRY_OPEN_KEYED, 0);
	id = 11;
	assert_int_equal(expiry_arm(h, &id, 6, 0, 8, EXPIRY_F_NEW), 0);
	assert_asked(EXPIRY_OP_ARM, EXPIRY_F_NEW, 0, 11, 6, 8);
	fake_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errnos_come_as_they_are),
		cmocka_unit_test(opening_says_why),
		cmocka_unit_test(full_backlog_is_a_time_out),
		cmocka_unit_test(status_above_zero_breaks),
		cmocka_unit_test(status_between_rows_breaks),
		cmocka_unit_test(signals_end_waiting_alone),
		cmocka_unit_test(expirations_come_whole),
		cmocka_unit_test(rows_come_whole),
		cmocka_unit_test(calls_send_what_they_are_given),
	};

	return cmocka_run_group_tests_name("errnos", tests, NULL, NULL);
}
