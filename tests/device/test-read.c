// SPDX-License-Identifier: LGPL-2.1-or-later
/* read(): whole records, in order, never early, blocking or not. */
#include "device.h"

#include <sys/uio.h>

FIXTURE(read) {
	int fd;
};

FIXTURE_SETUP(read)
{
	self->fd = queue_new(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(read)
{
	close(self->fd);
}

TEST_F(read, nothing_due_is_eagain)
{
	struct expiry_record record;

	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
	record = arm_in(HOUR_NS, 1);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(read, expiration_says_what_expired)
{
	struct expiry_record armed = arm_in(20 * NSEC_PER_MSEC, 0xabcdef);
	struct expiry_record record;

	ASSERT_EQ(0, request(self->fd, &armed));
	memset(&record, 0xff, sizeof(record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_LE(armed.deadline_ns, clock_ns(CLOCK_MONOTONIC));
	EXPECT_EQ(EXPIRY_OP_EXPIRED, record.op);
	EXPECT_EQ(0, record.flags);
	EXPECT_EQ(0, record.status);
	EXPECT_EQ(0, record.count);
	EXPECT_EQ(armed.id, record.id);
	EXPECT_EQ(armed.deadline_ns, record.deadline_ns);
	EXPECT_EQ(0xabcdef, record.cookie);
}

TEST_F(read, short_buffers_are_refused_and_long_ones_take_whole_records)
{
	struct expiry_record records[3] = { arm_at(0, 0), arm_at(1, 1),
					    arm_at(2, 2) };
	char buffer[4 * RECORD];

	EXPECT_EQ(-1, read(self->fd, buffer, 31));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(3, submit(self->fd, records, 3));
	EXPECT_EQ(-1, read(self->fd, buffer, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(self->fd, buffer, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(self->fd, buffer, RECORD - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(3, queue_armed(self->fd));

	memset(buffer, 0xee, sizeof(buffer));
	EXPECT_EQ(RECORD, read(self->fd, buffer, RECORD + 1));
	EXPECT_EQ((char)0xee, buffer[RECORD]);
	memcpy(&records[0], buffer, RECORD);
	EXPECT_EQ(0, records[0].cookie);
	EXPECT_EQ(2 * RECORD, read(self->fd, buffer, 4 * RECORD - 1));
	memcpy(records, buffer, 2 * RECORD);
	EXPECT_EQ(1, records[0].cookie);
	EXPECT_EQ(2, records[1].cookie);
	EXPECT_EQ(-EAGAIN, receive(self->fd, records, 1));
}

TEST_F(read, buffer_need_not_be_aligned)
{
	struct expiry_record record = arm_at(0, 5);
	char buffer[RECORD + 1];

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(RECORD, read(self->fd, buffer + 1, RECORD));
	memcpy(&record, buffer + 1, RECORD);
	EXPECT_EQ(5, record.cookie);
}

TEST_F(read, readv_fills_across_its_pieces)
{
	struct expiry_record records[2] = { arm_at(0, 1), arm_at(1, 2) };
	char one[40], two[24];
	struct iovec iov[2] = {
		{ one, sizeof(one) },
		{ two, sizeof(two) },
	};
	char all[2 * RECORD];

	ASSERT_EQ(2, submit(self->fd, records, 2));
	ASSERT_EQ(2 * RECORD, readv(self->fd, iov, 2));
	memcpy(all, one, sizeof(one));
	memcpy(all + sizeof(one), two, sizeof(two));
	memcpy(records, all, sizeof(all));
	EXPECT_EQ(1, records[0].cookie);
	EXPECT_EQ(2, records[1].cookie);
}

TEST_F(read, has_no_position_and_no_write)
{
	struct expiry_record record = arm_at(0, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(-1, pread(self->fd, &record, RECORD, 0));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, lseek(self->fd, 0, SEEK_SET));
	EXPECT_EQ(ESPIPE, errno);
	EXPECT_EQ(-1, write(self->fd, &record, RECORD));
	EXPECT_EQ(1, receive(self->fd, &record, 1));
}

TEST_F(read, ten_thousand_come_in_order_of_deadline_and_never_early)
{
	enum { COUNT = 10000 };
	static struct expiry_record records[COUNT];
	static unsigned char seen[COUNT];
	__u64 base = clock_ns(CLOCK_MONOTONIC), last = 0, now;
	unsigned int i, got = 0, early = 0, unordered = 0, wrong = 0;
	int ret;

	/* Some are past, the rest come over the next 300 ms. */
	for (i = 0; i < COUNT; i++)
		records[i] = arm_at(base + (i * 7919ULL) % COUNT * 30000, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	while (got < COUNT) {
		ret = receive_wait(self->fd, records, 97);
		ASSERT_LT(0, ret);
		now = clock_ns(CLOCK_MONOTONIC);
		for (i = 0; i < ret; i++) {
			early += records[i].deadline_ns > now;
			unordered += records[i].deadline_ns < last;
			last = records[i].deadline_ns;
			ASSERT_GT(COUNT, records[i].cookie);
			wrong += seen[records[i].cookie]++;
			wrong += last != base + (records[i].cookie * 7919) %
				 COUNT * 30000;
		}
		got += ret;
	}
	EXPECT_EQ(0, early);
	EXPECT_EQ(0, unordered);
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(-EAGAIN, receive(self->fd, records, 1));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(read, timer_armed_earlier_than_the_first_wakes_the_sleeper)
{
	int fd = queue_new_flags(CLOCK_MONOTONIC, 0, 0);
	struct expiry_record record = arm_in(HOUR_NS, 1);
	pid_t pid;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, request(fd, &record));
	pid = fork();
	if (!pid)
		_exit(receive(fd, &record, 1) == 1 ? record.cookie : 99);
	sleep_ms(50);
	record = arm_in(0, 2);
	ASSERT_EQ(0, request(fd, &record));
	EXPECT_EQ(2, child_status(pid));
	close(fd);
}

TEST_F(read, nonblocking_can_be_switched)
{
	struct expiry_record record = arm_in(30 * NSEC_PER_MSEC, 1);
	__u64 deadline_ns;

	ASSERT_EQ(0, request(self->fd, &record));
	deadline_ns = record.deadline_ns;
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	ASSERT_EQ(1, receive(self->fd, &record, 1));
	EXPECT_LE(deadline_ns, clock_ns(CLOCK_MONOTONIC));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

FIXTURE(blocked) {
	int fd;
};

FIXTURE_SETUP(blocked)
{
	self->fd = queue_new_flags(CLOCK_MONOTONIC, 0, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(blocked)
{
	close(self->fd);
}

TEST_F(blocked, each_of_several_readers_gets_its_own)
{
	enum { READERS = 4, ROUNDS = 50 };
	static unsigned char taken[READERS * ROUNDS];
	struct expiry_record record;
	unsigned int i, seen = 0, bad = 0;
	int out[2];
	pid_t pids[READERS];

	ASSERT_EQ(0, pipe(out));
	for (i = 0; i < READERS; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		for (i = 0; i < ROUNDS; i++) {
			if (receive(self->fd, &record, 1) != 1 ||
			    record.deadline_ns > clock_ns(CLOCK_MONOTONIC))
				_exit(1);
			if (write(out[1], &record, RECORD) != RECORD)
				_exit(2);
		}
		_exit(0);
	}
	for (i = 0; i < READERS * ROUNDS; i++) {
		record = arm_in((i % 7) * NSEC_PER_MSEC, i);
		ASSERT_EQ(0, request(self->fd, &record));
	}
	for (i = 0; i < READERS; i++)
		EXPECT_EQ(0, child_status(pids[i]));
	close(out[1]);
	while (read(out[0], &record, RECORD) == RECORD) {
		seen++;
		ASSERT_GT(READERS * ROUNDS, record.cookie);
		bad += taken[record.cookie]++;
	}
	EXPECT_EQ(READERS * ROUNDS, seen);
	EXPECT_EQ(0, bad);
	close(out[0]);
}

static void ignore(int sig)
{
}

static pid_t start_reader(int fd, int sa_flags)
{
	struct sigaction action = { .sa_handler = ignore, .sa_flags = sa_flags };
	struct expiry_record record;
	pid_t pid = fork();
	sigset_t set;
	int ret;

	if (pid)
		return pid;
	sigaction(SIGUSR1, &action, NULL);

	/* The parent blocked it so that none comes before the handler. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	ret = receive(fd, &record, 1);
	_exit(ret == 1 ? 11 : ret == -EINTR ? 22 : 33);
}

static void block_usr1(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

TEST_F(blocked, signal_interrupts)
{
	siginfo_t info = { 0 };
	pid_t pid;

	block_usr1();
	pid = start_reader(self->fd, 0);
	/* Until one arrives while it is blocked. */
	while (!waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       !info.si_pid) {
		kill(pid, SIGUSR1);
		sleep_ms(5);
	}
	EXPECT_EQ(22, child_status(pid));
}

TEST_F(blocked, signal_with_restart_does_not)
{
	struct expiry_record record = arm_in(0, 1);
	pid_t pid;
	int i;

	block_usr1();
	pid = start_reader(self->fd, SA_RESTART);
	for (i = 0; i < 20; i++) {
		kill(pid, SIGUSR1);
		sleep_ms(5);
	}
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(11, child_status(pid));
}

TEST_HARNESS_MAIN
