// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keyed queues: the client names the timers, ARM is an upsert. */
#include "device.h"

FIXTURE(keyed) {
	int fd;
};

FIXTURE_SETUP(keyed)
{
	self->fd = queue_new(EXPIRY_MODE_KEYED);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(keyed)
{
	close(self->fd);
}

static struct expiry_record arm_key(__u64 id, __u64 deadline_ns, __u64 cookie)
{
	struct expiry_record record = arm_at(deadline_ns, cookie);

	record.id = id;
	return record;
}

TEST_F(keyed, any_id_but_0_will_do)
{
	static const __u64 ids[] = {
		1, 2, 0xffffffff, 1ULL << 32, 1ULL << 63, ~0ULL,
		0x0000000100000001ULL, 0xdeadbeefcafef00dULL,
	};
	struct expiry_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		record = arm_key(ids[i], EXPIRY_NEVER - i, i);
		ASSERT_EQ(0, request(self->fd, &record));
		EXPECT_EQ(ids[i], record.id);
	}
	EXPECT_EQ(ARRAY_SIZE(ids), queue_armed(self->fd));
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		record = ask(EXPIRY_OP_QUERY, ids[i]);
		ASSERT_EQ(0, request(self->fd, &record));
		EXPECT_EQ(i, record.cookie);
		EXPECT_EQ(EXPIRY_NEVER - i, record.deadline_ns);
	}
}

TEST_F(keyed, arm_replaces_in_place)
{
	__u64 base = clock_ns(CLOCK_MONOTONIC) + HOUR_NS;
	struct expiry_record record = arm_key(5, base, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	record = arm_key(5, base + HOUR_NS, 2);
	record.period_ms = 77;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(1, queue_armed(self->fd));
	record = ask(EXPIRY_OP_QUERY, 5);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base + HOUR_NS, record.deadline_ns);
	EXPECT_EQ(2, record.cookie);
	EXPECT_EQ(77, record.period_ms);

	/* Earlier again, and once: exactly one expiration. */
	record = arm_key(5, 0, 3);
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(5, record.id);
	EXPECT_EQ(3, record.cookie);
	EXPECT_EQ(0, record.period_ms);
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(keyed, new_refuses_an_armed_id)
{
	struct expiry_record record = arm_key(5, EXPIRY_NEVER, 1);

	record.flags = EXPIRY_F_NEW;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, record.flags);
	record = arm_key(5, 0, 2);
	record.flags = EXPIRY_F_NEW;
	EXPECT_EQ(-EEXIST, request(self->fd, &record));
	EXPECT_EQ(EXPIRY_F_NEW, record.flags);
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
	record = ask(EXPIRY_OP_CANCEL, 5);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(1, record.cookie);
	record = arm_key(5, EXPIRY_NEVER, 3);
	record.flags = EXPIRY_F_NEW;
	EXPECT_EQ(0, request(self->fd, &record));
}

TEST_F(keyed, later_never_brings_forward)
{
	__u64 base = clock_ns(CLOCK_MONOTONIC) + 10 * HOUR_NS;
	struct expiry_record record = arm_key(5, base, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	record = arm_key(5, base - HOUR_NS, 2);
	record.flags = EXPIRY_F_LATER;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base, record.deadline_ns);
	EXPECT_EQ(0, record.flags);
	record = arm_key(5, base + HOUR_NS, 3);
	record.flags = EXPIRY_F_LATER;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base + HOUR_NS, record.deadline_ns);
	/* On an id that is not armed there is nothing to be later than. */
	record = arm_key(6, base - HOUR_NS, 4);
	record.flags = EXPIRY_F_LATER;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base - HOUR_NS, record.deadline_ns);
	EXPECT_EQ(2, queue_armed(self->fd));
}

TEST_F(keyed, delivered_id_can_be_armed_again)
{
	struct expiry_record record;
	int i;

	for (i = 0; i < 100; i++) {
		record = arm_key(5, 0, i);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
		ASSERT_EQ(5, record.id);
		ASSERT_EQ(i, record.cookie);
		record = ask(EXPIRY_OP_CANCEL, 5);
		ASSERT_EQ(-ENOENT, request(self->fd, &record));
	}
}

TEST_F(keyed, arm_acknowledges_what_was_delivered_before)
{
	int fd = queue_new(EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK);
	struct expiry_record record = arm_key(5, 0, 1);
	struct expiry_stat stat;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, request(fd, &record));
	ASSERT_EQ(1, receive_wait(fd, &record, 1));
	ASSERT_EQ(0, queue_stat(fd, &stat));
	EXPECT_EQ(0, stat.armed);
	EXPECT_EQ(1, stat.unacked);

	record = arm_key(5, EXPIRY_NEVER, 2);
	ASSERT_EQ(0, request(fd, &record));
	ASSERT_EQ(0, queue_stat(fd, &stat));
	EXPECT_EQ(1, stat.armed);
	EXPECT_EQ(0, stat.unacked);
	record = ask(EXPIRY_OP_ACK, 5);
	EXPECT_EQ(-ENOENT, request(fd, &record));
	ASSERT_EQ(0, ioctl(fd, EXPIRY_IOC_REWIND));
	EXPECT_EQ(-EAGAIN, receive(fd, &record, 1));
	close(fd);
}

TEST_F(keyed, twenty_thousand_ids_are_kept_apart)
{
	const unsigned int count = 20000;
	struct expiry_record *records = calloc(count, RECORD);
	unsigned int i, bad = 0;

	ASSERT_NE(NULL, records);
	for (i = 0; i < count; i++)
		records[i] = arm_key((i + 1) * 0x9e3779b97f4a7c15ULL,
				     EXPIRY_NEVER - i, i);
	ASSERT_EQ(count, submit(self->fd, records, count));
	EXPECT_EQ(count, queue_armed(self->fd));

	for (i = 0; i < count; i += 2)
		records[i] = ask(EXPIRY_OP_CANCEL, records[i].id);
	for (i = 1; i < count; i += 2)
		records[i] = ask(EXPIRY_OP_QUERY, records[i].id);
	ASSERT_EQ(count, submit(self->fd, records, count));
	for (i = 0; i < count; i++)
		bad += records[i].status || records[i].cookie != i ||
		       records[i].deadline_ns != EXPIRY_NEVER - i;
	EXPECT_EQ(0, bad);
	EXPECT_EQ(count / 2, queue_armed(self->fd));

	for (i = 0; i < count; i++)
		records[i] = ask(EXPIRY_OP_QUERY, records[i].id);
	ASSERT_EQ(count, submit(self->fd, records, count));
	for (i = 0; i < count; i++)
		bad += records[i].status != (i % 2 ? 0 : -ENOENT);
	EXPECT_EQ(0, bad);
	free(records);
}

TEST_HARNESS_MAIN
