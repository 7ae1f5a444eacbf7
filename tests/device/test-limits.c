// SPDX-License-Identifier: LGPL-2.1-or-later
/* A queue's limit: which timers count, which are refused, and who may have
 * more.
 */
#include "device.h"

#include <sys/syscall.h>
#include <linux/capability.h>

#define LIMIT	10

FIXTURE(limits) {
	int fd;
};

FIXTURE_VARIANT(limits) {
	__u32 mode;
};

FIXTURE_VARIANT_ADD(limits, ack) {
	.mode = EXPIRY_MODE_ACK,
};

FIXTURE_VARIANT_ADD(limits, keyed_ack) {
	.mode = EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK,
};

FIXTURE_SETUP(limits)
{
	self->fd = queue_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, variant->mode,
				  LIMIT));
}

FIXTURE_TEARDOWN(limits)
{
	close(self->fd);
}

static struct expiry_record arm_nr(__u32 mode, unsigned int i, __u64 deadline)
{
	struct expiry_record record = arm_at(deadline, i);

	if (mode & EXPIRY_MODE_KEYED)
		record.id = i + 1;
	return record;
}

TEST_F(limits, one_more_is_enospc_and_counted)
{
	struct expiry_record records[LIMIT + 5], record;
	struct expiry_stat stat;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(records); i++)
		records[i] = arm_nr(variant->mode, i, EXPIRY_NEVER);
	ASSERT_EQ(ARRAY_SIZE(records),
		  submit(self->fd, records, ARRAY_SIZE(records)));
	for (i = 0; i < LIMIT; i++)
		EXPECT_EQ(0, records[i].status);
	for (; i < ARRAY_SIZE(records); i++)
		EXPECT_EQ(-ENOSPC, records[i].status);
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(LIMIT, stat.armed);
	EXPECT_EQ(LIMIT, stat.limit);
	EXPECT_EQ(5, stat.refused);
	EXPECT_EQ(5, stat.refused_limit);

	/* Full, but everything else works, and a timer can be removed. */
	record = ask(EXPIRY_OP_REFRESH, records[0].id);
	record.deadline_ns = EXPIRY_NEVER - 1;
	EXPECT_EQ(0, request(self->fd, &record));
	record = ask(EXPIRY_OP_CANCEL, records[0].id);
	EXPECT_EQ(0, request(self->fd, &record));
	record = arm_nr(variant->mode, 50, EXPIRY_NEVER);
	EXPECT_EQ(0, request(self->fd, &record));
	record = arm_nr(variant->mode, 51, EXPIRY_NEVER);
	EXPECT_EQ(-ENOSPC, request(self->fd, &record));
}

TEST_F(limits, delivered_and_not_acknowledged_counts)
{
	struct expiry_record record;
	unsigned int i;
	__u64 id;

	for (i = 0; i < LIMIT; i++) {
		record = arm_nr(variant->mode, i, 0);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	}
	EXPECT_EQ(0, queue_armed(self->fd));
	id = record.id;
	record = arm_nr(variant->mode, 70, 0);
	EXPECT_EQ(-ENOSPC, request(self->fd, &record));
	record = ask(EXPIRY_OP_ACK, id);
	EXPECT_EQ(0, request(self->fd, &record));
	record = arm_nr(variant->mode, 70, 0);
	EXPECT_EQ(0, request(self->fd, &record));
	EXPECT_EQ(1, receive_wait(self->fd, &record, 1));
}

TEST_F(limits, refreshing_for_ever_does_not_use_it_up)
{
	struct expiry_record record = arm_nr(variant->mode, 0, EXPIRY_NEVER);
	struct expiry_stat stat;
	unsigned int i;
	__u64 id;

	ASSERT_EQ(0, request(self->fd, &record));
	id = record.id;
	/* Earlier each time, which leaves a stale node behind. */
	for (i = 1; i < 20000; i++) {
		record = ask(EXPIRY_OP_REFRESH, id);
		record.deadline_ns = EXPIRY_NEVER - i;
		ASSERT_EQ(0, request(self->fd, &record));
	}
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(1, stat.armed);
	EXPECT_GE(4096, stat.nodes);
	for (i = 1; i < LIMIT; i++) {
		record = arm_nr(variant->mode, i, EXPIRY_NEVER);
		ASSERT_EQ(0, request(self->fd, &record));
	}
}

static int drop_capability(int cap)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[cap / 32].effective &= ~(1U << cap % 32);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static __u64 module_maximum(void)
{
	FILE *file = fopen("/sys/module/expiry/parameters/timers_max", "r");
	unsigned long long maximum = 0;

	if (file) {
		if (fscanf(file, "%llu", &maximum) != 1)
			maximum = 0;
		fclose(file);
	}
	return maximum;
}

TEST(more_than_the_maximum_needs_a_capability)
{
	__u64 maximum = module_maximum();
	int fd;

	if (!maximum)
		SKIP(return, "the module does not tell its maximum");
	fd = queue_open(0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, queue_config(fd, CLOCK_MONOTONIC, 0, maximum + 1));
	close(fd);

	fd = queue_open(0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, drop_capability(CAP_SYS_RESOURCE));
	EXPECT_EQ(-EPERM, queue_config(fd, CLOCK_MONOTONIC, 0, maximum + 1));
	EXPECT_EQ(0, queue_config(fd, CLOCK_MONOTONIC, 0, maximum));
	close(fd);
}

TEST(absurd_limits_are_refused)
{
	static const __u64 limits[] = { 1ULL << 40, 1ULL << 63, ~0ULL };
	unsigned int i;
	int fd = queue_open(0);

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(limits); i++)
		EXPECT_EQ(-EINVAL,
			  queue_config(fd, CLOCK_MONOTONIC, 0, limits[i]));
	EXPECT_EQ(0, queue_config(fd, CLOCK_MONOTONIC, 0, 1000));
	close(fd);
}

TEST(upsert_of_a_full_queue_works)
{
	struct expiry_record record;
	unsigned int i;
	int fd = queue_open(O_NONBLOCK);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, queue_config(fd, CLOCK_MONOTONIC, EXPIRY_MODE_KEYED,
				  LIMIT));
	for (i = 0; i < LIMIT; i++) {
		record = arm_nr(EXPIRY_MODE_KEYED, i, EXPIRY_NEVER);
		ASSERT_EQ(0, request(fd, &record));
	}
	record = arm_nr(EXPIRY_MODE_KEYED, 3, EXPIRY_NEVER - 7);
	EXPECT_EQ(0, request(fd, &record));
	record = arm_nr(EXPIRY_MODE_KEYED, LIMIT, EXPIRY_NEVER);
	EXPECT_EQ(-ENOSPC, request(fd, &record));
	close(fd);
}

TEST_HARNESS_MAIN
