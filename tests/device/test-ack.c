// SPDX-License-Identifier: LGPL-2.1-or-later
/* Acknowledging queues: a read timer is kept until ACK, and is delivered again.
 */
#include "device.h"

FIXTURE(ack) {
	int fd;
};

FIXTURE_SETUP(ack)
{
	self->fd = queue_new(EXPIRY_MODE_ACK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(ack)
{
	close(self->fd);
}

static __u64 unacked(int fd)
{
	struct expiry_stat stat;

	return queue_stat(fd, &stat) ? ~0ULL : stat.unacked;
}

TEST_F(ack, delivered_is_kept_until_acknowledged)
{
	struct expiry_record record = arm_at(0, 1);
	__u64 id;

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(EXPIRY_OP_EXPIRED, record.op);
	EXPECT_EQ(0, record.flags);
	id = record.id;
	EXPECT_EQ(0, queue_armed(self->fd));
	EXPECT_EQ(1, unacked(self->fd));

	record = ask(EXPIRY_OP_ACK, id);
	EXPECT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, unacked(self->fd));
	record = ask(EXPIRY_OP_ACK, id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
}

TEST_F(ack, delivered_is_not_armed_any_more)
{
	struct expiry_record record = arm_at(0, 1);
	__u64 id;

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	id = record.id;
	record = ask(EXPIRY_OP_CANCEL, id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
	record = ask(EXPIRY_OP_REFRESH, id);
	record.deadline_ns = EXPIRY_NEVER;
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
	EXPECT_EQ(1, unacked(self->fd));
}

TEST_F(ack, nothing_comes_again_without_rewind)
{
	struct expiry_record record = arm_at(0, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
	EXPECT_EQ(0, queue_poll(self->fd, QUIET_MS));
}

TEST_F(ack, rewind_delivers_again_marked)
{
	struct expiry_record first = arm_at(1234, 42), again;
	struct expiry_stat stat;
	int i;

	ASSERT_EQ(0, request(self->fd, &first));
	ASSERT_EQ(1, receive_wait(self->fd, &first, 1));
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
		ASSERT_EQ(1, receive_wait(self->fd, &again, 1));
		EXPECT_EQ(EXPIRY_F_REDELIVERED, again.flags);
		EXPECT_EQ(first.id, again.id);
		EXPECT_EQ(1234, again.deadline_ns);
		EXPECT_EQ(42, again.cookie);
		ASSERT_EQ(0, queue_stat(self->fd, &stat));
		EXPECT_EQ(i, stat.redelivered);
	}
	again = ask(EXPIRY_OP_ACK, first.id);
	EXPECT_EQ(0, request(self->fd, &again));
	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &again, 1));
}

TEST_F(ack, rewind_brings_exactly_the_unacknowledged_in_order)
{
	enum { COUNT = 3000 };
	static struct expiry_record records[COUNT], acks[COUNT];
	unsigned int i, got = 0, nr_acks = 0, bad = 0;
	int ret;

	for (i = 0; i < COUNT; i++)
		records[i] = arm_at((i * 7919) % COUNT, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	while (got < COUNT) {
		ret = receive_wait(self->fd, &records[got], COUNT - got);
		ASSERT_LT(0, ret);
		got += ret;
	}
	for (i = 0; i < COUNT; i++)
		if (i % 3)
			acks[nr_acks++] = ask(EXPIRY_OP_ACK, records[i].id);
	ASSERT_EQ(nr_acks, submit(self->fd, acks, nr_acks));
	for (i = 0; i < nr_acks; i++)
		bad += acks[i].status;
	EXPECT_EQ(0, bad);
	EXPECT_EQ(COUNT - nr_acks, unacked(self->fd));

	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	for (got = 0; got < COUNT - nr_acks; got += ret) {
		ret = receive_wait(self->fd, &acks[got], COUNT - got);
		ASSERT_LT(0, ret);
	}
	ASSERT_EQ(COUNT - nr_acks, got);
	for (i = 0; i < got; i++)
		bad += acks[i].id != records[3 * i].id ||
		       acks[i].cookie != records[3 * i].cookie ||
		       acks[i].flags != EXPIRY_F_REDELIVERED;
	EXPECT_EQ(0, bad);
	EXPECT_EQ(-EAGAIN, receive(self->fd, records, 1));
}

TEST_F(ack, rewound_timer_can_be_acknowledged_unread_or_read)
{
	struct expiry_record record = arm_at(0, 1);
	__u64 id;

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	id = record.id;
	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	ASSERT_EQ(POLLIN, queue_poll(self->fd, WAIT_MS));
	/* Delivered and not yet acknowledged: a late ACK counts. */
	record = ask(EXPIRY_OP_ACK, id);
	EXPECT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
	EXPECT_EQ(0, unacked(self->fd));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(ack, clear_forgets_delivered_timers_too)
{
	struct expiry_record record = arm_at(0, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	record = arm_at(EXPIRY_NEVER, 2);
	ASSERT_EQ(0, request(self->fd, &record));
	record = ask(EXPIRY_OP_CLEAR, 0);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(2, record.cookie);
	EXPECT_EQ(0, unacked(self->fd));
	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(ack, id_of_an_acknowledged_timer_is_stale)
{
	struct expiry_record record = arm_at(0, 1);
	__u64 id;

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	id = record.id;
	record = ask(EXPIRY_OP_ACK, id);
	ASSERT_EQ(0, request(self->fd, &record));
	record = arm_at(0, 2);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_NE(id, record.id);
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	record = ask(EXPIRY_OP_ACK, id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
	EXPECT_EQ(1, unacked(self->fd));
}

TEST_F(ack, rewind_needs_an_acknowledging_queue)
{
	int fd = queue_new(0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, ioctl(fd, EXPIRY_IOC_REWIND));
	EXPECT_EQ(EINVAL, errno);
	close(fd);
}

TEST_HARNESS_MAIN
