// SPDX-License-Identifier: LGPL-2.1-or-later
/* How long calls wait, and expiry_wait()'s result for each reason to end. */
#include <errno.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <time.h>

#include "support-reconnect.h"

#define POSTED	1000

static sem_t may_read, has_read, may_go;

/* Reads nothing until allowed, then everything, then exits. */
static void read_when_told(int fd)
{
	static char bytes[1 << 16];

	greet(fd, EXPIRY_WINDOW_MAX);
	sem_wait(&may_read);
	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	sem_post(&has_read);
	sem_wait(&may_go);
}

/* Until the socket takes no more. */
static void post_all(struct expiry *h)
{
	static struct expiry_record records[POSTED];
	int nr;

	fill_arm(records, POSTED);
	do {
		nr = expiry_post(h, records, POSTED);
		assert_true(nr >= 0);
	} while (nr);
}

static void room_and_an_end_are_one_event_each(void **state)
{
	struct expiry_record record;
	struct fake server;
	struct expiry *h;

	(void)state;
	sem_init(&may_read, 0, 0);
	sem_init(&has_read, 0, 0);
	sem_init(&may_go, 0, 0);
	h = fake_open(&server, read_when_told, 0, 0);
	post_all(h);
	/* It is full: nothing to take, nothing to do. */
	assert_int_equal(expiry_wait(h, 0), 0);
	sem_post(&may_read);
	sem_wait(&has_read);
	assert_int_equal(expiry_wait(h, WAIT_MS), 1);
	/* One event: the next wait waits. */
	while (expiry_flush(h))
		;
	assert_int_equal(expiry_wait(h, 0), 0);
	/* The other side closes while bytes are still to be sent. */
	post_all(h);
	sem_post(&may_go);
	fake_wait(&server);
	assert_int_equal(expiry_wait(h, WAIT_MS), 1);
	assert_int_equal(expiry_wait(h, WAIT_MS), 1);
	assert_true(expiry_next(h, &record, 1) < 0);
	fake_end(&server, h);
}

static sem_t asked, may_answer, answered;

/* Sends a copy with the handshake's last reply: one read brings both. */
static void greet_with_a_copy(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, MSG_PEEK) != 1)
		return;
	sem_post(&asked);
	sem_wait(&may_answer);
	greet_again(fd);
	put_event(fd, EXPIRY_OP_EXPIRED, 7);
	sem_post(&answered);
	drain(fd);
}

/* The wait's own flush ends the handshake, and reads the copy. */
static void a_copy_with_the_handshake_ends_the_wait(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, greet_with_a_copy };
	struct expiry_record record;
	struct fake server;
	struct expiry *h;

	(void)state;
	sem_init(&asked, 0, 0);
	sem_init(&may_answer, 0, 0);
	sem_init(&answered, 0, 0);
	h = reconnect_open(&server, scripts, EXPIRY_OPEN_OBSERVE, 0);
	while (sem_trywait(&asked))
		assert_int_equal(expiry_receive(h, &record, 1, 1), 0);
	sem_post(&may_answer);
	sem_wait(&answered);
	assert_int_equal(expiry_wait(h, WAIT_MS), 1);
	assert_int_equal(expiry_next(h, &record, 1), 1);
	assert_int_equal(record.cookie, 7);
	reconnect_end(&server, h);
}

static void greet_and_drain(int fd)
{
	greet(fd, 1000);
	drain(fd);
}

static struct timespec now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts;
}

/* 200 ms are 200, in every part of a second; a busy machine makes some longer, not all
 * of them. Those that go beyond a second's end are left out.
 */
static void receive_waits_as_long_as_it_is_told(void **state)
{
	struct timespec begin, end;
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	long ns, least = 1000000000;
	int tries = 0;

	(void)state;
	h = fake_open(&server, greet_and_drain, EXPIRY_OPEN_CONSUME, 8);
	while (tries < 4 || (least > 300000000 && tries < 40)) {
		begin = now();
		assert_int_equal(expiry_receive(h, &record, 1, 200), 0);
		end = now();
		ns = (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec -
		     begin.tv_nsec;
		assert_true(ns >= 200000000);
		if (begin.tv_sec != end.tv_sec)
			continue;
		tries++;
		if (ns < least)
			least = ns;
	}
	assert_in_range(least, 200000000, 300000000);
	fake_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_and_an_end_are_one_event_each),
		cmocka_unit_test(a_copy_with_the_handshake_ends_the_wait),
		cmocka_unit_test(receive_waits_as_long_as_it_is_told),
	};

	return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}
