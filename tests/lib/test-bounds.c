// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The limits of a handle: the window, the credit, the pauses between two
 * attempts to connect. The server counts, to the end of its connection; time is
 * skipped instead of waited for.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "support-reconnect.h"

#define MS		1000000ULL
#define SECOND		(1000 * MS)

/* ------------------------------------------------------------------------
 * These replace the C library's. A timer is recorded and due at once; the clock
 * advances by as much.
 */

#define PAUSES	64

static _Atomic uint64_t skipped_ns;
static uint64_t pauses[PAUSES];
static int nr_pauses;
static bool skipping;
/* Let the next look at the clock be at the last nanosecond of a second. */
static _Atomic bool align;
static sem_t aligned;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns;

	if (syscall(SYS_clock_gettime, clock, ts))
		return -1;
	if (clock == CLOCK_MONOTONIC) {
		ns = ts->tv_sec * SECOND + ts->tv_nsec + skipped_ns;
		if (align) {
			skipped_ns += SECOND - 1 - ns % SECOND;
			ns += SECOND - 1 - ns % SECOND;
			align = false;
			sem_post(&aligned);
		}
		ts->tv_sec = ns / SECOND;
		ts->tv_nsec = ns % SECOND;
	}
	return 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *at,
		    struct itimerspec *before)
{
	uint64_t ns = at->it_value.tv_sec * SECOND + at->it_value.tv_nsec;
	struct itimerspec soon = { .it_value.tv_nsec = ns ? 1 : 0 };

	if (ns && skipping) {
		assert_true(nr_pauses < PAUSES);
		/* From now: nothing here counts from the start of the machine. */
		assert_int_equal(flags, 0);
		pauses[nr_pauses++] = ns;
		skipped_ns += ns;
		at = &soon;
	}
	return syscall(SYS_timerfd_settime, fd, flags, at, before);
}

/* The client waits for the server, and there was nothing to receive. */
static _Atomic bool waiting;

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	if (!(flags & MSG_DONTWAIT)) {
		waiting = true;
		poll(&pfd, 1, -1);
		waiting = false;
	}
	return syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
}

/* ------------------------------------------------------------------------
 * The window
 */

#define WINDOW	7

static uint32_t answered, received;

/* Returns whether the client has received everything and waits for more. In
 * this order: it does not wait before it receives.
 */
static bool client_waits(int fd)
{
	int unread;

	return !ioctl(fd, SIOCOUTQ, &unread) && !unread && waiting;
}

/* Answers the first requests, and counts all, until the client has gone or
 * waits. All its requests have arrived by then.
 */
static void count_requests(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct expiry_record record;
	bool last;

	greet(fd, WINDOW);
	received = 0;
	for (;;) {
		last = client_waits(fd);
		if (poll(&pfd, 1, last ? 0 : 1) > 0) {
			if (!get(fd, &record, 1))
				return;
			if (received++ < answered)
				put(fd, &record, 1);
		} else if (last) {
			return;
		}
	}
}

/* Sends @sync requests behind @posted ones; @answers of these are answered.
 * Returns how many are sent.
 */
static uint32_t sent(uint32_t window, uint32_t posted, uint32_t sync,
		     uint32_t answers)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.window = window,
	};
	struct expiry_record records[100];
	struct expiry_info info;
	struct fake server;
	struct expiry *h;
	int ret;

	answered = answers;
	fill_arm(records, 100);
	fake_start(&server, count_requests);
	assert_int_equal(expiry_open(&h, server.address, &options), 0);
	expiry_info(h, &info, sizeof(info));
	assert_int_equal(info.window, window && window < WINDOW ? window : WINDOW);
	if (posted) {
		ret = expiry_post(h, records, posted);
		assert_int_equal(ret, posted < info.window ? posted : info.window);
		assert_int_equal(expiry_flush(h), 0);
	}
	if (sync) {
		ret = expiry_submit(h, records, sync);
		assert_int_equal(ret, answers > posted ? (int)(answers - posted) :
				      -ECONNRESET);
	}
	expiry_close(h);
	fake_wait(&server);
	fake_stop(&server);
	return received;
}

/* Nothing is sent above it, whatever was posted and answered before. */
static void window_is_kept_to_the_record(void **state)
{
	uint32_t window, posted, answers;

	(void)state;
	for (window = 0; window <= WINDOW + 1; window += 4) {
		uint32_t most = window && window < WINDOW ? window : WINDOW;

		assert_int_equal(sent(window, 100, 0, 0), most);
		for (posted = 0; posted <= most; posted += 2)
			for (answers = 0; answers <= 6; answers += 6)
				assert_int_equal(sent(window, posted, 50,
						      answers),
						 most + answers);
	}
}

/* Replies that the program has not taken count. */
static void replies_not_taken_fill_the_window(void **state)
{
	struct expiry_record records[WINDOW], asked;
	struct fake server;
	struct expiry *h;

	(void)state;
	answered = 100;
	h = fake_open(&server, count_requests, 0, 0);
	fill_arm(records, WINDOW);
	fill_arm(&asked, 1);
	assert_int_equal(expiry_post(h, records, WINDOW - 2), WINDOW - 2);
	/* Its reply comes behind theirs, which the handle keeps. */
	assert_int_equal(expiry_submit(h, &asked, 1), 1);
	assert_int_equal(expiry_pending(h), WINDOW - 2);
	assert_int_equal(expiry_post(h, records, WINDOW), 2);
	take(h, records, 3);
	assert_int_equal(expiry_post(h, records, WINDOW), 3);
	fake_end(&server, h);
}

/* ------------------------------------------------------------------------
 * Credit
 */

#define CREDIT	8

static uint32_t given, to_expire;

/* Counts the credit; expires some before the first request is answered. */
static void count_credit(int fd)
{
	struct expiry_record record;
	uint32_t i, expired = 0;

	greet(fd, 100);
	given = 0;
	while (get(fd, &record, 1)) {
		if (record.op == EXPIRY_OP_CREDIT) {
			given += record.period_ms;
			continue;
		}
		for (i = expired; i < to_expire && i < given; i++)
			put_event(fd, EXPIRY_OP_EXPIRED, i);
		expired = i;
		put(fd, &record, 1);
	}
}

/* Takes @taken of @expire expirations; returns the credit given for that. */
static uint32_t credit_given(uint32_t flags, uint32_t credit, uint32_t expire,
			     uint32_t taken)
{
	struct expiry_record record = { .op = EXPIRY_OP_QUERY, .id = 1 };
	struct expiry_info info;
	struct fake server;
	struct expiry *h;
	uint32_t i;

	to_expire = expire;
	h = fake_open(&server, count_credit, EXPIRY_OPEN_CONSUME | flags, credit);
	if (flags & EXPIRY_OPEN_MANUAL)
		assert_int_equal(expiry_credit(h, expire), 0);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	for (i = 0; i < taken; i++) {
		take(h, &record, 1);
		assert_int_equal(record.cookie, i);
	}
	/* Whatever of it is used up. */
	expiry_info(h, &info, sizeof(info));
	assert_int_equal(info.credit, credit ? credit : EXPIRY_CREDIT_DEFAULT);
	expiry_close(h);
	fake_wait(&server);
	fake_stop(&server);
	return given;
}

/* Half of it is used before there is more; held expirations count as used. */
static void credit_is_never_above_the_option(void **state)
{
	uint32_t taken;

	(void)state;
	for (taken = 0; taken <= CREDIT; taken++)
		assert_int_equal(credit_given(0, CREDIT, CREDIT, taken),
				 CREDIT + taken / (CREDIT / 2) * (CREDIT / 2));
	assert_int_equal(credit_given(0, 0, 0, 0), EXPIRY_CREDIT_DEFAULT);
	assert_int_equal(credit_given(EXPIRY_OPEN_MANUAL, CREDIT, 3, 3), 3);
	assert_int_equal(credit_given(EXPIRY_OPEN_MANUAL, CREDIT, 0, 0), 0);
}

static void credit_by_hand_counts_what_is_held(void **state)
{
	struct expiry_record record = { .op = EXPIRY_OP_QUERY, .id = 1 };
	struct fake server;
	struct expiry *h;

	(void)state;
	to_expire = 5;
	h = fake_open(&server, count_credit,
		      EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_MANUAL, CREDIT);
	assert_int_equal(expiry_credit(h, 5), 0);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(expiry_pending(h), 5);
	assert_int_equal(expiry_credit(h, 4), -ENOBUFS);
	take(h, &record, 1);
	assert_int_equal(expiry_credit(h, 5), -ENOBUFS);
	assert_int_equal(expiry_credit(h, 4), 0);
	assert_int_equal(expiry_credit(h, 1), -ENOBUFS);
	fake_end(&server, h);
	assert_int_equal(given, 9);
}

/* ------------------------------------------------------------------------
 * Reconnecting
 */

static void start_skipping(void)
{
	nr_pauses = 0;
	skipping = true;
}

/* Calls expiry_next() as a loop does, until there were that many pauses. */
static void pause_times(struct expiry *h, int nr)
{
	struct expiry_record record;

	while (nr_pauses < nr) {
		assert_int_equal(expiry_next(h, &record, 1), 0);
		assert_true(expiry_wait(h, WAIT_MS) >= 0);
	}
}

/* At once, then after 10 ms, twice as long each time, and never above a second
 * (docs/decisions/0009-reconnect.md).
 */
static void expect_pauses(int nr)
{
	uint64_t ns = 10 * MS;
	int i;

	assert_true(pauses[0] <= MS);
	for (i = 1; i < nr; i++) {
		assert_int_equal(pauses[i], ns);
		ns = ns < SECOND / 2 ? 2 * ns : SECOND;
	}
}

/* Returns a handle whose server has gone, after a number of pauses. */
static struct expiry *alone_for(struct fake *server, unsigned int nr)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up };
	struct expiry *h = reconnect_open(server, scripts, KEYED, 0);

	fake_halt(server);
	start_skipping();
	pause_times(h, nr);
	return h;
}

static void pauses_end_at_a_second(void **state)
{
	struct fake server;
	struct expiry *h;

	(void)state;
	h = alone_for(&server, 40);
	expect_pauses(40);
	reconnect_end(&server, h);
	skipping = false;
}

static void echo_one(int fd)
{
	struct expiry_record record;

	greet_again(fd);
	if (get(fd, &record, 1))
		put(fd, &record, 1);
}

static void pauses_begin_anew_after_an_answer(void **state)
{
	fake_script *const later[] = { echo_one, NULL };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct fake server;
	struct expiry *h;

	(void)state;
	h = alone_for(&server, 20);
	fake_resume(&server, later);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	fake_wait(&server);
	fake_halt(&server);
	start_skipping();
	pause_times(h, 12);
	expect_pauses(12);
	reconnect_end(&server, h);
	skipping = false;
}

static _Atomic int attempts;
static uint64_t attempt_ns[PAUSES];

static void note_attempt(int fd)
{
	struct expiry_record hello;

	if (attempts < PAUSES)
		attempt_ns[attempts] = skipped_ns;
	attempts++;
	get(fd, &hello, 1);
}

/* A server that hangs up at once is asked as often as one that is not there. */
static void attempts_are_at_most_two_seconds_apart(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, note_attempt };
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	attempts = 0;
	h = reconnect_open(&server, scripts, KEYED, 0);
	server.repeat = true;
	start_skipping();
	pause_times(h, 30);
	/* The server may not know the last attempt yet, or one more is in flight. */
	assert_in_range(attempts, 28, nr_pauses + 1);
	for (i = 1; i < 28; i++)
		assert_in_range(attempt_ns[i] - attempt_ns[i - 1], i > 1,
				2 * SECOND);
	assert_in_range(attempt_ns[27] - attempt_ns[0], 18 * SECOND,
			30 * SECOND);
	reconnect_end(&server, h);
	skipping = false;
}

static void refuse_and_note(int fd)
{
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return;
	attempts++;
	hello.status = -EBUSY;
	put(fd, &hello, 1);
}

/* Five seconds, and the pause in which they end. */
static void refusals_are_believed_after_five_seconds(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, refuse_and_note };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct fake server;
	uint64_t begun_ns;
	struct expiry *h;

	(void)state;
	attempts = 0;
	h = reconnect_open(&server, scripts, ACKING, 0);
	server.repeat = true;
	begun_ns = skipped_ns;
	start_skipping();
	assert_int_equal(expiry_submit(h, &record, 1), -EBUSY);
	/* Real time goes on, too: with 0, 10, ... 640, 1000 ms between them, a
	 * slow machine needs fewer.
	 */
	assert_in_range(attempts, 5, 13);
	assert_true(skipped_ns - begun_ns <= 7 * SECOND);
	reconnect_end(&server, h);
	skipping = false;
}

/* ------------------------------------------------------------------------
 * Time limits
 */

static void silent(int fd)
{
	greet(fd, 100);
	drain(fd);
}

static void socket_has_the_time_limit(void **state)
{
	struct expiry_options options = {
		.size = sizeof(options),
		.timeout_ms = 12345,
	};
	static const int limits[] = { SO_RCVTIMEO, SO_SNDTIMEO };
	socklen_t size = sizeof(struct timeval);
	struct timeval tv;
	struct fake server;
	struct expiry *h;
	int i;

	(void)state;
	fake_start(&server, silent);
	assert_int_equal(expiry_open(&h, server.address, &options), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(getsockopt(expiry_fd(h), SOL_SOCKET, limits[i],
					    &tv, &size), 0);
		assert_int_equal(tv.tv_sec, 12);
		/* The kernel counts in ticks, of 10 ms at most. */
		assert_in_range(tv.tv_usec, 345000, 355000);
	}
	fake_end(&server, h);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

/* Milliseconds: a limit in another unit would be at least 50 times as long, or
 * over at once.
 */
static void waits_are_in_milliseconds(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct fake server;
	uint64_t begun_ns;
	struct expiry *h;

	(void)state;
	h = fake_open(&server, silent, EXPIRY_OPEN_CONSUME, 4);
	begun_ns = now_ns();
	assert_int_equal(expiry_receive(h, &record, 1, 200), 0);
	assert_in_range(now_ns() - begun_ns, 200 * MS, 10 * SECOND);
	begun_ns = now_ns();
	assert_int_equal(expiry_wait(h, 200), 0);
	assert_in_range(now_ns() - begun_ns, 200 * MS, 10 * SECOND);
	assert_int_equal(expiry_receive(h, &record, 1, 0), 0);
	assert_int_equal(expiry_wait(h, 0), 0);
	fake_end(&server, h);

	/* The same without a server. */
	h = reconnect_open(&server, scripts, ACKING, 200);
	fake_halt(&server);
	begun_ns = now_ns();
	assert_int_equal(expiry_submit(h, &record, 1), -ETIMEDOUT);
	assert_in_range(now_ns() - begun_ns, 200 * MS, 10 * SECOND);
	begun_ns = now_ns();
	assert_int_equal(expiry_receive(h, &record, 1, 300), 0);
	assert_in_range(now_ns() - begun_ns, 300 * MS, 10 * SECOND);
	reconnect_end(&server, h);
}

static void half_a_record(int fd)
{
	struct expiry_record record = { .op = EXPIRY_OP_EXPIRED };

	greet(fd, 100);
	sem_wait(&aligned);
	put_bytes(fd, &record, RECORD / 2);
	drain(fd);
}

/* Nor is a wait over early that began at the end of a millisecond, and of a
 * second, and was interrupted in the next one.
 */
static void waits_are_whole_milliseconds(void **state)
{
	struct timespec begun, ended;
	struct expiry_record record;
	struct fake server;
	int64_t elapsed_ns;
	struct expiry *h;
	int i;

	(void)state;
	sem_init(&aligned, 0, 0);
	for (i = 0; i < 5; i++) {
		h = fake_open(&server, half_a_record, EXPIRY_OPEN_CONSUME, 4);
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begun);
		align = true;
		assert_int_equal(expiry_receive(h, &record, 1, 50), 0);
		assert_false(align);
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ended);
		elapsed_ns = (ended.tv_sec - begun.tv_sec) * (int64_t)SECOND +
			     ended.tv_nsec - begun.tv_nsec;
		assert_true(elapsed_ns >= (int64_t)(50 * MS));
		fake_end(&server, h);
	}
	sem_destroy(&aligned);
}

/* Nanoseconds of the queue's own clock. */
static void now_is_the_clocks(void **state)
{
	static const uint32_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME
	};
	struct expiry_options options = { .size = sizeof(options) };
	struct timespec before, after;
	struct fake server;
	struct expiry *h;
	uint64_t now;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		options.clock_id = clocks[i];
		fake_start(&server, silent);
		assert_int_equal(expiry_open(&h, server.address, &options), 0);
		clock_gettime(clocks[i], &before);
		now = expiry_now(h);
		clock_gettime(clocks[i], &after);
		assert_in_range(now, before.tv_sec * SECOND + before.tv_nsec,
				after.tv_sec * SECOND + after.tv_nsec);
		fake_end(&server, h);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_is_kept_to_the_record),
		cmocka_unit_test(replies_not_taken_fill_the_window),
		cmocka_unit_test(credit_is_never_above_the_option),
		cmocka_unit_test(credit_by_hand_counts_what_is_held),
		cmocka_unit_test(pauses_end_at_a_second),
		cmocka_unit_test(pauses_begin_anew_after_an_answer),
		cmocka_unit_test(attempts_are_at_most_two_seconds_apart),
		cmocka_unit_test(refusals_are_believed_after_five_seconds),
		cmocka_unit_test(socket_has_the_time_limit),
		cmocka_unit_test(waits_are_in_milliseconds),
		cmocka_unit_test(waits_are_whole_milliseconds),
		cmocka_unit_test(now_is_the_clocks),
	};

	return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
