// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * read() into missing memory loses nothing: every timer is either in the part
 * that read() returned, or still in the queue afterwards.
 */
#include "device.h"

FIXTURE(fault) {
	int fd;
	size_t page;
	char *base;		/* two pages, the second unmapped */
};

FIXTURE_VARIANT(fault) {
	__u32 mode;
};

FIXTURE_VARIANT_ADD(fault, plain) {
	.mode = 0,
};

FIXTURE_VARIANT_ADD(fault, ack) {
	.mode = EXPIRY_MODE_ACK,
};

FIXTURE_SETUP(fault)
{
	self->fd = queue_new(variant->mode);
	ASSERT_LE(0, self->fd);
	self->page = sysconf(_SC_PAGESIZE);
	self->base = mmap(NULL, 2 * self->page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->base);
	ASSERT_EQ(0, munmap(self->base + self->page, self->page));
}

FIXTURE_TEARDOWN(fault)
{
	munmap(self->base, self->page);
	close(self->fd);
}

static int arm_due(int fd, unsigned int count)
{
	struct expiry_record record;
	unsigned int i;

	for (i = 0; i < count; i++) {
		record = arm_at(i + 1, i);
		if (request(fd, &record))
			return -1;
	}
	return 0;
}

/* Reads all the rest: the cookies from @first on, in order, not marked. */
static int rest_is(int fd, unsigned int first, unsigned int count)
{
	struct expiry_record record;
	unsigned int i;

	for (i = first; i < count; i++) {
		if (receive(fd, &record, 1) != 1)
			return -1;
		if (record.cookie != i || record.flags)
			return -2;
	}
	return receive(fd, &record, 1) == -EAGAIN ? 0 : -3;
}

TEST_F(fault, no_memory_at_all)
{
	struct expiry_stat stat;

	ASSERT_EQ(0, arm_due(self->fd, 10));
	EXPECT_EQ(-1, read(self->fd, self->base + self->page, 10 * RECORD));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, read(self->fd, self->base + self->page, RECORD));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, read(self->fd, (void *)-4096L, RECORD));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(10, queue_armed(self->fd));
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(0, stat.unacked);
	EXPECT_EQ(POLLIN, queue_poll(self->fd, 0));
	EXPECT_EQ(0, rest_is(self->fd, 0, 10));
}

TEST_F(fault, read_only_memory)
{
	ASSERT_EQ(0, arm_due(self->fd, 3));
	ASSERT_EQ(0, mprotect(self->base, self->page, PROT_READ));
	EXPECT_EQ(-1, read(self->fd, self->base, 3 * RECORD));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(3, queue_armed(self->fd));
	EXPECT_EQ(0, rest_is(self->fd, 0, 3));
}

TEST_F(fault, memory_that_ends_between_records)
{
	struct expiry_record *records;
	int i, ret;

	ASSERT_EQ(0, arm_due(self->fd, 20));
	records = (void *)(self->base + self->page - 4 * RECORD);
	ret = receive(self->fd, records, 20);
	ASSERT_GE(4, ret);
	if (ret < 0)
		EXPECT_EQ(-EFAULT, ret);
	for (i = 0; i < ret; i++)
		EXPECT_EQ(i, records[i].cookie);
	EXPECT_EQ(0, rest_is(self->fd, ret < 0 ? 0 : ret, 20));
}

TEST_F(fault, memory_that_ends_inside_a_record)
{
	int ret;

	ASSERT_EQ(0, arm_due(self->fd, 20));
	ret = receive(self->fd, (void *)(self->base + self->page - 2 * RECORD -
					 8), 20);
	ASSERT_GE(2, ret);
	if (ret < 0)
		EXPECT_EQ(-EFAULT, ret);
	EXPECT_EQ(0, rest_is(self->fd, ret < 0 ? 0 : ret, 20));
}

TEST_F(fault, large_read_with_little_memory)
{
	const unsigned int count = 5000;
	int ret;

	ASSERT_EQ(0, arm_due(self->fd, count));
	ret = receive(self->fd, (void *)self->base, count);
	ASSERT_GE((int)(self->page / RECORD), ret);
	if (ret < 0)
		EXPECT_EQ(-EFAULT, ret);
	EXPECT_EQ(0, rest_is(self->fd, ret < 0 ? 0 : ret, count));
}

TEST_F(fault, cancel_still_works_after_it)
{
	struct expiry_record record = arm_at(0, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(-1, read(self->fd, self->base + self->page, RECORD));
	record = ask(EXPIRY_OP_CANCEL, record.id);
	EXPECT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(1, record.cookie);
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(fault, periodic_timer_is_still_due_for_the_same_deadline)
{
	struct expiry_record record = arm_at(clock_ns(CLOCK_MONOTONIC), 1);
	__u64 deadline_ns = record.deadline_ns;

	record.period_ms = 3600 * 1000;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(-1, read(self->fd, self->base + self->page, RECORD));
	EXPECT_EQ(EFAULT, errno);
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(deadline_ns, record.deadline_ns);
	EXPECT_EQ(0, record.flags);
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_HARNESS_MAIN
