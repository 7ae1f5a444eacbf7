// SPDX-License-Identifier: LGPL-2.1-or-later
/* A queue is its open file: shared by fork, dup and passing, gone at the end. */
#include "device.h"

#include <sys/socket.h>

FIXTURE(lifetime) {
	int fd;
};

FIXTURE_SETUP(lifetime)
{
	self->fd = queue_new(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(lifetime)
{
	close(self->fd);
}

TEST_F(lifetime, each_open_is_a_queue_of_its_own)
{
	int other = queue_new(0);
	struct expiry_record record = arm_at(0, 1), query;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, request(self->fd, &record));
	query = ask(EXPIRY_OP_QUERY, record.id);
	EXPECT_EQ(-ENOENT, request(other, &query));
	EXPECT_EQ(0, queue_armed(other));
	EXPECT_EQ(0, queue_poll(other, 0));
	EXPECT_EQ(-EAGAIN, receive(other, &query, 1));
	EXPECT_EQ(1, receive_wait(self->fd, &record, 1));
	close(other);
}

TEST_F(lifetime, child_has_the_same_queue)
{
	struct expiry_record record = arm_at(0, 7);
	pid_t pid;

	ASSERT_EQ(0, request(self->fd, &record));
	pid = fork();
	if (!pid) {
		if (receive_wait(self->fd, &record, 1) != 1 ||
		    record.cookie != 7)
			_exit(1);
		record = arm_at(0, 8);
		_exit(request(self->fd, &record) ? 2 : 0);
	}
	ASSERT_EQ(0, child_status(pid));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(8, record.cookie);
}

TEST_F(lifetime, queue_outlives_the_process_that_opened_it)
{
	struct expiry_record record;
	int pair[2], fd, queue = -1;
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = fork();
	if (!pid) {
		fd = queue_new(0);
		record = arm_in(50 * NSEC_PER_MSEC, 99);
		if (fd < 0 || request(fd, &record))
			_exit(1);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
		_exit(sendmsg(pair[1], &msg, 0) == 1 ? 0 : 2);
	}
	ASSERT_EQ(0, child_status(pid));
	ASSERT_EQ(1, recvmsg(pair[0], &msg, 0));
	cmsg = CMSG_FIRSTHDR(&msg);
	ASSERT_NE(NULL, cmsg);
	memcpy(&queue, CMSG_DATA(cmsg), sizeof(int));
	ASSERT_EQ(1, receive_wait(queue, &record, 1));
	EXPECT_EQ(99, record.cookie);
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
	close(queue);
	close(pair[0]);
	close(pair[1]);
}

TEST_F(lifetime, dup_keeps_it_alive)
{
	struct expiry_record record = arm_at(0, 5);
	int copy = dup(self->fd);

	ASSERT_LE(0, copy);
	ASSERT_EQ(0, request(self->fd, &record));
	close(self->fd);
	ASSERT_EQ(1, receive_wait(copy, &record, 1));
	EXPECT_EQ(5, record.cookie);
	self->fd = copy;
}

TEST_F(lifetime, close_with_timers_armed)
{
	enum { COUNT = 2000 };
	static struct expiry_record records[COUNT];
	unsigned int round, i;
	int fd;

	for (round = 0; round < 20; round++) {
		fd = queue_new(round % 2 ? EXPIRY_MODE_ACK : 0);
		ASSERT_LE(0, fd);
		/* Some due, some just about to be, some far away. */
		for (i = 0; i < COUNT; i++)
			records[i] = arm_in(i % 3 * i * 1000, i);
		ASSERT_EQ(COUNT, submit(fd, records, COUNT));
		if (round % 4 == 0)
			ASSERT_LT(0, receive_wait(fd, records, 10));
		close(fd);
	}
}

TEST_F(lifetime, close_before_config)
{
	int fd = queue_open(0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, close(fd));
}

TEST_F(lifetime, killed_reader_takes_nothing)
{
	int fd = queue_new_flags(CLOCK_MONOTONIC, 0, 0), i, status;
	struct expiry_record record;
	pid_t pid;

	ASSERT_LE(0, fd);
	for (i = 0; i < 20; i++) {
		pid = fork();
		if (!pid) {
			receive(fd, &record, 1);
			_exit(0);
		}
		sleep_ms(i);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
	record = arm_at(0, 3);
	ASSERT_EQ(0, request(fd, &record));
	ASSERT_EQ(1, receive_wait(fd, &record, 1));
	EXPECT_EQ(3, record.cookie);
	close(fd);
}

TEST_F(lifetime, killed_in_the_middle_of_large_batches)
{
	struct expiry_record *records, record;
	unsigned int i;
	int round, status;
	pid_t pid;

	records = mmap(NULL, EXPIRY_BATCH_MAX * RECORD, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, records);
	for (round = 0; round < 5; round++) {
		for (i = 0; i < EXPIRY_BATCH_MAX; i++)
			records[i] = arm_in(HOUR_NS + i, i);
		pid = fork();
		if (!pid) {
			for (;;) {
				submit(self->fd, records, EXPIRY_BATCH_MAX);
				record = ask(EXPIRY_OP_CLEAR, 0);
				submit(self->fd, &record, 1);
				for (i = 0; i < EXPIRY_BATCH_MAX; i++)
					records[i] = arm_in(HOUR_NS + i, i);
			}
		}
		sleep_ms(10 + 7 * round);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
	}
	record = ask(EXPIRY_OP_CLEAR, 0);
	ASSERT_EQ(0, request(self->fd, &record));
	record = arm_at(0, 3);
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(3, record.cookie);
	munmap(records, EXPIRY_BATCH_MAX * RECORD);
}

TEST_F(lifetime, two_hundred_queues_at_once)
{
	int fds[200];
	struct expiry_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = queue_new(0);
		ASSERT_LE(0, fds[i]);
		record = arm_in(i % 10 * NSEC_PER_MSEC, i);
		ASSERT_EQ(0, request(fds[i], &record));
	}
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		ASSERT_EQ(1, receive_wait(fds[i], &record, 1));
		EXPECT_EQ(i, record.cookie);
		close(fds[i]);
	}
}

TEST_HARNESS_MAIN
