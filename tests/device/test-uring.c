// SPDX-License-Identifier: LGPL-2.1-or-later
/* io_uring: batches as commands, and reads that wait for a deadline. */
#include "device.h"
#include "uring.h"

#include <sys/utsname.h>

/* Runs before main(), like device_needed(). */
static void __attribute__((constructor)) uring_needed(void)
{
	struct uring ring;
	int ret = uring_init(&ring, 1);

	if (ret) {
		printf("1..0 # SKIP io_uring: %s\n", strerror(-ret));
		fflush(stdout);
		_exit(KSFT_SKIP);
	}
	uring_fini(&ring);
}

FIXTURE(uring) {
	int fd;
	struct uring ring;
};

FIXTURE_VARIANT(uring) {
	__u8 sqe_flags;
};

FIXTURE_VARIANT_ADD(uring, inline) {
	.sqe_flags = 0,
};

FIXTURE_VARIANT_ADD(uring, async) {
	.sqe_flags = IOSQE_ASYNC,
};

FIXTURE_SETUP(uring)
{
	self->fd = queue_new_flags(CLOCK_MONOTONIC, 0, 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, uring_init(&self->ring, 64));
}

FIXTURE_TEARDOWN(uring)
{
	uring_fini(&self->ring);
	close(self->fd);
}

static struct io_uring_sqe *queue_cmd(struct uring *ring, int fd,
				      __u32 cmd_op, const void *records,
				      __u32 count, __u64 user_data)
{
	struct expiry_batch batch = {
		.addr = (__u64)(uintptr_t)records,
		.count = count,
	};
	struct io_uring_sqe *sqe;

	sqe = uring_sqe(ring, IORING_OP_URING_CMD, fd, user_data);
	sqe->cmd_op = cmd_op;
	memcpy(sqe->cmd, &batch, sizeof(batch));
	return sqe;
}

static int command(struct uring *ring, int fd, __u32 cmd_op,
		   const void *records, __u32 count, __u8 sqe_flags)
{
	struct io_uring_cqe cqe;
	int ret;

	queue_cmd(ring, fd, cmd_op, records, count, 1)->flags = sqe_flags;
	ret = uring_submit(ring);
	if (ret != 1)
		return ret < 0 ? ret : -EIO;
	ret = uring_wait(ring, &cqe, WAIT_MS);
	return ret ? ret : cqe.res;
}

static struct io_uring_sqe *queue_read(struct uring *ring, int fd, void *buffer,
				       __u32 len, __u64 user_data,
				       __u8 sqe_flags)
{
	struct io_uring_sqe *sqe;

	sqe = uring_sqe(ring, IORING_OP_READ, fd, user_data);
	sqe->addr = (__u64)(uintptr_t)buffer;
	sqe->len = len;
	sqe->off = -1;
	sqe->flags = sqe_flags;
	return sqe;
}

TEST_F(uring, batch_is_answered_in_place)
{
	enum { COUNT = 5000 };
	static struct expiry_record records[COUNT];
	unsigned int i, bad = 0;
	int done, ret;

	for (i = 0; i < COUNT; i++)
		records[i] = arm_in(HOUR_NS, i);
	records[COUNT - 1] = ask(99, 0);
	/* It is short where a record would have to wait for the lock or a page. */
	for (done = 0; done < COUNT; done += ret) {
		ret = command(&self->ring, self->fd, EXPIRY_IOC_SUBMIT,
			      records + done, COUNT - done, variant->sqe_flags);
		ASSERT_LT(0, ret);
	}
	ASSERT_EQ(COUNT, done);
	for (i = 0; i < COUNT - 1; i++)
		bad += records[i].status || !records[i].id;
	EXPECT_EQ(0, bad);
	EXPECT_EQ(-EOPNOTSUPP, records[COUNT - 1].status);
	EXPECT_EQ(COUNT - 1, queue_armed(self->fd));
}

TEST_F(uring, several_commands_of_one_submission)
{
	enum { CMDS = 16, EACH = 100 };
	static struct expiry_record records[CMDS][EACH];
	struct io_uring_cqe cqe;
	unsigned int i, j, seen = 0, done = 0;

	for (i = 0; i < CMDS; i++) {
		for (j = 0; j < EACH; j++)
			records[i][j] = arm_in(HOUR_NS, i * EACH + j);
		queue_cmd(&self->ring, self->fd, EXPIRY_IOC_SUBMIT, records[i],
			  EACH, i)->flags = variant->sqe_flags;
	}
	ASSERT_EQ(CMDS, uring_submit(&self->ring));
	for (i = 0; i < CMDS; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
		/* It may be short, as above. */
		EXPECT_LT(0, cqe.res);
		EXPECT_GE(EACH, cqe.res);
		done += cqe.res;
		seen |= 1U << cqe.user_data;
	}
	EXPECT_EQ((1U << CMDS) - 1, seen);
	EXPECT_EQ(done, queue_armed(self->fd));
}

TEST_F(uring, linked_commands_run_one_after_the_other)
{
	struct expiry_record arm[1] = { arm_in(HOUR_NS, 1) };
	struct expiry_record clear[1] = { ask(EXPIRY_OP_CLEAR, 0) };
	struct io_uring_cqe cqe;
	int i;

	queue_cmd(&self->ring, self->fd, EXPIRY_IOC_SUBMIT, arm, 1, 0)->flags =
		IOSQE_IO_LINK | variant->sqe_flags;
	queue_cmd(&self->ring, self->fd, EXPIRY_IOC_SUBMIT, clear, 1, 1)->flags =
		variant->sqe_flags;
	ASSERT_EQ(2, uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
		EXPECT_EQ(i, cqe.user_data);
		EXPECT_EQ(1, cqe.res);
	}
	EXPECT_EQ(1, clear[0].cookie);
}

/* Returns the kernel's version as one number: 6012 for 6.12. */
static unsigned int kernel_version(void)
{
	unsigned int major, minor;
	struct utsname name;

	if (uname(&name) ||
	    sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return 0;
	return major * 1000 + minor;
}

/* Linux 6.10 to 6.13 may read a waiting command's SQE when it is issued. */
static bool reads_late(void)
{
	return kernel_version() >= 6010 && kernel_version() <= 6013;
}

/*
 * A command waits in a link, or drained, for a read of @pipe. Its SQE is used for
 * another batch meanwhile, as its user may do after the submission. Returns whether
 * exactly one of the two was done, by its cookie: 1 was submitted, 2 is the other.
 */
static int which_is_done(struct uring *ring, int fd, int *pipe, __u8 head_flags,
			 __u8 tail_flags)
{
	struct expiry_record right = arm_in(HOUR_NS, 1);
	struct expiry_record wrong = arm_in(HOUR_NS, 2);
	struct expiry_batch batch = {
		.addr = (__u64)(uintptr_t)&wrong,
		.count = 1,
	};
	__u64 armed = queue_armed(fd);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	bool ok = true;
	char byte = 0;
	int i;

	queue_read(ring, pipe[0], &byte, 1, 0, head_flags);
	sqe = queue_cmd(ring, fd, EXPIRY_IOC_SUBMIT, &right, 1, 1);
	sqe->flags = tail_flags;
	if (uring_submit(ring) != 2)
		return 0;
	memcpy(sqe->cmd, &batch, sizeof(batch));
	sleep_ms(10);
	ok = !right.id && queue_armed(fd) == armed;
	if (write(pipe[1], &byte, 1) != 1)
		return 0;
	for (i = 0; i < 2; i++)
		ok = !uring_wait(ring, &cqe, WAIT_MS) && cqe.res == 1 && ok;
	if (!ok || queue_armed(fd) != armed + 1 || !right.id == !wrong.id)
		return 0;
	return right.id ? 1 : 2;
}

TEST_F(uring, waiting_commands_do_not_need_their_entry)
{
	int pipe_fds[2], i, linked, drained, most = reads_late() ? 2 : 1;

	ASSERT_EQ(0, pipe(pipe_fds));
	for (i = 0; i < 20; i++) {
		linked = which_is_done(&self->ring, self->fd, pipe_fds,
				       IOSQE_IO_LINK, variant->sqe_flags);
		drained = which_is_done(&self->ring, self->fd, pipe_fds, 0,
					IOSQE_IO_DRAIN | variant->sqe_flags);
		ASSERT_LE(1, linked);
		ASSERT_GE(most, linked);
		ASSERT_LE(1, drained);
		ASSERT_GE(most, drained);
	}
	TH_LOG("batch %d of a link, %d of a drain", linked, drained);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

TEST_F(uring, unknown_command_is_refused)
{
	static const __u32 ops[] = {
		0, 1, ~0U, EXPIRY_IOC_CONFIG, EXPIRY_IOC_STAT, EXPIRY_IOC_SCAN,
		EXPIRY_IOC_REWIND, EXPIRY_IOC_SUBMIT + 1,
	};
	struct expiry_record record = arm_in(HOUR_NS, 1);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		EXPECT_EQ(-EOPNOTSUPP, command(&self->ring, self->fd, ops[i],
					       &record, 1, variant->sqe_flags));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(uring, bad_batches_are_refused_as_by_ioctl)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);
	struct expiry_batch batch = {
		.addr = (__u64)(uintptr_t)&record,
		.count = 1,
		.flags = 1,
	};
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	char *bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

#define CMD(addr, count) command(&self->ring, self->fd, EXPIRY_IOC_SUBMIT, \
				 addr, count, variant->sqe_flags)
	EXPECT_EQ(-EINVAL, CMD(&record, 0));
	EXPECT_EQ(-EINVAL, CMD(&record, EXPIRY_BATCH_MAX + 1));
	EXPECT_EQ(-EINVAL, CMD((char *)&record + 4, 1));
	EXPECT_EQ(-EFAULT, CMD(NULL, 1));
	EXPECT_EQ(-EFAULT, CMD(bad, 1));
	EXPECT_EQ(-EFAULT, CMD((void *)-4096L, 1));
#undef CMD
	sqe = queue_cmd(&self->ring, self->fd, EXPIRY_IOC_SUBMIT, &record, 1, 7);
	memcpy(sqe->cmd, &batch, sizeof(batch));
	sqe->flags = variant->sqe_flags;
	ASSERT_EQ(1, uring_submit(&self->ring));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
	EXPECT_EQ(-EINVAL, cqe.res);
	EXPECT_EQ(0, queue_armed(self->fd));
	munmap(bad, 4096);
}

TEST_F(uring, command_before_config_is_enotconn)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);
	int fd = queue_open(0);

	EXPECT_EQ(-ENOTCONN, command(&self->ring, fd, EXPIRY_IOC_SUBMIT,
				     &record, 1, variant->sqe_flags));
	close(fd);
}

TEST_F(uring, read_armed_before_the_deadline_completes_after_it)
{
	struct expiry_record record = arm_in(50 * NSEC_PER_MSEC, 42), out;
	struct io_uring_cqe cqe;

	queue_read(&self->ring, self->fd, &out, RECORD, 5, variant->sqe_flags);
	ASSERT_EQ(1, uring_submit(&self->ring));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
	EXPECT_EQ(5, cqe.user_data);
	ASSERT_EQ(RECORD, cqe.res);
	EXPECT_EQ(EXPIRY_OP_EXPIRED, out.op);
	EXPECT_EQ(record.id, out.id);
	EXPECT_EQ(42, out.cookie);
}

TEST_F(uring, several_armed_reads_get_one_each)
{
	enum { READS = 8 };
	struct expiry_record out[READS], record;
	struct io_uring_cqe cqe;
	unsigned int i, seen = 0;

	for (i = 0; i < READS; i++)
		queue_read(&self->ring, self->fd, &out[i], RECORD, i,
			   variant->sqe_flags);
	ASSERT_EQ(READS, uring_submit(&self->ring));
	for (i = 0; i < READS; i++) {
		record = arm_in(i * 3 * NSEC_PER_MSEC, i);
		ASSERT_EQ(0, request(self->fd, &record));
	}
	for (i = 0; i < READS; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
		ASSERT_EQ(RECORD, cqe.res);
		ASSERT_GT(READS, cqe.user_data);
		seen |= 1U << out[cqe.user_data].cookie;
	}
	EXPECT_EQ((1U << READS) - 1, seen);
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(uring, armed_read_can_be_cancelled_and_takes_nothing)
{
	struct expiry_record record = arm_in(0, 1), out = { 0 };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	int i;

	queue_read(&self->ring, self->fd, &out, RECORD, 5, variant->sqe_flags);
	ASSERT_EQ(1, uring_submit(&self->ring));
	sqe = uring_sqe(&self->ring, IORING_OP_ASYNC_CANCEL, -1, 6);
	sqe->addr = 5;
	ASSERT_EQ(1, uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
		if (cqe.user_data == 5)
			EXPECT_TRUE(cqe.res == -ECANCELED || cqe.res == -EINTR);
	}
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(1, record.cookie);
	EXPECT_EQ(0, out.op);
}

TEST_F(uring, read_into_a_registered_buffer)
{
	struct expiry_record record = arm_in(20 * NSEC_PER_MSEC, 42), out[2] = { 0 };
	struct iovec iov = { .iov_base = out, .iov_len = sizeof(out) };
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;

	ASSERT_EQ(0, syscall(__NR_io_uring_register, self->ring.fd,
			     IORING_REGISTER_BUFFERS, &iov, 1));
	sqe = queue_read(&self->ring, self->fd, &out[1], RECORD, 5,
			 variant->sqe_flags);
	sqe->opcode = IORING_OP_READ_FIXED;
	ASSERT_EQ(1, uring_submit(&self->ring));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
	ASSERT_EQ(RECORD, cqe.res);
	EXPECT_EQ(0, out[0].op);
	EXPECT_EQ(EXPIRY_OP_EXPIRED, out[1].op);
	EXPECT_EQ(record.id, out[1].id);
	EXPECT_EQ(42, out[1].cookie);
}

/* Each completion has the expirations that were due then, in a buffer that the ring
 * chose. Where none is left the read ends, and the next reader gets what is due.
 */
TEST_F(uring, a_multishot_read_goes_on)
{
	enum { BUFFERS = 5, GROUP = 7, PROVIDE = 1, READ = 2 };
	struct expiry_record buffers[BUFFERS][2], record;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	unsigned int i;

	sqe = uring_sqe(&self->ring, IORING_OP_PROVIDE_BUFFERS, BUFFERS, PROVIDE);
	sqe->addr = (uintptr_t)buffers;
	sqe->len = sizeof(buffers[0]);
	sqe->buf_group = GROUP;
	ASSERT_EQ(1, uring_submit(&self->ring));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
	ASSERT_EQ(0, cqe.res);

	sqe = uring_sqe(&self->ring, READ_MULTISHOT, self->fd, READ);
	sqe->flags = variant->sqe_flags | IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->off = -1;
	ASSERT_EQ(1, uring_submit(&self->ring));
	for (i = 0; i < BUFFERS; i++) {
		record = arm_in(5 * NSEC_PER_MSEC, i);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
		EXPECT_EQ(READ, cqe.user_data);
		if (!i && cqe.res == -EINVAL)
			SKIP(return, "no multishot reads before Linux 6.7");
		ASSERT_EQ(RECORD, cqe.res);
		ASSERT_TRUE(cqe.flags & IORING_CQE_F_BUFFER);
		ASSERT_GT(BUFFERS, cqe.flags >> IORING_CQE_BUFFER_SHIFT);
		EXPECT_TRUE(cqe.flags & IORING_CQE_F_MORE);
		EXPECT_EQ(record.id,
			  buffers[cqe.flags >> IORING_CQE_BUFFER_SHIFT]->id);
	}
	record = arm_in(0, i);
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
	EXPECT_EQ(-ENOBUFS, cqe.res);
	EXPECT_FALSE(cqe.flags & IORING_CQE_F_MORE);
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(BUFFERS, record.cookie);
}

TEST_F(uring, read_of_less_than_a_record_is_einval)
{
	struct io_uring_cqe cqe;
	char out[RECORD];

	queue_read(&self->ring, self->fd, out, RECORD - 1, 5,
		   variant->sqe_flags);
	ASSERT_EQ(1, uring_submit(&self->ring));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
	EXPECT_EQ(-EINVAL, cqe.res);
}

TEST_F(uring, poll_through_the_ring)
{
	struct expiry_record record = arm_in(20 * NSEC_PER_MSEC, 1);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;

	sqe = uring_sqe(&self->ring, IORING_OP_POLL_ADD, self->fd, 9);
	sqe->poll32_events = POLLIN;
	sqe->flags = variant->sqe_flags;
	ASSERT_EQ(1, uring_submit(&self->ring));
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, uring_wait(&self->ring, &cqe, WAIT_MS));
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
	EXPECT_EQ(POLLIN, cqe.res);
}

TEST_F(uring, ring_closed_with_a_read_armed)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);
	struct uring ring;
	char out[RECORD];

	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(0, uring_init(&ring, 4));
	queue_read(&ring, self->fd, out, RECORD, 5, variant->sqe_flags);
	ASSERT_EQ(1, uring_submit(&ring));
	uring_fini(&ring);
	EXPECT_EQ(1, queue_armed(self->fd));
}

/* Waits for a completion of a ring that posts them only to a thread that enters it. */
static int wait_polling(struct uring *ring, struct io_uring_cqe *cqe)
{
	int ms, ret = -ETIMEDOUT;

	for (ms = 0; ret && ms < WAIT_MS; ms++) {
		syscall(__NR_io_uring_enter, ring->fd, 0, 0,
			IORING_ENTER_GETEVENTS, NULL, 0);
		ret = uring_wait(ring, cqe, 1);
	}
	return ret;
}

/*
 * The device has no completions to poll for. Up to Linux 7.0 a ring that does so
 * refuses its commands; from then on it carries them out like any other ring.
 */
TEST_F(uring, a_ring_that_polls_for_completions_refuses_or_carries_out)
{
	bool takes = kernel_version() >= 7001;
	struct expiry_record record = arm_in(HOUR_NS, 1), out = { 0 };
	struct io_uring_cqe cqe;
	struct uring ring;

	ASSERT_EQ(0, uring_init_flags(&ring, 4, IORING_SETUP_IOPOLL));
	queue_cmd(&ring, self->fd, EXPIRY_IOC_SUBMIT, &record, 1, 1)->flags =
		variant->sqe_flags;
	ASSERT_EQ(1, uring_submit(&ring));
	ASSERT_EQ(0, wait_polling(&ring, &cqe));
	EXPECT_EQ(takes ? 1 : -EOPNOTSUPP, cqe.res);
	EXPECT_EQ(takes, queue_armed(self->fd));
	EXPECT_EQ(takes, record.id != 0);

	queue_read(&ring, self->fd, &out, RECORD, 2, variant->sqe_flags);
	ASSERT_EQ(1, uring_submit(&ring));
	ASSERT_EQ(0, wait_polling(&ring, &cqe));
	EXPECT_EQ(-EOPNOTSUPP, cqe.res);
	EXPECT_EQ(takes, queue_armed(self->fd));
	uring_fini(&ring);
}

TEST_HARNESS_MAIN
