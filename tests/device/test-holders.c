// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A holder of a queue's open file keeps the queue, however it got the file: by
 * exec, in a message in flight, in the files of a ring. The queue ends with the
 * last holder.
 */
#include "device.h"
#include "uring.h"

#include <sys/socket.h>

#define QUEUES	"/sys/kernel/debug/expiry/queues"

/* Returns the kernel's number of a queue, or 0. */
static unsigned int serial_of(int fd)
{
	unsigned int serial = 0;
	char path[64], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "expiry-queue:\t%u", &serial) == 1;
	if (file)
		fclose(file);
	return serial;
}

static bool exists(unsigned int serial)
{
	FILE *file = fopen(QUEUES, "re");
	unsigned int number;
	bool found = false;
	char line[256];

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%u ", &number) == 1 && number == serial;
	if (file)
		fclose(file);
	return found;
}

/* A file may be released a little after the call that did so. */
static bool goes(unsigned int serial)
{
	int ms;

	for (ms = 0; ms < WAIT_MS && exists(serial); ms++)
		sleep_ms(1);
	return !exists(serial);
}

FIXTURE(holders) {
	int fd;
	unsigned int serial;
};

FIXTURE_SETUP(holders)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);

	self->fd = queue_new(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, request(self->fd, &record));
	self->serial = serial_of(self->fd);
}

FIXTURE_TEARDOWN(holders)
{
	if (self->fd >= 0)
		close(self->fd);
}

#define NO_LIST	"no " QUEUES

static void let_go(int *fd)
{
	close(*fd);
	*fd = -1;
}

/* Checks that @fd is queue @serial, with all its timers: they are delivered. */
static bool works(int fd, unsigned int serial)
{
	struct expiry_record record = arm_at(0, 7);

	return serial_of(fd) == serial && queue_armed(fd) == 1 &&
	       !request(fd, &record) && receive_wait(fd, &record, 1) == 1 &&
	       record.cookie == 7;
}

TEST_F(holders, last_of_several_descriptors_ends_it)
{
	int copies[3], i;
	pid_t pid;

	if (!exists(self->serial))
		SKIP(return, NO_LIST);
	copies[0] = dup(self->fd);
	copies[1] = fcntl(self->fd, F_DUPFD_CLOEXEC, 100);
	copies[2] = dup2(self->fd, 200);
	let_go(&self->fd);
	pid = fork();
	if (!pid) {
		for (i = 0; i < 2; i++)
			close(copies[i]);
		pause();
	}
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(works(copies[i], self->serial));
		close(copies[i]);
	}
	EXPECT_TRUE(exists(self->serial));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_TRUE(goes(self->serial));
}

/*
 * exec: runs this program anew; EXPIRY_TEST_EXEC names the descriptor that it
 * must have, or must not have.
 */
static void __attribute__((constructor)) after_exec(void)
{
	const char *text = getenv("EXPIRY_TEST_EXEC");
	unsigned int serial;
	int fd, wanted;
	char byte;

	if (!text)
		return;
	MUST(sscanf(text, "%d %d %u", &wanted, &fd, &serial) == 3);
	if (wanted) {
		MUST(works(fd, serial));
	} else {
		MUST(fcntl(fd, F_GETFD) < 0 && errno == EBADF);
		/* Until the other end of the pipe has checked, and is closed.
		 */
		MUST(write(STDOUT_FILENO, "", 1) == 1);
		MUST(read(STDIN_FILENO, &byte, 1) == 0);
	}
	_exit(0);
}

static void exec_this(bool wanted, int fd, unsigned int serial)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %d %u", wanted, fd, serial);
	setenv("EXPIRY_TEST_EXEC", text, 1);
	execl("/proc/self/exe", "test-holders", NULL);
	_exit(2);
}

TEST_F(holders, queue_survives_exec_by_an_inherited_descriptor)
{
	pid_t pid;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFD, 0));
	pid = fork();
	if (!pid)
		exec_this(true, self->fd, self->serial);
	let_go(&self->fd);
	EXPECT_EQ(0, child_status(pid));
	EXPECT_TRUE(goes(self->serial));
}

TEST_F(holders, exec_closes_what_is_marked_so)
{
	int up[2], down[2];
	char byte;
	pid_t pid;

	if (!exists(self->serial))
		SKIP(return, NO_LIST);
	ASSERT_EQ(0, pipe(up));
	ASSERT_EQ(0, pipe(down));
	pid = fork();
	if (!pid) {
		close(up[0]);
		close(down[1]);
		dup2(down[0], STDIN_FILENO);
		dup2(up[1], STDOUT_FILENO);
		exec_this(false, self->fd, self->serial);
	}
	close(up[1]);
	close(down[0]);
	let_go(&self->fd);
	/* The process still exists, the queue does not. */
	EXPECT_EQ(1, read(up[0], &byte, 1));
	EXPECT_TRUE(goes(self->serial));
	EXPECT_EQ(0, kill(pid, 0));
	close(down[1]);
	EXPECT_EQ(0, child_status(pid));
}

TEST_F(holders, opened_anew_by_proc_is_another_queue)
{
	struct expiry_stat stat;
	char path[64];
	int other;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	other = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, other);
	EXPECT_NE(self->serial, serial_of(other));
	EXPECT_EQ(-ENOTCONN, queue_stat(other, &stat));
	EXPECT_EQ(0, queue_config(other, CLOCK_BOOTTIME, EXPIRY_MODE_KEYED, 0));
	EXPECT_EQ(0, queue_armed(other));
	EXPECT_EQ(1, queue_armed(self->fd));
	close(other);
	EXPECT_TRUE(works(self->fd, self->serial));
}

/* A message with a descriptor in it; NULL when receiving. */
struct message {
	struct msghdr header;
	struct iovec iov;
	char byte;
	char control[CMSG_SPACE(sizeof(int))];
};

static void message_init(struct message *message)
{
	memset(message, 0, sizeof(*message));
	message->iov.iov_base = &message->byte;
	message->iov.iov_len = 1;
	message->header.msg_iov = &message->iov;
	message->header.msg_iovlen = 1;
	message->header.msg_control = message->control;
	message->header.msg_controllen = sizeof(message->control);
}

static int pass(int socket, int fd)
{
	struct message message;
	struct cmsghdr *cmsg;

	message_init(&message);
	cmsg = CMSG_FIRSTHDR(&message.header);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(socket, &message.header, 0) == 1 ? 0 : -errno;
}

static int take(int socket)
{
	struct message message;
	struct cmsghdr *cmsg;
	int fd;

	message_init(&message);
	if (recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) != 1)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&message.header);
	if (!cmsg)
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

TEST_F(holders, message_on_its_way_keeps_the_queue)
{
	struct expiry_record record = arm_in(20 * NSEC_PER_MSEC, 3);
	int pair[2], fd;

	if (!exists(self->serial))
		SKIP(return, NO_LIST);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, pass(pair[0], self->fd));
	let_go(&self->fd);
	/* It becomes due while no process has it. */
	sleep_ms(100);
	EXPECT_TRUE(exists(self->serial));
	fd = take(pair[1]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(POLLIN, queue_poll(fd, WAIT_MS));
	EXPECT_EQ(1, receive_wait(fd, &record, 1));
	EXPECT_EQ(3, record.cookie);
	EXPECT_TRUE(works(fd, self->serial));
	close(fd);
	EXPECT_TRUE(goes(self->serial));
	close(pair[0]);
	close(pair[1]);
}

TEST_F(holders, message_that_nobody_took_goes_with_its_sockets)
{
	int pair[2];

	if (!exists(self->serial))
		SKIP(return, NO_LIST);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, pass(pair[0], self->fd));
	let_go(&self->fd);
	EXPECT_TRUE(exists(self->serial));
	close(pair[0]);
	EXPECT_TRUE(exists(self->serial));
	close(pair[1]);
	EXPECT_TRUE(goes(self->serial));
}

/* Each socket in a message to the other: the kernel's collector frees both. */
TEST_F(holders, sockets_that_hold_each_other_hold_no_queue)
{
	int pair[2], other[2];

	if (!exists(self->serial))
		SKIP(return, NO_LIST);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ASSERT_EQ(0, pass(pair[0], pair[1]));
	ASSERT_EQ(0, pass(pair[1], pair[0]));
	ASSERT_EQ(0, pass(pair[0], self->fd));
	let_go(&self->fd);
	close(pair[0]);
	close(pair[1]);
	/* Triggers the collector if the above did not. */
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, other));
	close(other[0]);
	close(other[1]);
	EXPECT_TRUE(goes(self->serial));
}

TEST_F(holders, ring_keeps_what_is_registered_with_it)
{
	struct expiry_record record = arm_in(20 * NSEC_PER_MSEC, 9);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;

	if (!exists(self->serial))
		SKIP(return, NO_LIST);
	if (uring_init(&ring, 4))
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, syscall(__NR_io_uring_register, ring.fd,
			     IORING_REGISTER_FILES, &self->fd, 1));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	let_go(&self->fd);
	EXPECT_TRUE(exists(self->serial));

	memset(&record, 0, sizeof(record));
	sqe = uring_sqe(&ring, IORING_OP_READ, 0, 1);
	sqe->flags = IOSQE_FIXED_FILE;
	sqe->addr = (__u64)(uintptr_t)&record;
	sqe->len = sizeof(record);
	sqe->off = -1;
	ASSERT_EQ(1, uring_submit(&ring));
	ASSERT_EQ(0, uring_wait(&ring, &cqe, WAIT_MS));
	EXPECT_EQ(RECORD, cqe.res);
	EXPECT_EQ(9, record.cookie);

	/* Also with a read that waits for the remaining one. */
	*uring_sqe(&ring, IORING_OP_READ, 0, 2) = *sqe;
	ASSERT_EQ(1, uring_submit(&ring));
	EXPECT_EQ(-ETIMEDOUT, uring_wait(&ring, &cqe, QUIET_MS));
	uring_fini(&ring);
	EXPECT_TRUE(goes(self->serial));
}

TEST_HARNESS_MAIN
