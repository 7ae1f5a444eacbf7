// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT with servers that are gone, refuse, are silent or have
 * another queue.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>

#include "support-reconnect.h"

/* Until there is another connection, or the handle is broken. */
static void wait_for_another(struct expiry *h)
{
	struct expiry_record record;

	while (!reconnect_count(h) && !expiry_next(h, &record, 1))
		assert_true(expiry_wait(h, 10) >= 0);
}

static void say_nothing(int fd)
{
	greet(fd, 1000);
	drain(fd);
}

static void options(void **state)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_RECONNECT,
	};
	struct expiry *h = NULL;

	(void)state;
	assert_int_equal(expiry_open(&h, "unix:/nonexistent/s", &options),
			 -EINVAL);
	options.queue = "";
	assert_int_equal(expiry_open(&h, "unix:/nonexistent/s", &options),
			 -EINVAL);
	options.queue = "q";
	options.flags |= EXPIRY_OPEN_CONSUME;
	assert_int_equal(expiry_open(&h, "unix:/nonexistent/s", &options),
			 -EINVAL);
	options.flags |= EXPIRY_OPEN_ACK;
	assert_int_equal(expiry_open(&h, "unix:/nonexistent/s", &options),
			 -ENOENT);
	assert_int_equal(expiry_open(&h, "device:/dev/null", &options),
			 -EOPNOTSUPP);
	assert_null(h);
}

static unsigned int nr_refused;

static void refuse(int fd)
{
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return;
	nr_refused++;
	hello.status = -EBUSY;
	put(fd, &hello, 1);
}

static void refused_for_a_while(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = {
		hang_up, refuse, refuse, echo_again
	};
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, ACKING, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(reconnect_count(h), 1);
	reconnect_end(&server, h);
}

/* A client that has taken the consumer's place stays: after five seconds of
 * refusals the handle fails. The twelfth attempt comes after 5.27 s; a slow
 * machine makes fewer.
 */
static void refused_for_good(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, refuse };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct fake server;
	struct expiry *h;
	uint64_t before;

	(void)state;
	h = reconnect_open(&server, scripts, ACKING, WAIT_MS);
	server.repeat = true;
	nr_refused = 0;
	before = expiry_now(h);
	assert_int_equal(expiry_submit(h, &record, 1), -EBUSY);
	assert_true(expiry_now(h) - before >= 5000000000);
	assert_in_range(nr_refused, 2, 12);
	/* From now on every call says so, and none waits. */
	assert_int_equal(expiry_receive(h, &record, 1, 0), -EBUSY);
	assert_int_equal(expiry_wait(h, -1), 1);
	assert_int_equal(expiry_wait(h, 0), 1);
	assert_int_equal(expiry_next(h, &record, 1), -EBUSY);
	reconnect_end(&server, h);
}

/* A daemon that has just begun is younger than the lost connection: by a step of
 * the clock, which may be coarse.
 */
static void lost_embedded(int fd)
{
	struct timespec before, now;

	clock_gettime(CLOCK_BOOTTIME, &before);
	do
		clock_gettime(CLOCK_BOOTTIME, &now);
	while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
	greet_queue(fd, EXPIRY_ENGINE_EMBEDDED, 0, 1000);
	drain(fd);
}

static void same_embedded(int fd)
{
	greet_queue(fd, EXPIRY_ENGINE_EMBEDDED, 24 * HOUR, 1000);
	drain(fd);
}

/* greet() tells of 5 timers; some may be periodic, and count twice. */
static void lost_kernel(int fd)
{
	greet_queue(fd, EXPIRY_ENGINE_KERNEL, 0, 1);
	drain(fd);
}

static void same_kernel(int fd)
{
	greet_queue(fd, EXPIRY_ENGINE_KERNEL, 0, 2);
	drain(fd);
}

static void queue_is_lost_or_not(void **state)
{
	static const struct {
		fake_script *script;
		int error;
	} cases[] = {
		{ lost_embedded, -ESTALE },
		{ same_embedded, 0 },
		{ lost_kernel, -ESTALE },
		{ same_kernel, 0 },
	};
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		fake_script *const scripts[FAKE_SCRIPTS] = {
			hang_up, cases[i].script
		};

		h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
		wait_for_another(h);
		assert_int_equal(expiry_next(h, &record, 1), cases[i].error);
		assert_int_equal(expiry_post(h, &record, 0), cases[i].error);
		reconnect_end(&server, h);
	}
}

/* The queue was dropped during the pause: HELLO still does not make it. */
static void no_such_queue(int fd)
{
	union {
		struct expiry_hello hello;
		struct expiry_record record;
	} u;

	if (!get(fd, &u.record, 1))
		return;
	script_expect(u.hello.flags ==
		      (EXPIRY_HELLO_EXISTING | EXPIRY_HELLO_KEYED),
		      "HELLO is not as it was");
	u.record = (struct expiry_record) {
		.op = EXPIRY_OP_HELLO,
		.flags = u.hello.flags,
		.status = -ENOENT,
	};
	put(fd, &u.record, 1);
	drain(fd);
}

static void dropped_queue_is_not_made_again(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, no_such_queue };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED | EXPIRY_OPEN_EXISTING,
			 WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), -ESTALE);
	assert_int_equal(expiry_next(h, &record, 1), -ESTALE);
	reconnect_end(&server, h);
}

static void arm_and_go(int fd)
{
	struct expiry_record record;

	greet(fd, 1000);
	if (get(fd, &record, 1))
		put(fd, &record, 1);
}

/* Timers armed here count, too. */
static void armed_timers_are_missed(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { arm_and_go, same_kernel };
	struct expiry_record record = reconnect_request(EXPIRY_OP_ARM, 1);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(expiry_submit(h, &record, 1), -ESTALE);
	reconnect_end(&server, h);

	/* Nor is a single one that was posted. */
	record = reconnect_request(EXPIRY_OP_ARM, 1);
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_post(h, &record, 1), 1);
	take(h, &record, 1);
	assert_int_equal(expiry_submit(h, &record, 1), -ESTALE);
	reconnect_end(&server, h);
}

static sem_t go;

/* Once it may go, so may those after it. */
static void wait_for_go(int fd)
{
	sem_wait(&go);
	sem_post(&go);
	echo_again(fd);
}

/* A call gives up; the handle does not. */
static void silent_server(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { say_nothing, wait_for_go };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct fake server;
	struct expiry *h;
	int i, ret;

	(void)state;
	sem_init(&go, 0, 0);
	h = reconnect_open(&server, scripts, KEYED, 200);
	server.repeat = true;
	for (i = 0; i < 3; i++)
		assert_int_equal(expiry_submit(h, &record, 1), -ETIMEDOUT);
	assert_int_equal(expiry_next(h, &record, 1), 0);
	sem_post(&go);
	wait_for_another(h);
	/* The machine may stand still for longer than the limit, too. The call that gives
	 * up then ends its connection, and the next one is served likewise.
	 */
	for (i = 0; i < TRIES; i++) {
		ret = expiry_submit(h, &record, 1);
		if (ret != -ETIMEDOUT)
			break;
	}
	assert_int_equal(ret, 1);
	reconnect_end(&server, h);
	sem_destroy(&go);
}

static void answer_nonsense(int fd)
{
	struct expiry_record record = { .op = EXPIRY_OP_ARM };

	greet(fd, 1000);
	put(fd, &record, 1);
	drain(fd);
}

static void nonsense_breaks(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { answer_nonsense };
	struct fake server;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(next_error(h), -EPROTO);
	assert_int_equal(reconnect_count(h), 0);
	reconnect_end(&server, h);
}

/* First without a server, then with one. */
static void calls_that_do_not_wait(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up };
	fake_script *const later[] = { echo_again, NULL };
	struct expiry_record records[1001], record;
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, 0);
	fake_halt(&server);
	for (i = 0; i < 1001; i++)
		records[i] = reconnect_request(EXPIRY_OP_ARM, i);
	/* The window limits the number. */
	assert_int_equal(expiry_post(h, records, 1001), 1000);
	assert_int_equal(expiry_post(h, records, 1), 0);
	assert_int_equal(expiry_flush(h), 1);
	assert_int_equal(expiry_next(h, &record, 1), 0);
	assert_int_equal(expiry_pending(h), 0);
	assert_int_equal(expiry_events(h), POLLIN);
	fake_resume(&server, later);
	for (i = 0; i < 1000; i++) {
		take(h, &record, 1);
		assert_int_equal(record.cookie, i);
	}
	reconnect_end(&server, h);
}

#define LATE	30000

static void answer_late(int fd)
{
	struct expiry_record *records = malloc(LATE * RECORD);

	greet(fd, EXPIRY_WINDOW_MAX);
	/* Nothing is said before all of it is there. */
	if (get(fd, records, LATE))
		put(fd, records, LATE);
	free(records);
	drain(fd);
}

/* More than the socket holds: the descriptor tells of room, too. */
static void full_socket(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { answer_late };
	struct expiry_record *records = malloc(LATE * RECORD), got[100];
	struct pollfd pfd;
	struct fake server;
	struct expiry *h;
	int i, nr, taken = 0;

	(void)state;
	assert_non_null(records);
	h = reconnect_open(&server, scripts, KEYED, 0);
	fill_arm(records, LATE);
	assert_int_equal(expiry_post(h, records, LATE), LATE);
	while (taken < LATE) {
		nr = expiry_next(h, got, 1 + taken % 100);
		assert_true(nr >= 0);
		for (i = 0; i < nr; i++)
			assert_int_equal(got[i].cookie, taken++);
		if (nr || taken == LATE)
			continue;
		pfd.fd = expiry_fd(h);
		pfd.events = expiry_events(h);
		assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
	}
	free(records);
	reconnect_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options),
		cmocka_unit_test(refused_for_a_while),
		cmocka_unit_test(refused_for_good),
		cmocka_unit_test(queue_is_lost_or_not),
		cmocka_unit_test(dropped_queue_is_not_made_again),
		cmocka_unit_test(armed_timers_are_missed),
		cmocka_unit_test(silent_server),
		cmocka_unit_test(nonsense_breaks),
		cmocka_unit_test(calls_that_do_not_wait),
		cmocka_unit_test(full_socket),
	};

	return cmocka_run_group_tests_name("reconnect-server", tests, NULL, NULL);
}
