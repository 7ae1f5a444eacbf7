// SPDX-License-Identifier: LGPL-2.1-or-later
/* A queue behaves the same with any layout of its heap. */
#include "device.h"

enum { COUNT = 6000, MANY = 60000 };

FIXTURE(layout) {
	int fd;
	struct expiry_record *records;
};

FIXTURE_VARIANT(layout) {
	unsigned long number;
};

/* 0: the default. */
FIXTURE_VARIANT_ADD(layout, preset) {
	.number = 0,
};

FIXTURE_VARIANT_ADD(layout, subtree) {
	.number = EXPIRY_LAYOUT_SUBTREE,
};

FIXTURE_VARIANT_ADD(layout, sorted) {
	.number = EXPIRY_LAYOUT_SORTED,
};

FIXTURE_VARIANT_ADD(layout, radix) {
	.number = EXPIRY_LAYOUT_RADIX,
};

FIXTURE_SETUP(layout)
{
	self->records = calloc(COUNT, RECORD);
	ASSERT_NE(NULL, self->records);
	self->fd = queue_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	if (variant->number)
		ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_LAYOUT,
				   variant->number));
}

FIXTURE_TEARDOWN(layout)
{
	close(self->fd);
	free(self->records);
}

TEST_F(layout, unknown_is_refused_and_the_last_one_said_counts)
{
	static const unsigned long unknown[] = { 0, 4, 5, 1UL << 31, ~0UL };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_LAYOUT, unknown[i]));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_EQ(0, ioctl(self->fd, EXPIRY_IOC_LAYOUT, EXPIRY_LAYOUT_SORTED));
	EXPECT_EQ(0, ioctl(self->fd, EXPIRY_IOC_LAYOUT, EXPIRY_LAYOUT_SUBTREE));
	EXPECT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
}

TEST_F(layout, configured_queue_keeps_its_own)
{
	struct expiry_record record = arm_in(0, 1);

	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
	EXPECT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_LAYOUT,
			    EXPIRY_LAYOUT_SUBTREE));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(1, receive_wait(self->fd, &record, 1));
}

/* A third of the unordered timers is cancelled, a third moved to later, and all
 * others are brought forward. The rest comes in order, once, and memory is
 * freed.
 */
TEST_F(layout, timers_come_in_order_after_changes)
{
	__u64 base = clock_ns(CLOCK_MONOTONIC), last = 0;
	struct expiry_record *records = self->records;
	unsigned int i, got = 0, unordered = 0, wrong = 0;
	struct expiry_stat stat;
	int ret;

	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC,
				  EXPIRY_MODE_KEYED, 0));
	for (i = 0; i < COUNT; i++) {
		records[i] = arm_at(base + HOUR_NS + i * 7919ULL % COUNT, i);
		records[i].id = i + 1;
	}
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	for (i = 0; i < COUNT; i++) {
		records[i] = ask(i % 3 ? EXPIRY_OP_REFRESH : EXPIRY_OP_CANCEL,
				 i + 1);
		if (i % 3)
			records[i].deadline_ns = i % 3 == 1 ?
				base - i : base + 2 * HOUR_NS;
	}
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	for (i = 0; i < COUNT; i++)
		ASSERT_EQ(0, records[i].status);
	for (i = 2; i < COUNT; i += 3) {
		records[i / 3] = ask(EXPIRY_OP_REFRESH, i + 1);
		records[i / 3].deadline_ns = base - i;
	}
	ASSERT_EQ(COUNT / 3, submit(self->fd, records, COUNT / 3));

	while (got < COUNT / 3 * 2) {
		ret = receive_wait(self->fd, records, 89);
		ASSERT_LT(0, ret);
		for (i = 0; i < ret; i++) {
			unordered += records[i].deadline_ns < last;
			last = records[i].deadline_ns;
			wrong += last != base - records[i].cookie ||
				 !(records[i].cookie % 3);
		}
		got += ret;
	}
	EXPECT_EQ(0, unordered);
	EXPECT_EQ(0, wrong);
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(0, stat.armed);
	EXPECT_EQ(0, stat.pages_heap);
}

/* -EAGAIN means that nothing is due, not that the next one takes steps to find. */
TEST_F(layout, all_that_is_due_is_read_without_a_pause)
{
	struct expiry_record *records = self->records;
	unsigned int i, n, got;
	int ret;

	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, EXPIRY_MODE_ACK, 0));
	for (n = 0; n < MANY; n += i) {
		for (i = 0; i < COUNT && n + i < MANY; i++)
			records[i] = arm_in(n + i, n + i);
		ASSERT_EQ(i, submit(self->fd, records, i));
	}
	for (n = 0; n < 6; n++) {
		/* Timers that were read are armed behind the others. */
		for (got = 0; got < n * MANY / 8; got += ret) {
			ret = receive(self->fd, records, COUNT);
			ASSERT_LT(0, ret);
		}
		ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
		for (got = 0; (ret = receive(self->fd, records, COUNT)) > 0; got += ret)
			;
		EXPECT_EQ(-EAGAIN, ret);
		EXPECT_EQ(MANY, got);
		ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	}
}

TEST_HARNESS_MAIN
