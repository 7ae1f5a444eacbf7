// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The clocks of queues. Steps of CLOCK_REALTIME are tried only if
 * EXPIRY_TEST_SETTIME=1 allows setting this machine's clock.
 */
#include "device.h"

FIXTURE(clock) {
	int fd;
};

FIXTURE_VARIANT(clock) {
	clockid_t clock;
};

FIXTURE_VARIANT_ADD(clock, realtime) {
	.clock = CLOCK_REALTIME,
};

FIXTURE_VARIANT_ADD(clock, monotonic) {
	.clock = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(clock, boottime) {
	.clock = CLOCK_BOOTTIME,
};

FIXTURE_SETUP(clock)
{
	self->fd = queue_new_flags(variant->clock, 0, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(clock)
{
	close(self->fd);
}

TEST_F(clock, absolute_deadlines_are_on_the_queues_clock)
{
	__u64 deadline_ns = clock_ns(variant->clock) + 50 * NSEC_PER_MSEC;
	struct expiry_record record = arm_at(deadline_ns, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(deadline_ns, record.deadline_ns);
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_LE(deadline_ns, clock_ns(variant->clock));
	EXPECT_EQ(deadline_ns, record.deadline_ns);
}

TEST_F(clock, relative_deadlines_count_from_its_now)
{
	__u64 before = clock_ns(variant->clock), after;
	struct expiry_record record = arm_in(30 * NSEC_PER_MSEC, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	after = clock_ns(variant->clock);
	EXPECT_LE(before + 30 * NSEC_PER_MSEC, record.deadline_ns);
	EXPECT_GE(after + 30 * NSEC_PER_MSEC, record.deadline_ns);
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_LE(record.deadline_ns, clock_ns(variant->clock));
}

TEST_F(clock, stat_tells_its_now)
{
	__u64 before = clock_ns(variant->clock), after;
	struct expiry_stat stat;

	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	after = clock_ns(variant->clock);
	EXPECT_LE(before, stat.now_ns);
	EXPECT_GE(after, stat.now_ns);
	EXPECT_EQ(variant->clock, stat.clock_id);
}

TEST_F(clock, never_early_over_many_short_timers)
{
	struct expiry_record record;
	unsigned int i, early = 0;

	for (i = 0; i < 200; i++) {
		record = arm_in(i * 20000, i);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
		early += record.deadline_ns > clock_ns(variant->clock);
	}
	EXPECT_EQ(0, early);
}

/* Restores CLOCK_REALTIME by CLOCK_MONOTONIC, after a step. */
FIXTURE(step) {
	int fd;
	bool skip;
	__u64 real_ns;
	__u64 mono_ns;
};

FIXTURE_SETUP(step)
{
	const char *allowed = getenv("EXPIRY_TEST_SETTIME");

	self->skip = !allowed || strcmp(allowed, "1");
	self->fd = queue_new_flags(CLOCK_REALTIME, 0, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->real_ns = clock_ns(CLOCK_REALTIME);
	self->mono_ns = clock_ns(CLOCK_MONOTONIC);
}

static int set_realtime(__u64 real_ns)
{
	struct timespec ts = {
		.tv_sec = real_ns / NSEC_PER_SEC,
		.tv_nsec = real_ns % NSEC_PER_SEC,
	};

	return clock_settime(CLOCK_REALTIME, &ts) ? -errno : 0;
}

FIXTURE_TEARDOWN(step)
{
	if (!self->skip)
		set_realtime(self->real_ns + clock_ns(CLOCK_MONOTONIC) -
			     self->mono_ns);
	close(self->fd);
}

#define NO_STEPS	"EXPIRY_TEST_SETTIME is not 1"

/* Returns the next record that is an expiration; counts the others. */
static int next_expired(int fd, struct expiry_record *record,
			unsigned int *clock_sets)
{
	int ret;

	do {
		ret = receive_wait(fd, record, 1);
		if (ret == 1 && record->op == EXPIRY_OP_CLOCK_SET)
			(*clock_sets)++;
	} while (ret == 1 && record->op == EXPIRY_OP_CLOCK_SET);
	return ret;
}

TEST_F(step, forward_makes_due_what_it_passes)
{
	struct expiry_record record;
	unsigned int clock_sets = 0;
	struct expiry_stat stat;

	if (self->skip)
		SKIP(return, NO_STEPS);
	record = arm_in(HOUR_NS, 1);
	ASSERT_EQ(0, request(self->fd, &record));
	record = arm_in(3 * HOUR_NS, 3);
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, set_realtime(self->real_ns + 2 * HOUR_NS));
	ASSERT_EQ(1, next_expired(self->fd, &record, &clock_sets));
	EXPECT_EQ(1, record.cookie);
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_REALTIME));
	EXPECT_EQ(1, clock_sets);
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(1, stat.clock_sets);
	EXPECT_EQ(1, stat.armed);
	/* The step was late, not the module. */
	EXPECT_EQ(1, stat.held);
	EXPECT_EQ(0, stat.lateness_max_ns);
}

TEST_F(step, is_told_to_who_reads_once)
{
	struct expiry_record record;

	if (self->skip)
		SKIP(return, NO_STEPS);
	record = arm_in(10 * HOUR_NS, 1);
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, set_realtime(self->real_ns + HOUR_NS));
	/* Not announced by poll(), which reports expirations. */
	ASSERT_EQ(1, receive(self->fd, &record, 1));
	EXPECT_EQ(EXPIRY_OP_CLOCK_SET, record.op);
	EXPECT_EQ(0, record.id);
	EXPECT_LE(self->real_ns + HOUR_NS, record.deadline_ns);
	EXPECT_GE(clock_ns(CLOCK_REALTIME), record.deadline_ns);
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(step, backward_holds_back_what_was_near)
{
	struct expiry_record record, rest;
	unsigned int clock_sets = 0;

	if (self->skip)
		SKIP(return, NO_STEPS);
	/* Far enough that a slow machine does not pass it before the step. */
	record = arm_in(20 * NSEC_PER_SEC, 1);
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, set_realtime(self->real_ns - HOUR_NS));
	while (receive(self->fd, &rest, 1) == 1)
		ASSERT_EQ(EXPIRY_OP_CLOCK_SET, rest.op);
	EXPECT_EQ(1, queue_armed(self->fd));

	ASSERT_EQ(0, set_realtime(record.deadline_ns - 50 * NSEC_PER_MSEC));
	ASSERT_EQ(1, next_expired(self->fd, &rest, &clock_sets));
	EXPECT_EQ(1, rest.cookie);
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_REALTIME));
}

TEST_F(step, wakes_a_blocked_reader)
{
	struct expiry_record record;
	int fd;
	pid_t pid;

	if (self->skip)
		SKIP(return, NO_STEPS);
	fd = queue_new_flags(CLOCK_REALTIME, 0, 0);
	ASSERT_LE(0, fd);
	record = arm_in(HOUR_NS, 7);
	ASSERT_EQ(0, request(fd, &record));
	pid = fork();
	if (!pid) {
		do {
			if (receive(fd, &record, 1) != 1)
				_exit(99);
		} while (record.op == EXPIRY_OP_CLOCK_SET);
		_exit(record.cookie);
	}
	sleep_ms(50);
	ASSERT_EQ(0, set_realtime(self->real_ns + 2 * HOUR_NS));
	EXPECT_EQ(7, child_status(pid));
	close(fd);
}

static int queue_woken_by_steps(int flags)
{
	struct expiry_config config = {
		.clock_id = CLOCK_REALTIME,
		.flags = EXPIRY_CONFIG_CLOCK_SET,
	};
	int fd = queue_open(flags);

	return ioctl(fd, EXPIRY_IOC_CONFIG, &config) ? -errno : fd;
}

/* With timers and without, before the step and after it; once for each step. */
TEST_F(step, wakes_who_asked_for_it)
{
	struct expiry_record record, records[4];
	int fd, other, empty, i;

	if (self->skip)
		SKIP(return, NO_STEPS);
	fd = queue_woken_by_steps(O_NONBLOCK);
	empty = queue_woken_by_steps(O_NONBLOCK);
	other = self->fd;
	ASSERT_LE(0, fd);
	ASSERT_LE(0, empty);
	record = arm_in(100 * HOUR_NS, 7);
	ASSERT_EQ(0, request(fd, &record));
	record = arm_in(100 * HOUR_NS, 7);
	ASSERT_EQ(0, request(other, &record));
	EXPECT_EQ(0, queue_poll(fd, 0));
	EXPECT_EQ(0, queue_poll(empty, 0));
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, set_realtime(self->real_ns + i * HOUR_NS));
		EXPECT_EQ(POLLIN, queue_poll(fd, WAIT_MS) & POLLIN);
		EXPECT_EQ(POLLIN, queue_poll(empty, WAIT_MS) & POLLIN);
		/* It did not ask. */
		EXPECT_EQ(0, queue_poll(other, 0));
		/* Other uses of the queue do not make it forget. */
		EXPECT_EQ(1, queue_armed(fd));
		record = arm_in(HOUR_NS, 1);
		ASSERT_EQ(0, request(fd, &record));
		record = ask(EXPIRY_OP_CANCEL, record.id);
		ASSERT_EQ(0, request(fd, &record));
		EXPECT_EQ(POLLIN, queue_poll(fd, 0) & POLLIN);

		ASSERT_EQ(1, receive(fd, records, 4));
		EXPECT_EQ(EXPIRY_OP_CLOCK_SET, records[0].op);
		EXPECT_LE(self->real_ns + i * HOUR_NS, records[0].deadline_ns);
		EXPECT_EQ(-EAGAIN, receive(fd, records, 4));
		EXPECT_EQ(0, queue_poll(fd, 0));
		ASSERT_EQ(1, receive(empty, records, 4));
		EXPECT_EQ(EXPIRY_OP_CLOCK_SET, records[0].op);
		EXPECT_EQ(0, queue_poll(empty, 0));
	}
	close(fd);
	close(empty);
	/* The last that asked is gone, and another comes. */
	fd = queue_woken_by_steps(O_NONBLOCK);
	ASSERT_EQ(0, set_realtime(self->real_ns));
	EXPECT_EQ(POLLIN, queue_poll(fd, WAIT_MS) & POLLIN);
	close(fd);
}

TEST_F(step, wakes_a_blocked_reader_of_an_empty_queue)
{
	struct expiry_record record;
	pid_t pid;
	int fd;

	if (self->skip)
		SKIP(return, NO_STEPS);
	fd = queue_woken_by_steps(0);
	ASSERT_LE(0, fd);
	pid = fork();
	if (!pid)
		_exit(receive(fd, &record, 1) == 1 ? record.op : 99);
	sleep_ms(50);
	ASSERT_EQ(0, set_realtime(self->real_ns + HOUR_NS));
	EXPECT_EQ(EXPIRY_OP_CLOCK_SET, child_status(pid));
	close(fd);
}

TEST_F(step, does_not_concern_other_clocks)
{
	int fd = queue_new(0);
	struct expiry_record record;

	if (self->skip)
		SKIP(return, NO_STEPS);
	ASSERT_LE(0, fd);
	record = arm_in(HOUR_NS, 1);
	ASSERT_EQ(0, request(fd, &record));
	ASSERT_EQ(0, set_realtime(self->real_ns + 2 * HOUR_NS));
	EXPECT_EQ(0, queue_poll(fd, QUIET_MS));
	EXPECT_EQ(-EAGAIN, receive(fd, &record, 1));
	EXPECT_EQ(1, queue_armed(fd));
	close(fd);
}

TEST_HARNESS_MAIN
