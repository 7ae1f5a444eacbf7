// SPDX-License-Identifier: LGPL-2.1-or-later
/* An open file becomes a queue by EXPIRY_IOC_CONFIG: once, and validly. */
#include "device.h"

FIXTURE(config) {
	int fd;
};

FIXTURE_SETUP(config)
{
	self->fd = queue_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(config)
{
	close(self->fd);
}

TEST_F(config, every_clock_and_mode_is_taken)
{
	static const __u32 clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
	};
	struct expiry_stat stat;
	unsigned int i, mode;
	int fd;

	for (i = 0; i < ARRAY_SIZE(clocks); i++) {
		for (mode = 0; mode <= EXPIRY_MODE_ALL; mode++) {
			if (mode & ~EXPIRY_MODE_ALL)
				continue;
			fd = queue_new_flags(clocks[i], mode, 0);
			ASSERT_LE(0, fd);
			ASSERT_EQ(0, queue_stat(fd, &stat));
			EXPECT_EQ(clocks[i], stat.clock_id);
			EXPECT_EQ(mode, stat.mode);
			close(fd);
		}
	}
}

TEST_F(config, unknown_clock_is_refused)
{
	__u32 clock;

	for (clock = 0; clock < 64; clock++) {
		if (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ||
		    clock == CLOCK_BOOTTIME || clock == CLOCK_BOOTTIME_ALARM)
			continue;
		EXPECT_EQ(-EINVAL, queue_config(self->fd, clock, 0, 0));
	}
	EXPECT_EQ(-EINVAL, queue_config(self->fd, ~0U, 0, 0));
	EXPECT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
}

TEST_F(config, unknown_mode_bit_is_refused)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if ((1U << bit) & EXPIRY_MODE_ALL)
			continue;
		EXPECT_EQ(-EINVAL, queue_config(self->fd, CLOCK_MONOTONIC,
						1U << bit, 0));
	}
	EXPECT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
}

TEST_F(config, reserved_must_be_zero)
{
	struct expiry_config config = { .clock_id = CLOCK_MONOTONIC };
	int bit;

	for (bit = 0; bit < 32; bit++) {
		config.reserved = 1U << bit;
		EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_CONFIG, &config));
		EXPECT_EQ(EINVAL, errno);
	}
}

/* The alarm of a suspended machine: by privilege, and where there is a clock for it. */
TEST_F(config, alarm_clock_takes_its_capability)
{
	struct expiry_record record = arm_in(20 * NSEC_PER_MSEC, 1);
	struct expiry_features info;
	bool has_alarm;
	pid_t pid;
	int fd;

	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_FEATURES, &info));
	has_alarm = info.clocks >> CLOCK_BOOTTIME_ALARM & 1;
	if (geteuid())
		SKIP(return, "not root");
	pid = fork();
	if (!pid) {
		fd = queue_open(O_NONBLOCK);
		if (fd < 0 || setresuid(65534, 65534, 65534))
			_exit(1);
		_exit(queue_config(fd, CLOCK_BOOTTIME_ALARM, 0, 0) == -EPERM ?
		      0 : 2);
	}
	EXPECT_EQ(0, child_status(pid));
	EXPECT_EQ(has_alarm ? 0 : -EOPNOTSUPP,
		  queue_config(self->fd, CLOCK_BOOTTIME_ALARM, 0, 0));
	if (!has_alarm)
		SKIP(return, "no clock of this machine can wake it");
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_BOOTTIME));
	/* One that is set, moved and never fires. */
	record = arm_in(HOUR_NS, 2);
	ASSERT_EQ(0, request(self->fd, &record));
	record = ask(EXPIRY_OP_REFRESH, record.id);
	record.deadline_ns = clock_ns(CLOCK_BOOTTIME) + 20 * NSEC_PER_MSEC;
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(2, record.cookie);
	record = arm_in(HOUR_NS, 3);
	ASSERT_EQ(0, request(self->fd, &record));
}

TEST_F(config, bad_address_is_efault_and_configures_nothing)
{
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_CONFIG, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_CONFIG, -4096L));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
}

TEST_F(config, second_time_is_busy_and_changes_nothing)
{
	struct expiry_stat stat;

	ASSERT_EQ(0, queue_config(self->fd, CLOCK_BOOTTIME, EXPIRY_MODE_ACK,
				  100));
	EXPECT_EQ(-EBUSY, queue_config(self->fd, CLOCK_BOOTTIME,
				       EXPIRY_MODE_ACK, 100));
	EXPECT_EQ(-EBUSY, queue_config(self->fd, CLOCK_MONOTONIC, 0, 7));
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(CLOCK_BOOTTIME, stat.clock_id);
	EXPECT_EQ(EXPIRY_MODE_ACK, stat.mode);
	EXPECT_EQ(100, stat.limit);
}

TEST_F(config, limit_in_force_comes_back)
{
	struct expiry_config config = { .clock_id = CLOCK_MONOTONIC };
	struct expiry_stat stat;

	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_CONFIG, &config));
	EXPECT_NE(0, config.limit);
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(config.limit, stat.limit);
}

TEST_F(config, nothing_works_before_it)
{
	struct expiry_record record = arm_in(0, 1);
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)&record,
		.count = 1,
	};
	struct expiry_stat stat;

	EXPECT_EQ(-ENOTCONN, submit(self->fd, &record, 1));
	EXPECT_EQ(0, record.status);
	EXPECT_EQ(-ENOTCONN, receive(self->fd, &record, 1));
	EXPECT_EQ(-ENOTCONN, queue_stat(self->fd, &stat));
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_SCAN, &scan));
	EXPECT_EQ(ENOTCONN, errno);
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_REWIND));
	EXPECT_EQ(ENOTCONN, errno);
	EXPECT_EQ(0, queue_poll(self->fd, 0) & POLLIN);
	EXPECT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
}

TEST_F(config, failed_attempt_leaves_it_to_do)
{
	struct expiry_record record = arm_in(0, 1);

	EXPECT_EQ(-EINVAL, queue_config(self->fd, 99, 0, 0));
	EXPECT_EQ(-ENOTCONN, submit(self->fd, &record, 1));
	EXPECT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC, 0, 0));
	EXPECT_EQ(0, request(self->fd, &record));
}

TEST_F(config, unknown_ioctl_is_enotty)
{
	char space[4096] = { 0 };

	EXPECT_EQ(-1, ioctl(self->fd, _IO(EXPIRY_IOC_MAGIC, 99), space));
	EXPECT_EQ(ENOTTY, errno);
	/* The number is known, the direction is not. */
	EXPECT_EQ(-1, ioctl(self->fd, _IOR(EXPIRY_IOC_MAGIC, 1, char[8]),
			    space));
	EXPECT_EQ(ENOTTY, errno);
	/* Nor has a command without a struct a size. */
	EXPECT_EQ(-1, ioctl(self->fd, _IOC(_IOC_NONE, EXPIRY_IOC_MAGIC, 5, 8),
			    space));
	EXPECT_EQ(ENOTTY, errno);
}

TEST_HARNESS_MAIN
