// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The library over a socket that takes and gives a few bytes at a time, interrupts
 * calls and breaks: what send() and recv() may do, and a local socket seldom does.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "support-reconnect.h"

#define WINDOW	24
#define ROUNDS	12

/* ------------------------------------------------------------------------
 * These stand before the C library's, for the thread that has the handle.
 */

static _Thread_local bool cutting;
static size_t send_most, recv_most;	/* bytes a call, 0 = all */
static int send_error, recv_error;	/* what calls fail with, 0 = they do not */
static bool interrupts;
static uint64_t chance;
static int sends_failed, sends, polls, wakes;
static struct sockaddr_un asked_for;

static uint32_t draw(uint32_t below)
{
	chance = chance * 6364136223846793005ULL + 1442695040888963407ULL;
	return (chance >> 33) % below;
}

/* Returns an errno that means "once more", or 0. */
static int interrupted(int flags)
{
	if (!interrupts || draw(4))
		return 0;
	return flags & MSG_DONTWAIT && draw(2) ? EAGAIN : EINTR;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	if (cutting) {
		errno = send_error ? send_error : interrupted(flags);
		if (errno) {
			sends_failed += !!send_error;
			return -1;
		}
		if (send_most && len > send_most)
			len = 1 + draw(send_most);
		sends++;
	}
	return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
	if (cutting) {
		errno = recv_error ? recv_error : interrupted(flags);
		if (errno)
			return -1;
		if (recv_most && len > recv_most)
			len = 1 + draw(recv_most);
	}
	return syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
}

int poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	if (cutting) {
		polls++;
		if (wakes) {
			wakes--;
			return 1;
		}
	}
	return syscall(SYS_poll, fds, nr, timeout_ms);
}

/* Resets the send error; a connection to a requested address fails with ENOENT. */
int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (cutting)
		send_error = 0;
	if (cutting && asked_for.sun_family) {
		memcpy(&asked_for, addr, len);
		errno = ENOENT;
		return -1;
	}
	return syscall(SYS_connect, fd, addr, len);
}

static void wide_echo(int fd)
{
	struct expiry_record record;

	greet(fd, WINDOW);
	while (get(fd, &record, 1))
		put(fd, &record, 1);
}

/* The socket is as others are, until the test says otherwise. */
static void all_is_well(void)
{
	send_error = 0;
	recv_error = 0;
	send_most = 0;
	recv_most = 0;
	interrupts = false;
	sends_failed = 0;
	wakes = 0;
	cutting = true;
}

static struct expiry *open_whole(struct fake *server, fake_script *script,
				 uint32_t flags)
{
	all_is_well();
	return fake_open(server, script, flags, 0);
}

static void end_whole(struct fake *server, struct expiry *h)
{
	cutting = false;
	fake_end(server, h);
}

/* ------------------------------------------------------------------------
 * Pieces
 */

static void fill(struct expiry_record *records, uint32_t nr, uint64_t *next)
{
	uint32_t i;

	for (i = 0; i < nr; i++) {
		/* No byte is as the one in the record before. */
		memset(&records[i], 0, sizeof(records[i]));
		records[i].op = EXPIRY_OP_ARM;
		records[i].id = *next * 0x0101010101010101;
		records[i].deadline_ns = ~*next * 0x0101010101010101;
		records[i].cookie = (*next)++;
	}
}

static void take_the_same(struct expiry *h, const struct expiry_record *records,
			  uint32_t nr)
{
	struct expiry_record reply;
	uint32_t i;

	for (i = 0; i < nr; i++) {
		take(h, &reply, 1);
		assert_memory_equal(&reply, &records[i], sizeof(reply));
	}
}

/* Posted and submitted requests alternate: what is left of one record goes out
 * before the next.
 */
static void echo_rounds(struct expiry *h)
{
	struct expiry_record posted[WINDOW], sync[WINDOW], asked[WINDOW];
	uint64_t next = 1;
	uint32_t nr, round;
	int done;

	for (round = 0; round < ROUNDS; round++) {
		nr = 1 + draw(WINDOW);
		fill(posted, nr, &next);
		done = expiry_post(h, posted, nr);
		assert_in_range(done, 0, nr);
		nr = 1 + draw(WINDOW);
		fill(asked, nr, &next);
		memcpy(sync, asked, sizeof(sync));
		assert_int_equal(expiry_submit(h, sync, nr), nr);
		assert_memory_equal(sync, asked, nr * sizeof(*sync));
		take_the_same(h, posted, done);
	}
}

/* By a byte, a record, and what is just above and below. */
static void records_are_whole_whatever_the_pieces(void **state)
{
	static const size_t most[] = { 0, 1, 2, RECORD - 1, RECORD, RECORD + 1,
				       3 * RECORD - 1 };
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(most) / sizeof(*most); i++) {
		for (j = 0; j < sizeof(most) / sizeof(*most); j++) {
			struct fake server;
			struct expiry *h;

			h = open_whole(&server, wide_echo, 0);
			chance = 100 * i + j;
			send_most = most[i];
			recv_most = most[j];
			interrupts = (i + j) % 2;
			echo_rounds(h);
			end_whole(&server, h);
		}
	}
}

/* ------------------------------------------------------------------------
 * Errors
 */

static int hung_up[2];

/* Tell of an expiration and a second, then wait for the test. */
static void expire_two(int fd)
{
	char byte;

	greet(fd, WINDOW);
	put_event(fd, EXPIRY_OP_EXPIRED, 1);
	put_event(fd, EXPIRY_OP_EXPIRED, 2);
	if (read(hung_up[0], &byte, 1) != 1)
		return;
}

/* A server that reads no more may have written: that is received, and only then
 * is the connection over. Nothing is sent again, nor waited for until it can be.
 */
static void what_came_before_the_end_is_received(void **state)
{
	static const int errors[] = { EPIPE, ECONNRESET };
	struct expiry_record record;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct fake server;
		struct expiry *h;

		assert_int_equal(pipe(hung_up), 0);
		h = open_whole(&server, expire_two, EXPIRY_OPEN_CONSUME);
		send_error = errors[i];
		fill_arm(&record, 1);
		assert_int_equal(expiry_post(h, &record, 1), 1);
		assert_in_range(expiry_flush(h), 0, 1);
		assert_int_equal(sends_failed, 1);
		assert_int_equal(expiry_events(h), POLLIN);
		take(h, &record, 1);
		assert_int_equal(record.cookie, 1);
		take(h, &record, 1);
		assert_int_equal(record.cookie, 2);
		/* Room for writing does not end the wait. */
		assert_int_equal(expiry_wait(h, 20), 0);
		fill_arm(&record, 1);
		assert_in_range(expiry_post(h, &record, 1), 0, 1);
		assert_int_equal(sends_failed, 1);
		close(hung_up[1]);
		assert_int_equal(next_error(h), -ECONNRESET);
		end_whole(&server, h);
		close(hung_up[0]);
	}
}

/* Any other error is the handle's, at once and for good; and an end to waiting. */
static void other_errors_are_the_callers(void **state)
{
	static const int errors[] = { ENOTCONN, EIO, ENOMEM };
	struct expiry_record record, next;
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		h = open_whole(&server, wide_echo, 0);
		fill_arm(&record, 1);
		send_error = errors[i];
		assert_int_equal(expiry_submit(h, &record, 1), -errors[i]);
		send_error = 0;
		assert_int_equal(expiry_next(h, &next, 1), -errors[i]);
		end_whole(&server, h);

		h = open_whole(&server, wide_echo, 0);
		send_error = EAGAIN;
		assert_int_equal(expiry_post(h, &record, 1), 1);
		send_error = errors[i];
		assert_int_equal(expiry_wait(h, 60000), 1);
		assert_int_equal(expiry_next(h, &next, 1), -errors[i]);
		end_whole(&server, h);

		h = open_whole(&server, wide_echo, 0);
		recv_error = errors[i];
		assert_int_equal(expiry_next(h, &next, 1), -errors[i]);
		recv_error = 0;
		assert_int_equal(expiry_submit(h, &record, 1), -errors[i]);
		end_whole(&server, h);
	}
}

/* ------------------------------------------------------------------------
 * How much is called
 */

static void address_by_default(void **state)
{
	struct expiry *h;

	(void)state;
	all_is_well();
	asked_for.sun_family = AF_UNIX;
	assert_int_equal(expiry_open(&h, NULL, NULL), -ENOENT);
	assert_string_equal(asked_for.sun_path, EXPIRY_SOCKET_DEFAULT);
	asked_for.sun_family = 0;
	cutting = false;
}

static sem_t sixty_four;

static void count_sixty_four(int fd)
{
	struct expiry_record records[64];

	greet(fd, 1000);
	if (get(fd, records, 64))
		sem_post(&sixty_four);
	drain(fd);
}

/* A handle that reconnects sends what is posted together, by 64, without being
 * told to; and says when all is sent.
 */
static void posted_requests_go_together(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { count_sixty_four };
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	sem_init(&sixty_four, 0, 0);
	all_is_well();
	h = reconnect_open(&server, scripts, EXPIRY_OPEN_KEYED, WAIT_MS);
	sends = 0;
	for (i = 0; i < 63; i++) {
		record = reconnect_request(EXPIRY_OP_ARM, i);
		assert_int_equal(expiry_post(h, &record, 1), 1);
	}
	assert_int_equal(sends, 0);
	assert_int_equal(expiry_post(h, &record, 1), 1);
	sem_wait(&sixty_four);
	assert_int_equal(expiry_flush(h), 0);
	send_error = EAGAIN;
	assert_int_equal(expiry_post(h, &record, 1), 1);
	assert_int_equal(expiry_flush(h), 1);
	send_error = 0;
	assert_int_equal(expiry_flush(h), 0);
	sem_destroy(&sixty_four);
	cutting = false;
	reconnect_end(&server, h);
}

static sem_t closed;

static void expire_five_and_go(int fd)
{
	struct expiry_record record;
	int i;

	greet(fd, 1000);
	get(fd, &record, 1);
	for (i = 0; i < 5; i++)
		put_event(fd, EXPIRY_OP_EXPIRED, i);
	sem_wait(&closed);
}

static void expect_credit_of_seven(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	if (get(fd, &record, 1))
		script_expect(record.op == EXPIRY_OP_CREDIT &&
			      record.period_ms == 7, "credit that is owed twice");
	put_event(fd, EXPIRY_OP_EXPIRED, 5);
	drain(fd);
}

/* Credit that could not be sent is given once on the next connection: of eight,
 * which were topped up after the fourth, the fifth took one.
 */
static void credit_that_was_stuck(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		expire_five_and_go, expect_credit_of_seven
	};
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	sem_init(&closed, 0, 0);
	all_is_well();
	h = reconnect_open(&server, scripts, ACKING, WAIT_MS);
	send_error = EAGAIN;
	for (i = 0; i < 5; i++)
		take(h, &record, 1);
	sem_post(&closed);
	while (!reconnect_count(h)) {
		assert_int_equal(expiry_next(h, &record, 1), 0);
		assert_true(expiry_wait(h, WAIT_MS) >= 0);
	}
	take(h, &record, 1);
	assert_int_equal(record.cookie, 5);
	cutting = false;
	sem_destroy(&closed);
	reconnect_end(&server, h);
}

/* Requests that fill the handle's buffer: 64 KiB. */
#define FULL	2048

static sem_t expired, credited;

static void expire_five(int fd)
{
	struct expiry_record record;
	int i;

	greet(fd, EXPIRY_WINDOW_MAX);
	get(fd, &record, 1);
	for (i = 0; i < 5; i++)
		put_event(fd, EXPIRY_OP_EXPIRED, i);
	sem_post(&expired);
}

/* Answers @nr requests, which credit of @credit follows. */
static void answer_then_get_credit(int fd, int nr, uint32_t credit)
{
	struct expiry_record record;
	int i;

	for (i = 0; i < nr && get(fd, &record, 1); i++) {
		script_expect(record.op == EXPIRY_OP_QUERY,
			      "credit before what was posted");
		put(fd, &record, 1);
	}
	if (get(fd, &record, 1))
		script_expect(record.op == EXPIRY_OP_CREDIT &&
			      record.period_ms == credit, "another credit");
	sem_post(&credited);
	drain(fd);
}

static void expire_five_and_go_when_full(int fd)
{
	expire_five(fd);
	sem_wait(&closed);
}

static void answer_again_with_credit(int fd)
{
	greet_again(fd);
	answer_then_get_credit(fd, FULL, 7);
}

static void expire_five_and_answer(int fd)
{
	expire_five(fd);
	answer_then_get_credit(fd, FULL + 10, 4);
}

/* Posts @nr requests that cannot be sent, then takes five of eight expirations:
 * credit of four is due after the fourth.
 */
static struct expiry *owe_credit(struct fake *server,
				 fake_script *const *scripts, int nr)
{
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct expiry *h;
	int i;

	sem_init(&expired, 0, 0);
	sem_init(&closed, 0, 0);
	sem_init(&credited, 0, 0);
	all_is_well();
	h = reconnect_open(server, scripts, ACKING, WAIT_MS);
	sem_wait(&expired);
	send_error = EAGAIN;
	for (i = 0; i < nr; i++) {
		assert_int_equal(expiry_post(h, &record, 1), 1);
		assert_int_equal(expiry_flush(h), 1);
	}
	for (i = 0; i < 5; i++) {
		take(h, &record, 1);
		assert_int_equal(record.op, EXPIRY_OP_EXPIRED);
	}
	return h;
}

static void take_answers(struct fake *server, struct expiry *h, int nr)
{
	struct expiry_record record;

	while (nr--) {
		take(h, &record, 1);
		assert_int_equal(record.op, EXPIRY_OP_QUERY);
	}
	cutting = false;
	/* It follows the last answer at the latest. */
	while (sem_trywait(&credited))
		assert_int_equal(expiry_flush(h), 0);
	reconnect_end(server, h);
	sem_destroy(&expired);
	sem_destroy(&closed);
	sem_destroy(&credited);
}

/* Credit behind requests that fill the buffer: the connection breaks, or there is
 * room again. It follows what was posted, and is given once.
 */
static void credit_that_found_no_room(void **state)
{
	fake_script *const breaking[FAKE_SCRIPTS] = {
		expire_five_and_go_when_full, answer_again_with_credit
	};
	fake_script *const waiting[FAKE_SCRIPTS] = { expire_five_and_answer };
	struct fake server;
	struct expiry *h;

	(void)state;
	h = owe_credit(&server, breaking, FULL);
	(void)expiry_flush(h);
	sem_post(&closed);
	take_answers(&server, h, FULL);

	h = owe_credit(&server, waiting, FULL + 10);
	send_error = 0;
	take_answers(&server, h, FULL + 10);
}

static void silence(int fd)
{
	greet(fd, WINDOW);
	drain(fd);
}

/* One that is woken for nothing waits on, for a millisecond, too, and no longer. */
static void woken_for_nothing(void **state)
{
	static const int ms[] = { 1, 2, 20 };
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	int tries;
	size_t i;

	(void)state;
	h = open_whole(&server, silence, EXPIRY_OPEN_CONSUME);
	for (i = 0; i < 3; i++) {
		/* A machine that stalls has no time left after the first poll(). */
		for (tries = 0; tries < 100; tries++) {
			polls = 0;
			wakes = 1;
			assert_int_equal(expiry_receive(h, &record, 1, ms[i]), 0);
			if (polls > 1)
				break;
		}
		assert_in_range(polls, 2, 10);
	}
	end_whole(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_whole_whatever_the_pieces),
		cmocka_unit_test(what_came_before_the_end_is_received),
		cmocka_unit_test(other_errors_are_the_callers),
		cmocka_unit_test(address_by_default),
		cmocka_unit_test(posted_requests_go_together),
		cmocka_unit_test(credit_that_was_stuck),
		cmocka_unit_test(credit_that_found_no_room),
		cmocka_unit_test(woken_for_nothing),
	};

	return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
