// SPDX-License-Identifier: LGPL-2.1-or-later
/* Periodic timers: each delivery arms the next, without drift. */
#include "device.h"

FIXTURE(periodic) {
	int fd;
};

FIXTURE_SETUP(periodic)
{
	self->fd = queue_new(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(periodic)
{
	close(self->fd);
}

static struct expiry_record arm_every(__u32 period_ms, __u64 cookie)
{
	struct expiry_record record = arm_in(0, cookie);

	record.period_ms = period_ms;
	return record;
}

TEST_F(periodic, deadlines_are_exactly_a_period_apart)
{
	struct expiry_record armed = arm_every(5, 42), record;
	__u64 expected;
	int i;

	ASSERT_EQ(0, request(self->fd, &armed));
	EXPECT_EQ(5, armed.period_ms);
	expected = armed.deadline_ns;
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
		ASSERT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
		ASSERT_EQ(expected, record.deadline_ns);
		ASSERT_EQ(armed.id, record.id);
		ASSERT_EQ(42, record.cookie);
		/* One record counts what its reader was late for. */
		ASSERT_LE(1, record.count);
		expected += record.count * 5 * NSEC_PER_MSEC;
	}
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(periodic, query_tells_the_next_deadline)
{
	struct expiry_record armed = arm_every(3600 * 1000, 1), record;

	ASSERT_EQ(0, request(self->fd, &armed));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	record = ask(EXPIRY_OP_QUERY, armed.id);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(armed.deadline_ns + HOUR_NS, record.deadline_ns);
	EXPECT_EQ(3600 * 1000, record.period_ms);
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(periodic, cancel_ends_it)
{
	struct expiry_record armed = arm_every(1, 1), record;

	ASSERT_EQ(0, request(self->fd, &armed));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	record = ask(EXPIRY_OP_CANCEL, armed.id);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(1, record.period_ms);
	EXPECT_EQ(0, queue_poll(self->fd, QUIET_MS));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(periodic, refresh_moves_the_next_and_keeps_the_period)
{
	struct expiry_record armed = arm_every(7, 1), record;
	__u64 deadline_ns;

	armed.deadline_ns = HOUR_NS;
	ASSERT_EQ(0, request(self->fd, &armed));
	record = ask(EXPIRY_OP_REFRESH, armed.id);
	record.flags = EXPIRY_F_RELATIVE;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(7, record.period_ms);
	deadline_ns = record.deadline_ns;
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(deadline_ns, record.deadline_ns);
	/* More than one, if its reader was late. */
	ASSERT_LE(1, record.count);
	deadline_ns += record.count * 7 * NSEC_PER_MSEC;
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(deadline_ns, record.deadline_ns);
}

TEST_F(periodic, largest_period_does_not_overflow)
{
	struct expiry_record armed = arm_every(~0U, 1), record;

	ASSERT_EQ(0, request(self->fd, &armed));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	record = ask(EXPIRY_OP_QUERY, armed.id);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(armed.deadline_ns + 0xffffffffULL * NSEC_PER_MSEC,
		  record.deadline_ns);
	EXPECT_EQ(0, queue_poll(self->fd, QUIET_MS));
}

/* As after ten hours of suspend, and as after more times than can be counted. */
TEST_F(periodic, missed_times_are_one_record_that_counts_them)
{
	static const __u32 mode[] = { 0, EXPIRY_MODE_ACK };
	struct expiry_record armed, records[4];
	__u64 before, first, after, count;
	unsigned int i;
	int fd;

	for (i = 0; i < 4; i++) {
		fd = queue_new_flags(CLOCK_REALTIME, mode[i & 1], O_NONBLOCK);
		ASSERT_LE(0, fd);
		armed = arm_every(1, 1);
		armed.flags = 0;
		first = i & 2 ? 0 : clock_ns(CLOCK_REALTIME) - 10 * HOUR_NS;
		armed.deadline_ns = first;
		ASSERT_EQ(0, request(fd, &armed));

		before = clock_ns(CLOCK_REALTIME);
		ASSERT_LE(1, receive_wait(fd, records, ARRAY_SIZE(records)));
		after = clock_ns(CLOCK_REALTIME);
		EXPECT_EQ(first, records[0].deadline_ns);
		count = records[0].count;
		if (first) {
			EXPECT_LE((before - first) / NSEC_PER_MSEC + 1, count);
			EXPECT_GE((after - first) / NSEC_PER_MSEC + 1, count);
			EXPECT_LT(36000000, count);
		} else {
			EXPECT_EQ(0xffffffff, count);
		}
		armed = ask(EXPIRY_OP_QUERY, armed.id);
		ASSERT_EQ(0, request(fd, &armed));
		EXPECT_LT(before, armed.deadline_ns);
		EXPECT_EQ(0, (armed.deadline_ns - first) % NSEC_PER_MSEC);
		close(fd);
	}
}

TEST_F(periodic, unacknowledged_one_comes_again_marked)
{
	int fd = queue_new(EXPIRY_MODE_ACK);
	struct expiry_record armed = arm_every(3600 * 1000, 9), record;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, request(fd, &armed));
	ASSERT_EQ(1, receive_wait(fd, &record, 1));
	EXPECT_EQ(0, record.flags);
	EXPECT_EQ(-EAGAIN, receive(fd, &record, 1));

	ASSERT_EQ(0, ioctl(fd, EXPIRY_IOC_REWIND));
	ASSERT_EQ(1, receive_wait(fd, &record, 1));
	EXPECT_EQ(EXPIRY_F_REDELIVERED, record.flags);
	EXPECT_EQ(armed.id, record.id);
	EXPECT_EQ(9, record.cookie);

	record = ask(EXPIRY_OP_ACK, armed.id);
	EXPECT_EQ(0, request(fd, &record));
	ASSERT_EQ(0, ioctl(fd, EXPIRY_IOC_REWIND));
	EXPECT_EQ(-EAGAIN, receive(fd, &record, 1));
	close(fd);
}

TEST_F(periodic, clear_counts_an_unacknowledged_one_once)
{
	int fd = queue_new(EXPIRY_MODE_ACK);
	struct expiry_record record = arm_every(3600 * 1000, 9);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, request(fd, &record));
	ASSERT_EQ(1, receive_wait(fd, &record, 1));
	record = ask(EXPIRY_OP_CLEAR, 0);
	ASSERT_EQ(0, request(fd, &record));
	EXPECT_EQ(1, record.cookie);
	close(fd);
}

TEST_HARNESS_MAIN
