// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * EXPIRY_OPEN_RECONNECT: how often the handle tries to connect, its answers
 * after a reconnect, and that closing it leaves nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support-reconnect.h"

#define MS	1000000ULL

/* Times of connections that failed. */
#define LOOKS	12
static uint64_t looks[LOOKS];
static unsigned int nr_looks;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 * MS + ts.tv_nsec;
}

static void look(int fd)
{
	(void)fd;
	if (nr_looks < LOOKS)
		looks[nr_looks++] = now_ns();
}

/* At once, then with pauses from 10 ms on that double, to a second. None is
 * shorter; a busy machine makes some longer, and never all by a half.
 */
static void pauses_double_to_a_second(void **state)
{
	static const unsigned int pauses_ms[LOOKS - 1] = {
		10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000
	};
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, look };
	double share, least = 1e9, least_second = 1e9;
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	unsigned int i;

	(void)state;
	h = reconnect_open(&server, scripts, ACKING, 0);
	server.repeat = true;
	while (nr_looks < LOOKS) {
		assert_int_equal(expiry_next(h, &record, 1), 0);
		assert_true(expiry_wait(h, WAIT_MS) >= 0);
	}
	for (i = 0; i < LOOKS - 1; i++) {
		share = (looks[i + 1] - looks[i]) / (pauses_ms[i] * 1e6);
		/* The server's time is measured. */
		if (share < 0.7)
			fail_msg("pause %u: %.2f of %u ms", i, share,
				 pauses_ms[i]);
		if (share < least)
			least = share;
		/* Those behind the first, which 1280 would begin. */
		if (i > 7 && share < least_second)
			least_second = share;
	}
	if (least > 1.5 || least_second > 1.5)
		fail_msg("pauses at least %.2f as long, those of a second %.2f",
			 least, least_second);
	reconnect_end(&server, h);
}

/* SCAN and STAT on the connection that came after. */
static void answer_scan(int fd)
{
	struct expiry_record record, row = { .op = EXPIRY_OP_SCAN, .id = 7 };

	if (!greet_again(fd) || !get(fd, &record, 1))
		return;
	script_expect(record.op == EXPIRY_OP_SCAN, "no SCAN");
	put(fd, &row, 1);
	row.id = 0;
	put(fd, &row, 1);
	drain(fd);
}

static void answer_stat(int fd)
{
	struct stat_reply reply = {
		.head.op = EXPIRY_OP_STAT,
		.head.period_ms = (sizeof(reply) - RECORD) / RECORD,
		.queue.arms = 1234,
		.server.engine = EXPIRY_ENGINE_KERNEL,
		.server.uptime_ns = 5678,
	};
	struct expiry_record record;

	if (!greet_again(fd) || !get(fd, &record, 1))
		return;
	script_expect(record.op == EXPIRY_OP_STAT, "no STAT");
	put_bytes(fd, &reply, sizeof(reply));
	drain(fd);
}

/* The requested rows, and the end of an empty list. */
static unsigned int asked;

static void answer_none(int fd)
{
	struct expiry_record record;

	if (!greet_again(fd) || !get(fd, &record, 1))
		return;
	asked = record.op;
	record = (struct expiry_record){ .op = record.op };
	put(fd, &record, 1);
	drain(fd);
}

static void questions_wait_for_the_next_connection(void **state)
{
	fake_script *scripts[FAKE_SCRIPTS] = { hang_up, answer_scan };
	struct expiry_server_stat server_stat = { .uptime_ns = 0 };
	struct expiry_stat stat = { .arms = 0 };
	struct expiry_queue queues[4];
	struct expiry_record rows[4];
	struct fake server;
	uint64_t cursor = 0;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_scan(h, &cursor, rows, 4), 1);
	assert_true(rows[0].id == 7);
	reconnect_end(&server, h);

	scripts[1] = answer_stat;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_stat(h, &stat, &server_stat,
				     sizeof(server_stat)), 0);
	assert_true(stat.arms == 1234 && server_stat.uptime_ns == 5678);
	reconnect_end(&server, h);

	scripts[1] = answer_none;
	cursor = 0;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_queues(h, &cursor, queues, 4), 0);
	assert_int_equal(asked, EXPIRY_OP_QUEUES);
	reconnect_end(&server, h);

	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_drop(h), 0);
	assert_int_equal(asked, EXPIRY_OP_DROP);
	reconnect_end(&server, h);
}

static unsigned int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Neither in use nor without a server. */
static void open_and_close(unsigned int rounds)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up };
	fake_script *const staying[FAKE_SCRIPTS] = { echo };
	struct expiry_record record;
	struct fake server;
	struct expiry *h;
	unsigned int i;

	for (i = 0; i < rounds; i++) {
		h = reconnect_open(&server, i % 2 ? scripts : staying, KEYED, 0);
		expiry_next(h, &record, 1);
		reconnect_end(&server, h);
	}
}

#define ROUNDS	1000

/* Less than eight bytes a handle: what the C library keeps grows by itself. */
static void closing_leaves_nothing(void **state)
{
	unsigned int files = open_files();
	size_t bytes;

	(void)state;
	open_and_close(20);
	assert_int_equal(open_files(), files);
	bytes = mallinfo2().uordblks;
	open_and_close(ROUNDS);
	assert_in_range(mallinfo2().uordblks, 0, bytes + 8 * ROUNDS);
}

/* A program that polls the descriptor of an idle handle sleeps. */
static void idle_is_not_readable(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, echo_again };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct pollfd pfd = { .events = POLLIN };
	struct fake server;
	struct expiry *h;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(expiry_next(h, &record, 1), 0);
	pfd.fd = expiry_fd(h);
	assert_int_equal(expiry_events(h), POLLIN);
	assert_int_equal(poll(&pfd, 1, 100), 0);
	reconnect_end(&server, h);
}

/* Nor does a child that has the old connection, and does nothing, wake it. */
static void a_child_with_the_old_connection(void **state)
{
	fake_script *const scripts[FAKE_SCRIPTS] = { hang_up, echo_again };
	struct expiry_record record = reconnect_request(EXPIRY_OP_QUERY, 1);
	struct pollfd pfd = { .events = POLLIN };
	struct fake server;
	struct expiry *h;
	pid_t child;

	(void)state;
	h = reconnect_open(&server, scripts, KEYED, WAIT_MS);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(expiry_submit(h, &record, 1), 1);
	assert_int_equal(reconnect_count(h), 1);
	assert_int_equal(expiry_next(h, &record, 1), 0);
	pfd.fd = expiry_fd(h);
	assert_int_equal(expiry_events(h), POLLIN);
	assert_int_equal(poll(&pfd, 1, 100), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	reconnect_end(&server, h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_double_to_a_second),
		cmocka_unit_test(questions_wait_for_the_next_connection),
		cmocka_unit_test(closing_leaves_nothing),
		cmocka_unit_test(idle_is_not_readable),
		cmocka_unit_test(a_child_with_the_old_connection),
	};

	return cmocka_run_group_tests_name("reconnect-pauses", tests, NULL, NULL);
}
