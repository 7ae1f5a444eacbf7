// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The option restore: timers that the program yields for a queue that is empty or
 * lost, on servers that refuse them, are silent, break off or lie.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "support-reconnect.h"

#define TIMERS	1300	/* three batches */

/* How long the program waits for a processor whenever it asks for the time. */
static long stalled_ns;

/* The library's calls come here. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	const struct timespec stall = { .tv_nsec = stalled_ns };

	if (stalled_ns)
		nanosleep(&stall, NULL);
	return syscall(SYS_clock_gettime, clock, now);
}

/* The program: what its function yields, and how it ends. */
static struct {
	uint32_t nr;
	uint32_t calls;
	int error;
	uint32_t error_at;
} truth;

static int yield(void *arg, uint64_t *cursor, struct expiry_record *timers,
		 uint32_t max)
{
	uint32_t nr = 0;

	assert_ptr_equal(arg, &truth);
	truth.calls += !*cursor;
	for (; nr < max && *cursor < truth.nr; nr++) {
		if (truth.error && *cursor == truth.error_at)
			return truth.error;
		/* The function need not clear what it is given. */
		memset(&timers[nr], 0xff, sizeof(*timers));
		timers[nr].id = ++*cursor;
		timers[nr].deadline_ns = HOUR + *cursor;
		timers[nr].cookie = 2 * *cursor;
		timers[nr].period_ms = *cursor % 2;
	}
	return nr;
}

static int yield_too_many(void *arg, uint64_t *cursor,
			  struct expiry_record *timers, uint32_t max)
{
	(void)arg;
	(void)cursor;
	(void)timers;
	return max + 1;
}

/* The server: its queue, and what it does next. Its thread uses it while it runs. */
static struct {
	bool armed[TIMERS + 1];
	uint32_t nr_armed;
	uint32_t refuse_at;	/* the timer that is refused, by this status */
	int refusal;
	uint32_t refuse_count;
	uint32_t lie_at;
	uint32_t cut_at;
	uint32_t window;
	uint64_t arms;
	uint64_t seed;
	bool wild;
	const char *wrong;
	sem_t silent;
} server_state;

static void expect(bool is_true, const char *what)
{
	if (!is_true && !server_state.wrong)
		server_state.wrong = what;
}

static uint32_t choose(uint32_t nr)
{
	server_state.seed = server_state.seed * 6364136223846793005 +
			    1442695040888963407;
	return (server_state.seed >> 33) % nr;
}

/* Another client clears the queue. */
static void clear(void)
{
	memset(server_state.armed, 0, sizeof(server_state.armed));
	server_state.nr_armed = 0;
}

static void lose(void)
{
	clear();
	server_state.arms = 0;
}

/* Loses the queue in one of the ways that a client may find. */
static void lose_somehow(void)
{
	switch (choose(3)) {
	case 0:
		lose();
		break;
	case 1:
		clear();
		break;
	case 2:		/* another client was faster, and has armed a timer */
		lose();
		server_state.armed[1] = true;
		server_state.nr_armed = 1;
		server_state.arms = 1;
		break;
	}
}

/* Answers HELLO, and STAT if that follows: false if the client went. */
static bool greet_truly(int fd, bool again)
{
	struct stat_reply reply = {
		.head.op = EXPIRY_OP_STAT,
		.head.period_ms = (sizeof(reply) - RECORD) / RECORD,
		.server.engine = EXPIRY_ENGINE_KERNEL,
		.queue.arms = server_state.arms,
	};
	struct expiry_record hello;

	if (!get(fd, &hello, 1))
		return false;
	hello = (struct expiry_record){
		.op = EXPIRY_OP_HELLO,
		.id = server_state.nr_armed,
		.cookie = server_state.window,
	};
	put(fd, &hello, 1);
	if (again) {
		if (!get(fd, &hello, 1))
			return false;
		put_bytes(fd, &reply, sizeof(reply));
	}
	return true;
}

/* Arms a timer of the program's. */
static void arm(struct expiry_record *record)
{
	const uint64_t id = record->id;

	expect(id && id <= TIMERS && record->cookie == 2 * id &&
	       record->deadline_ns == HOUR + id && record->period_ms == id % 2 &&
	       !record->flags && !record->status, "the timer is another one");
	if (id == server_state.refuse_at && server_state.refuse_count) {
		server_state.refuse_count--;
		record->status = server_state.refusal;
	} else if (server_state.wild && !choose(40)) {
		record->status = -EBUSY;
	} else {
		server_state.nr_armed += !server_state.armed[id];
		server_state.armed[id] = true;
		server_state.arms++;
	}
	if (id == server_state.lie_at)
		record->id++;
}

/* Takes requests until the connection is to end. */
static void take_requests(int fd)
{
	struct expiry_record record;
	uint32_t nr = 0, cut_at = server_state.cut_at;

	if (server_state.wild && choose(3))
		cut_at = 1 + choose(choose(2) ? 3 * TIMERS : 60);
	while (get(fd, &record, 1)) {
		if (record.op != EXPIRY_OP_ARM)
			expect(server_state.nr_armed == truth.nr,
			       "another request came before all timers");
		else
			arm(&record);
		if (++nr == cut_at)
			break;
		if (record.op != EXPIRY_OP_CREDIT)
			put(fd, &record, 1);
	}
	server_state.cut_at = 0;
	if (server_state.wild && !choose(4))
		lose_somehow();
}

static void first(int fd)
{
	if (greet_truly(fd, false))
		take_requests(fd);
}

static void again(int fd)
{
	if (greet_truly(fd, true))
		take_requests(fd);
}

/* Ends the connection when all timers are armed, and loses the queue. */
static void first_lost(int fd)
{
	server_state.cut_at = TIMERS + 1;
	first(fd);
	lose();
}

static void again_silent(int fd)
{
	if (!greet_truly(fd, true))
		return;
	sem_wait(&server_state.silent);
	take_requests(fd);
}

static struct fake server;

static int reset(void **state)
{
	(void)state;
	memset(&server_state, 0, sizeof(server_state));
	memset(&truth, 0, sizeof(truth));
	server_state.window = 1000;
	truth.nr = TIMERS;
	return 0;
}

static const struct expiry_options plain = {
	.size = sizeof(plain),
	.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK | EXPIRY_OPEN_KEYED,
	.queue = "q",
	.clock_id = CLOCK_MONOTONIC,
	.timeout_ms = WAIT_MS,
	.restore = yield,
	.restore_arg = &truth,
};

static int open_plain(struct expiry **h)
{
	*h = NULL;
	fake_start(&server, first);
	return expiry_open(h, server.address, &plain);
}

static int open_scripts(struct expiry **h, fake_script *const *scripts)
{
	struct expiry_options options = plain;

	options.flags |= EXPIRY_OPEN_RECONNECT;
	*h = NULL;
	fake_start(&server, scripts[0]);
	memcpy(server.scripts, scripts, FAKE_SCRIPTS * sizeof(*scripts));
	server.repeat = true;
	return expiry_open(h, server.address, &options);
}

static int open_reconnecting(struct expiry **h)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { first, again };

	return open_scripts(h, scripts);
}

static void end(struct expiry *h)
{
	fake_end(&server, h);
	if (server_state.wrong)
		fail_msg("%s", server_state.wrong);
}

static void fails(int (*open)(struct expiry **h), int error)
{
	struct expiry *h;

	assert_int_equal(open(&h), error);
	assert_null(h);
	end(NULL);
}

static void which_options(void **state)
{
	struct expiry_options options = plain;
	struct expiry *h = NULL;
	const char *nobody = "unix:/nonexistent/s";

	(void)state;
	assert_int_equal(expiry_open(&h, nobody, &options), -ENOENT);
	options.queue = NULL;
	assert_int_equal(expiry_open(&h, nobody, &options), -ENOENT);
	assert_int_equal(expiry_open(&h, "device:/dev/null", &options),
			 -EOPNOTSUPP);
	options.queue = "q";
	options.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK;
	assert_int_equal(expiry_open(&h, nobody, &options), -EINVAL);
	options.flags = EXPIRY_OPEN_KEYED | EXPIRY_OPEN_EXISTING;
	assert_int_equal(expiry_open(&h, nobody, &options), -EINVAL);
	options.flags = EXPIRY_OPEN_KEYED | EXPIRY_OPEN_OBSERVE;
	assert_int_equal(expiry_open(&h, nobody, &options), -EINVAL);
	assert_null(h);
}

static void an_empty_queue(void **state)
{
	struct expiry *h;

	(void)state;
	assert_int_equal(open_plain(&h), 0);
	assert_int_equal(expiry_query(h, 7, NULL), 0);
	assert_int_equal(truth.calls, 1);
	end(h);
	assert_int_equal(server_state.nr_armed, TIMERS);
	assert_int_equal(server_state.arms, TIMERS);
}

static void not_an_empty_queue(void **state)
{
	struct expiry *h;

	(void)state;
	server_state.nr_armed = 1;
	truth.nr = 1;
	assert_int_equal(open_plain(&h), 0);
	assert_int_equal(truth.calls, 0);
	end(h);
}

static void a_small_window(void **state)
{
	struct expiry *h;

	(void)state;
	server_state.window = 3;
	assert_int_equal(open_plain(&h), 0);
	end(h);
	assert_int_equal(server_state.nr_armed, TIMERS);
}

static void nothing_to_restore(void **state)
{
	struct expiry *h;

	(void)state;
	truth.nr = 0;
	assert_int_equal(open_plain(&h), 0);
	assert_int_equal(expiry_query(h, 7, NULL), 0);
	end(h);
	assert_int_equal(open_reconnecting(&h), 0);
	assert_int_equal(expiry_query(h, 7, NULL), 0);
	end(h);
	assert_int_equal(truth.calls, 2);
}

/* Has the server refuse three ARMs, from the @first on. */
static void refuse_three(uint32_t first)
{
	server_state.refuse_at = first;
	server_state.refusal = -EBUSY;
	server_state.refuse_count = 3;
}

static void a_busy_server(void **state)
{
	struct expiry *h;

	(void)state;
	refuse_three(600);
	assert_int_equal(open_plain(&h), 0);
	end(h);
	assert_int_equal(server_state.nr_armed, TIMERS);
	assert_int_equal(server_state.arms, TIMERS);
	reset(state);
	refuse_three(1);
	assert_int_equal(open_reconnecting(&h), 0);
	end(h);
	assert_int_equal(server_state.nr_armed, TIMERS);
}

/* The pause after a refusal, 10 ms, ends between two looks at the clock: the second
 * one must not take that for no pause, and wait for a reply.
 */
static void a_program_that_is_stalled(void **state)
{
	int (*const opens[])(struct expiry **h) = { open_plain, open_reconnecting };
	struct expiry *h;
	int i, ret;

	for (i = 0; i < 2; i++) {
		reset(state);
		truth.nr = 4;
		refuse_three(1);
		stalled_ns = 6000000;
		ret = opens[i](&h);
		stalled_ns = 0;
		assert_int_equal(ret, 0);
		end(h);
		assert_int_equal(server_state.nr_armed, 4);
	}
}

static void a_server_that_stays_busy(void **state)
{
	(void)state;
	server_state.refuse_at = TIMERS;
	server_state.refusal = -EBUSY;
	server_state.refuse_count = UINT32_MAX;
	fails(open_plain, -EBUSY);
	assert_int_equal(server_state.nr_armed, TIMERS - 1);
}

static void a_refusal(void **state)
{
	(void)state;
	server_state.refuse_at = 700;
	server_state.refusal = -EDQUOT;
	server_state.refuse_count = UINT32_MAX;
	fails(open_plain, -EDQUOT);
	lose();
	fails(open_reconnecting, -EDQUOT);
}

static void an_error_of_the_function(void **state)
{
	struct expiry_options options = plain;
	struct expiry *h = NULL;

	(void)state;
	/* Not that of a connection that another would replace. */
	truth.error = -ECONNRESET;
	truth.error_at = 800;
	fails(open_plain, -ECONNRESET);
	lose();
	fails(open_reconnecting, -ECONNRESET);
	assert_int_equal(truth.calls, 2);

	lose();
	options.restore = yield_too_many;
	fake_start(&server, first);
	assert_int_equal(expiry_open(&h, server.address, &options), -EINVAL);
	end(NULL);
}

static void a_lie(void **state)
{
	(void)state;
	server_state.lie_at = 513;
	fails(open_plain, -EPROTO);
	lose();
	fails(open_reconnecting, -EPROTO);
}

static void a_cut(void **state)
{
	struct expiry *h;

	(void)state;
	server_state.cut_at = 100;
	fails(open_plain, -ECONNRESET);
	reset(state);
	/* The queue has 100 timers now: it is not empty, and not complete. */
	server_state.cut_at = 100;
	assert_int_equal(open_reconnecting(&h), 0);
	assert_int_equal(expiry_query(h, 7, NULL), 0);
	assert_int_equal(truth.calls, 2);
	end(h);
	assert_int_equal(server_state.nr_armed, TIMERS);
}

/* A program that polls waits nowhere else, though the server is silent. */
static void without_waiting(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { first_lost, again_silent };
	struct expiry_record record = { .op = EXPIRY_OP_QUERY, .id = 9 };
	struct pollfd pfd = { .events = POLLIN };
	struct expiry *h;
	int i, ret;

	(void)state;
	sem_init(&server_state.silent, 0, 0);
	assert_int_equal(open_scripts(&h, scripts), 0);
	pfd.fd = expiry_fd(h);
	assert_int_equal(expiry_post(h, &record, 1), 1);
	for (i = 0; i < 50; i++) {
		assert_int_equal(expiry_next(h, &record, 1), 0);
		poll(&pfd, 1, 2);
	}
	assert_int_equal(truth.calls, 2);
	sem_post(&server_state.silent);
	for (ret = 0; !ret; ret = expiry_next(h, &record, 1))
		assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
	assert_int_equal(ret, 1);
	assert_int_equal(record.op, EXPIRY_OP_QUERY);
	end(h);
	sem_destroy(&server_state.silent);
	assert_int_equal(server_state.nr_armed, TIMERS);
}

/* Connections end anywhere, timers are refused now and then, and the queue is lost:
 * the server checks that no request is answered before all timers are armed.
 */
static void by_seed(void **state)
{
	uint64_t seed, last = 100;
	struct expiry *h;
	uint32_t i;
	int ret;

	for (seed = 1; seed <= last; seed++) {
		reset(state);
		server_state.seed = seed;
		server_state.wild = true;
		truth.nr = 1 + seed * 97 % (seed % 3 ? 40 : TIMERS);
		assert_int_equal(open_reconnecting(&h), 0);
		for (i = 0; i < 100; i++) {
			ret = expiry_query(h, 1 + i, NULL);
			if (ret)
				fail_msg("seed %u: query %u: %d",
					 (unsigned int)seed, i, ret);
		}
		fake_end(&server, h);
		if (server_state.wrong)
			fail_msg("seed %u: %s", (unsigned int)seed,
				 server_state.wrong);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(which_options),
		cmocka_unit_test_setup(an_empty_queue, reset),
		cmocka_unit_test_setup(not_an_empty_queue, reset),
		cmocka_unit_test_setup(a_small_window, reset),
		cmocka_unit_test_setup(nothing_to_restore, reset),
		cmocka_unit_test_setup(a_busy_server, reset),
		cmocka_unit_test_setup(a_program_that_is_stalled, reset),
		cmocka_unit_test_setup(a_server_that_stays_busy, reset),
		cmocka_unit_test_setup(a_refusal, reset),
		cmocka_unit_test_setup(an_error_of_the_function, reset),
		cmocka_unit_test_setup(a_lie, reset),
		cmocka_unit_test_setup(a_cut, reset),
		cmocka_unit_test_setup(without_waiting, reset),
		cmocka_unit_test_setup(by_seed, reset),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("restore", tests, NULL, NULL);
}
