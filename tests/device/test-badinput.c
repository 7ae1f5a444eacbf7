// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Records that must be refused: each op with each possible fault. Only the
 * status of a refused record changes, and the queue does not.
 */
#include "device.h"

FIXTURE(badinput) {
	int fd;
	__u64 id;		/* armed, an hour away */
	__u64 stale;		/* cancelled */
};

FIXTURE_VARIANT(badinput) {
	__u32 mode;
};

FIXTURE_VARIANT_ADD(badinput, plain) {
	.mode = 0,
};

FIXTURE_VARIANT_ADD(badinput, ack) {
	.mode = EXPIRY_MODE_ACK,
};

FIXTURE_VARIANT_ADD(badinput, keyed) {
	.mode = EXPIRY_MODE_KEYED,
};

FIXTURE_VARIANT_ADD(badinput, keyed_ack) {
	.mode = EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK,
};

static __u64 arm(int fd, __u64 key)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);

	record.id = key;
	return request(fd, &record) ? 0 : record.id;
}

FIXTURE_SETUP(badinput)
{
	struct expiry_record record;
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;

	self->fd = queue_new(variant->mode);
	ASSERT_LE(0, self->fd);
	self->stale = arm(self->fd, keyed ? 1001 : 0);
	ASSERT_NE(0, self->stale);
	record = ask(EXPIRY_OP_CANCEL, self->stale);
	ASSERT_EQ(0, request(self->fd, &record));
	self->id = arm(self->fd, keyed ? 1002 : 0);
	ASSERT_NE(0, self->id);
}

FIXTURE_TEARDOWN(badinput)
{
	close(self->fd);
}

/* Returns a valid request, so that only the one fault is wrong. */
static struct expiry_record good(__u8 op, __u64 id, bool keyed)
{
	struct expiry_record record = ask(op, id);

	if (op == EXPIRY_OP_ARM) {
		record.id = keyed ? 1003 : 0;
		record.deadline_ns = EXPIRY_NEVER;
	}
	if (op == EXPIRY_OP_REFRESH)
		record.deadline_ns = EXPIRY_NEVER;
	record.cookie = 0xc00c1e;
	return record;
}

#define EXPECT_REFUSED(error, record) do {				\
	struct expiry_record __sent = (record);				\
	struct expiry_record __reply = __sent;				\
									\
	EXPECT_EQ(error, request(self->fd, &__reply)) {			\
		TH_LOG("op %u flags %#x id %#llx", __sent.op,		\
		       __sent.flags, (unsigned long long)__sent.id);	\
	}								\
	__reply.status = __sent.status;					\
	EXPECT_EQ(0, memcmp(&__sent, &__reply, RECORD));		\
} while (0)

static bool flag_allowed(__u8 op, __u8 flag, bool keyed)
{
	switch (op) {
	case EXPIRY_OP_ARM:
		return flag == EXPIRY_F_RELATIVE || flag == EXPIRY_F_LATER ||
		       (flag == EXPIRY_F_NEW && keyed);
	case EXPIRY_OP_REFRESH:
		return flag == EXPIRY_F_RELATIVE || flag == EXPIRY_F_LATER;
	default:
		return false;
	}
}

TEST_F(badinput, flags_that_mean_nothing_for_the_op)
{
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	struct expiry_record record;
	int op, bit;

	for (op = EXPIRY_OP_ARM; op <= EXPIRY_OP_CLEAR; op++) {
		for (bit = 0; bit < 8; bit++) {
			if (flag_allowed(op, 1 << bit, keyed))
				continue;
			record = good(op, self->id, keyed);
			record.flags = 1 << bit;
			EXPECT_REFUSED(-EINVAL, record);
			record.flags = EXPIRY_F_RELATIVE | 1 << bit;
			EXPECT_REFUSED(-EINVAL, record);
		}
	}
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(badinput, status_not_zero)
{
	static const __s16 statuses[] = { 1, -1, -22, 32767, -32768 };
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	struct expiry_record record;
	unsigned int i;
	int op;

	for (op = EXPIRY_OP_ARM; op <= EXPIRY_OP_CLEAR; op++) {
		for (i = 0; i < ARRAY_SIZE(statuses); i++) {
			record = good(op, self->id, keyed);
			record.status = statuses[i];
			EXPECT_REFUSED(-EINVAL, record);
		}
	}
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(badinput, unknown_ops)
{
	struct expiry_record record;
	int op;

	for (op = 0; op < 256; op++) {
		if (op >= EXPIRY_OP_ARM && op <= EXPIRY_OP_CLEAR)
			continue;
		record = good(op, self->id, false);
		EXPECT_REFUSED(-EOPNOTSUPP, record);
	}
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(badinput, id_0_is_never_a_timer)
{
	static const __u8 ops[] = {
		EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL, EXPIRY_OP_QUERY,
	};
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		EXPECT_REFUSED(-EINVAL, good(ops[i], 0, keyed));
	EXPECT_REFUSED(-EINVAL, good(EXPIRY_OP_ACK, 0, keyed));
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(badinput, arm_with_an_id_on_plain_or_without_one_on_keyed)
{
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	struct expiry_record record = good(EXPIRY_OP_ARM, 0, keyed);

	record.id = keyed ? 0 : 1;
	EXPECT_REFUSED(-EINVAL, record);
	if (!keyed) {
		record.id = self->id;
		EXPECT_REFUSED(-EINVAL, record);
		record.id = self->stale;
		EXPECT_REFUSED(-EINVAL, record);
	}
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(badinput, ids_that_name_no_timer)
{
	static const __u8 ops[] = {
		EXPIRY_OP_REFRESH, EXPIRY_OP_CANCEL, EXPIRY_OP_QUERY,
		EXPIRY_OP_ACK,
	};
	const __u64 ids[] = {
		self->stale,			/* slot perhaps taken again */
		self->id + (1ULL << 32),	/* another generation */
		self->id ^ (1ULL << 63),
		(self->id >> 32 << 32) + 2,	/* a slot never used */
		(self->id >> 32 << 32) + 1000000, /* beyond the table */
		(self->id >> 32 << 32) | 0xffffffff,
		self->id >> 32 << 32 | 0,	/* slot 0 */
		(__u32)self->id | 1ULL << 40,
		~0ULL,
		1ULL << 32,
	};
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		for (j = 0; j < ARRAY_SIZE(ids); j++) {
			if (!ids[j] || ids[j] == self->id)
				continue;
			if (ops[i] == EXPIRY_OP_ACK &&
			    !(variant->mode & EXPIRY_MODE_ACK))
				EXPECT_REFUSED(-EINVAL,
					       good(ops[i], ids[j], keyed));
			else
				EXPECT_REFUSED(-ENOENT,
					       good(ops[i], ids[j], keyed));
		}
	}
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(badinput, ack_of_an_armed_timer)
{
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;

	if (variant->mode & EXPIRY_MODE_ACK)
		EXPECT_REFUSED(-ENOENT, good(EXPIRY_OP_ACK, self->id, keyed));
	else
		EXPECT_REFUSED(-EINVAL, good(EXPIRY_OP_ACK, self->id, keyed));
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(badinput, deadline_0_is_due_at_once_and_never_is_never)
{
	const __u64 far[] = {
		EXPIRY_NEVER, EXPIRY_NEVER - 1, 1ULL << 63, (1ULL << 63) - 1,
		(1ULL << 63) + 1,
	};
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	struct expiry_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(far); i++) {
		record = arm_at(far[i], i);
		record.id = keyed ? 2000 + i : 0;
		ASSERT_EQ(0, request(self->fd, &record));
		EXPECT_EQ(far[i], record.deadline_ns);
		/* The sum is far beyond the end of time, too. */
		record = arm_in(far[i], i);
		record.id = keyed ? 3000 + i : 0;
		ASSERT_EQ(0, request(self->fd, &record));
		EXPECT_LE(far[i], record.deadline_ns);
	}
	EXPECT_EQ(0, queue_poll(self->fd, QUIET_MS));
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));

	record = arm_at(0, 99);
	record.id = keyed ? 4000 : 0;
	ASSERT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(0, record.deadline_ns);
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(99, record.cookie);
	EXPECT_EQ(0, record.deadline_ns);
	EXPECT_EQ(-EAGAIN, receive(self->fd, &record, 1));
}

TEST_F(badinput, refusals_are_counted_and_good_records_beside_them_work)
{
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	struct expiry_record records[3] = {
		good(EXPIRY_OP_ARM, 0, keyed),
		ask(EXPIRY_OP_CANCEL, self->stale),
		ask(EXPIRY_OP_QUERY, self->id),
	};
	struct expiry_stat before, after;

	ASSERT_EQ(0, queue_stat(self->fd, &before));
	records[0].flags = 0x80;
	ASSERT_EQ(3, submit(self->fd, records, 3));
	EXPECT_EQ(-EINVAL, records[0].status);
	EXPECT_EQ(-ENOENT, records[1].status);
	EXPECT_EQ(0, records[2].status);
	ASSERT_EQ(0, queue_stat(self->fd, &after));
	EXPECT_EQ(before.refused + 2, after.refused);
	EXPECT_EQ(before.refused_limit, after.refused_limit);
}

TEST_HARNESS_MAIN
