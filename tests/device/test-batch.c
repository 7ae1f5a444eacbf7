// SPDX-License-Identifier: LGPL-2.1-or-later
/* Batches by EXPIRY_IOC_SUBMIT: each record answered in place. */
#include "device.h"

FIXTURE(batch) {
	int fd;
};

FIXTURE_SETUP(batch)
{
	self->fd = queue_new(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(batch)
{
	close(self->fd);
}

TEST_F(batch, arm_gives_id_and_absolute_deadline)
{
	__u64 before = clock_ns(CLOCK_MONOTONIC);
	struct expiry_record record = arm_in(HOUR_NS, 42);

	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(EXPIRY_OP_ARM, record.op);
	EXPECT_EQ(0, record.flags);
	EXPECT_NE(0, record.id);
	EXPECT_NE(0, (__u32)record.id);
	EXPECT_EQ(42, record.cookie);
	EXPECT_LE(before + HOUR_NS, record.deadline_ns);
	EXPECT_GE(clock_ns(CLOCK_MONOTONIC) + HOUR_NS, record.deadline_ns);

	record = arm_at(before + HOUR_NS, 43);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(before + HOUR_NS, record.deadline_ns);
	EXPECT_EQ(2, queue_armed(self->fd));
}

TEST_F(batch, query_tells_what_is_armed)
{
	struct expiry_record armed = arm_at(HOUR_NS * 1000000, 7);
	struct expiry_record query;

	armed.period_ms = 5000;
	ASSERT_EQ(0, request(self->fd, &armed));
	query = ask(EXPIRY_OP_QUERY, armed.id);
	ASSERT_EQ(0, request(self->fd, &query));
	EXPECT_EQ(armed.id, query.id);
	EXPECT_EQ(armed.deadline_ns, query.deadline_ns);
	EXPECT_EQ(7, query.cookie);
	EXPECT_EQ(5000, query.period_ms);
	EXPECT_EQ(0, query.flags);
}

TEST_F(batch, refresh_moves_later_and_earlier)
{
	__u64 base = clock_ns(CLOCK_MONOTONIC) + HOUR_NS;
	struct expiry_record armed = arm_at(base, 9);
	struct expiry_record record;

	ASSERT_EQ(0, request(self->fd, &armed));
	record = ask(EXPIRY_OP_REFRESH, armed.id);
	record.deadline_ns = base + HOUR_NS;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base + HOUR_NS, record.deadline_ns);
	EXPECT_EQ(9, record.cookie);

	record = ask(EXPIRY_OP_REFRESH, armed.id);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, record.deadline_ns);
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(EXPIRY_OP_EXPIRED, record.op);
	EXPECT_EQ(armed.id, record.id);
	EXPECT_EQ(0, record.deadline_ns);
	EXPECT_EQ(9, record.cookie);
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(batch, relative_refresh_counts_from_now)
{
	struct expiry_record armed = arm_in(HOUR_NS, 1);
	struct expiry_record record;
	__u64 before;

	ASSERT_EQ(0, request(self->fd, &armed));
	before = clock_ns(CLOCK_MONOTONIC);
	record = ask(EXPIRY_OP_REFRESH, armed.id);
	record.flags = EXPIRY_F_RELATIVE;
	record.deadline_ns = 2 * HOUR_NS;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, record.flags);
	EXPECT_LE(before + 2 * HOUR_NS, record.deadline_ns);
	EXPECT_GE(clock_ns(CLOCK_MONOTONIC) + 2 * HOUR_NS, record.deadline_ns);
}

TEST_F(batch, refresh_with_later_never_brings_forward)
{
	__u64 base = clock_ns(CLOCK_MONOTONIC) + 10 * HOUR_NS;
	struct expiry_record armed = arm_at(base, 1);
	struct expiry_record record;

	ASSERT_EQ(0, request(self->fd, &armed));
	record = ask(EXPIRY_OP_REFRESH, armed.id);
	record.flags = EXPIRY_F_LATER;
	record.deadline_ns = base - HOUR_NS;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base, record.deadline_ns);

	record = ask(EXPIRY_OP_REFRESH, armed.id);
	record.flags = EXPIRY_F_LATER;
	record.deadline_ns = base + HOUR_NS;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base + HOUR_NS, record.deadline_ns);

	record = ask(EXPIRY_OP_QUERY, armed.id);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(base + HOUR_NS, record.deadline_ns);
}

TEST_F(batch, cancel_hands_back_what_it_had)
{
	struct expiry_record armed = arm_in(HOUR_NS, 77);
	struct expiry_record record;

	ASSERT_EQ(0, request(self->fd, &armed));
	record = ask(EXPIRY_OP_CANCEL, armed.id);
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(armed.deadline_ns, record.deadline_ns);
	EXPECT_EQ(77, record.cookie);
	EXPECT_EQ(0, queue_armed(self->fd));

	record = ask(EXPIRY_OP_CANCEL, armed.id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
	record = ask(EXPIRY_OP_QUERY, armed.id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
	record = ask(EXPIRY_OP_REFRESH, armed.id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
}

TEST_F(batch, delivered_timer_is_gone)
{
	struct expiry_record record = arm_in(0, 1);
	__u64 id;

	ASSERT_EQ(0, request(self->fd, &record));
	id = record.id;
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	record = ask(EXPIRY_OP_CANCEL, id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
	record = ask(EXPIRY_OP_REFRESH, id);
	EXPECT_EQ(-ENOENT, request(self->fd, &record));
}

TEST_F(batch, due_timer_can_be_cancelled_until_it_is_read)
{
	struct expiry_record record = arm_in(0, 1);

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(POLLIN, queue_poll(self->fd, WAIT_MS));
	record = ask(EXPIRY_OP_CANCEL, record.id);
	EXPECT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(batch, clear_says_how_many)
{
	static struct expiry_record records[1000];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(records); i++)
		records[i] = arm_in(i % 2 ? 0 : HOUR_NS, i);
	ASSERT_EQ(ARRAY_SIZE(records),
		  submit(self->fd, records, ARRAY_SIZE(records)));
	records[0] = ask(EXPIRY_OP_CLEAR, 0);
	ASSERT_EQ(0, request(self->fd, &records[0]));
	EXPECT_EQ(ARRAY_SIZE(records), records[0].cookie);
	EXPECT_EQ(0, queue_armed(self->fd));
	EXPECT_EQ(-EAGAIN, receive(self->fd, records, 1));
	EXPECT_EQ(0, queue_poll(self->fd, 0));
	records[1].op = EXPIRY_OP_QUERY;
	records[1].flags = 0;
	EXPECT_EQ(-ENOENT, request(self->fd, &records[1]));
	records[0] = ask(EXPIRY_OP_CLEAR, 0);
	ASSERT_EQ(0, request(self->fd, &records[0]));
	EXPECT_EQ(0, records[0].cookie);
}

TEST_F(batch, each_record_has_its_own_status)
{
	struct expiry_record records[] = {
		arm_in(HOUR_NS, 1),
		ask(EXPIRY_OP_CANCEL, 0x123400000001ULL),
		ask(99, 0),
		arm_in(HOUR_NS, 2),
		ask(EXPIRY_OP_ACK, 1),
		ask(EXPIRY_OP_CLEAR, 0),
	};

	ASSERT_EQ(ARRAY_SIZE(records),
		  submit(self->fd, records, ARRAY_SIZE(records)));
	EXPECT_EQ(0, records[0].status);
	EXPECT_EQ(-ENOENT, records[1].status);
	EXPECT_EQ(-EOPNOTSUPP, records[2].status);
	EXPECT_EQ(0, records[3].status);
	EXPECT_EQ(-EINVAL, records[4].status);
	EXPECT_EQ(0, records[5].status);
	EXPECT_EQ(2, records[5].cookie);
}

TEST_F(batch, largest_batch_is_processed_whole)
{
	struct expiry_record *records;
	unsigned int i, bad = 0;

	records = calloc(EXPIRY_BATCH_MAX, RECORD);
	ASSERT_NE(NULL, records);
	for (i = 0; i < EXPIRY_BATCH_MAX; i++)
		records[i] = arm_in(HOUR_NS + i, i);
	ASSERT_EQ(EXPIRY_BATCH_MAX,
		  submit(self->fd, records, EXPIRY_BATCH_MAX));
	for (i = 0; i < EXPIRY_BATCH_MAX; i++)
		bad += records[i].status || !records[i].id ||
		       records[i].cookie != i;
	EXPECT_EQ(0, bad);
	EXPECT_EQ(EXPIRY_BATCH_MAX, queue_armed(self->fd));
	free(records);
}

TEST_F(batch, cancelled_slots_are_used_again_under_new_ids)
{
	struct expiry_record record;
	__u64 last = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		record = arm_in(HOUR_NS, i);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_NE(last, record.id);
		last = record.id;
		record = ask(EXPIRY_OP_CANCEL, last);
		ASSERT_EQ(0, request(self->fd, &record));
	}
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_HARNESS_MAIN
