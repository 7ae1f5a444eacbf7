// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * 32-bit callers of a 64-bit kernel. A program of x86-64 enters it like one of
 * i386, by interrupt 0x80, with all arguments below 4 GiB. So no other compiler
 * and C library are needed. Elsewhere, and where the kernel runs no 32-bit
 * programs, it is skipped.
 */
#include "device.h"

#include <sys/mman.h>
#include <linux/io_uring.h>

#ifndef __x86_64__

TEST(thirty_two_bits)
{
	SKIP(return, "not on x86-64");
}

#else

/*
 * The header once more, as an i386 compiler reads it: there a __u64 needs an
 * address divisible by 4 only, and one that is not naturally aligned moves.
 */
#undef _UAPI_LINUX_EXPIRY_H
#undef _LINUX_EXPIRY_H
#define expiry_record	record_i386
#define expiry_config	config_i386
#define expiry_batch	batch_i386
#define expiry_scan	scan_i386
#define expiry_stat	stat_i386
#define expiry_features	features_i386
#pragma pack(push, 4)
#include <linux/expiry.h>
#pragma pack(pop)
#undef expiry_record
#undef expiry_config
#undef expiry_batch
#undef expiry_scan
#undef expiry_stat
#undef expiry_features

/* Padding only adds bytes: equal size is equal layout. */
_Static_assert(sizeof(struct expiry_record) == sizeof(struct record_i386),
	       "records have holes");
_Static_assert(sizeof(struct expiry_config) == sizeof(struct config_i386),
	       "configurations have holes");
_Static_assert(sizeof(struct expiry_batch) == sizeof(struct batch_i386),
	       "batches have holes");
_Static_assert(sizeof(struct expiry_scan) == sizeof(struct scan_i386),
	       "scans have holes");
_Static_assert(sizeof(struct expiry_stat) == sizeof(struct stat_i386),
	       "statistics have holes");
_Static_assert(sizeof(struct expiry_features) == sizeof(struct features_i386),
	       "features have holes");

/* The system calls' numbers on i386. */
enum {
	I386_READ = 3,
	I386_OPEN = 5,
	I386_CLOSE = 6,
	I386_GETPID = 20,
	I386_IOCTL = 54,
	I386_POLL = 168,
	I386_IO_URING_SETUP = 425,
	I386_IO_URING_ENTER = 426,
};

/* Returns the kernel's result or -errno. */
static int call_i386(int nr, __u32 a, __u32 b, __u32 c, __u32 d, __u32 e)
{
	int ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (nr), "b" (a), "c" (b), "d" (c), "S" (d), "D" (e)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

/* Returns whether a 32-bit program could run. */
static bool kernel_knows_i386(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(call_i386(I386_GETPID, 0, 0, 0, 0, 0) != getpid());
	return child_status(pid) == 0;
}

#define ROOM	64

/* All memory passed to the kernel, below 4 GiB. */
struct low {
	char path[256];
	struct expiry_config config;
	struct expiry_batch batch;
	struct expiry_scan scan;
	struct expiry_stat stat, stat_i386;
	struct pollfd pollfd;
	struct io_uring_params params;
	struct {
		__u32 base;
		__u32 len;
	} iovec_i386;
	struct expiry_record records[ROOM];
};

static __u32 low_address(const void *pointer)
{
	return (uintptr_t)pointer;
}

FIXTURE(compat) {
	struct low *low;
	bool known;
	int fd;
};

static int ioctl_i386(int fd, unsigned int cmd, const void *arg)
{
	return call_i386(I386_IOCTL, fd, cmd, low_address(arg), 0, 0);
}

FIXTURE_SETUP(compat)
{
	self->known = kernel_knows_i386();
	self->fd = -1;
	self->low = mmap(NULL, sizeof(*self->low), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, self->low);
	if (!self->known)
		return;
	ASSERT_GT(sizeof(self->low->path), strlen(device_path()));
	memcpy(self->low->path, device_path(), strlen(device_path()) + 1);
	self->fd = call_i386(I386_OPEN, low_address(self->low->path),
			     O_RDWR | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(compat)
{
	if (self->known)
		EXPECT_EQ(0, call_i386(I386_CLOSE, self->fd, 0, 0, 0, 0));
	munmap(self->low, sizeof(*self->low));
}

#define NO_I386	"the kernel runs no i386 programs"

static int config_i386(struct low *low, int fd, __u32 mode)
{
	low->config = (struct expiry_config) {
		.clock_id = CLOCK_MONOTONIC,
		.mode = mode,
	};
	return ioctl_i386(fd, EXPIRY_IOC_CONFIG, &low->config);
}

/* Fills in the first @count of the records. */
static int submit_i386(struct low *low, int fd, __u32 count)
{
	low->batch = (struct expiry_batch) {
		.addr = low_address(low->records),
		.count = count,
	};
	return ioctl_i386(fd, EXPIRY_IOC_SUBMIT, &low->batch);
}

static int read_i386(struct low *low, int fd, unsigned int ms)
{
	low->pollfd = (struct pollfd) { .fd = fd, .events = POLLIN };
	if (call_i386(I386_POLL, low_address(&low->pollfd), 1, ms, 0, 0) != 1 ||
	    low->pollfd.revents != POLLIN)
		return -ETIMEDOUT;
	return call_i386(I386_READ, fd, low_address(low->records),
			 sizeof(low->records), 0, 0);
}

TEST_F(compat, layout_is_a_number)
{
	static const __u32 unknown[] = { 0, EXPIRY_LAYOUT_RADIX + 1,
					 1U << 31, ~0U };
	unsigned int i;

	if (!self->known)
		SKIP(return, NO_I386);
	for (i = 0; i < ARRAY_SIZE(unknown); i++)
		EXPECT_EQ(-EINVAL,
			  call_i386(I386_IOCTL, self->fd, EXPIRY_IOC_LAYOUT,
				    unknown[i], 0, 0));
	EXPECT_EQ(0, call_i386(I386_IOCTL, self->fd, EXPIRY_IOC_LAYOUT,
			       EXPIRY_LAYOUT_SUBTREE, 0, 0));
	EXPECT_EQ(0, config_i386(self->low, self->fd, 0));
	EXPECT_EQ(-EBUSY, call_i386(I386_IOCTL, self->fd, EXPIRY_IOC_LAYOUT,
				    EXPIRY_LAYOUT_SORTED, 0, 0));
}

TEST_F(compat, config_answers)
{
	struct low *low = self->low;

	if (!self->known)
		SKIP(return, NO_I386);
	EXPECT_EQ(-EINVAL, config_i386(low, self->fd, 0x80));
	EXPECT_EQ(0, config_i386(low, self->fd, EXPIRY_MODE_ACK));
	EXPECT_LT(0, low->config.limit);
	EXPECT_EQ(EXPIRY_MODE_ACK, low->config.mode);
	EXPECT_EQ(-EBUSY, config_i386(low, self->fd, EXPIRY_MODE_ACK));
	EXPECT_EQ(-ENOTTY, ioctl_i386(self->fd, _IO(EXPIRY_IOC_MAGIC, 99),
				      NULL));
	EXPECT_EQ(-EFAULT, ioctl_i386(self->fd, EXPIRY_IOC_STAT, NULL));
}

TEST_F(compat, batch_is_answered_in_place_and_read)
{
	struct low *low = self->low;
	unsigned int i;

	if (!self->known)
		SKIP(return, NO_I386);
	ASSERT_EQ(0, config_i386(low, self->fd, 0));
	for (i = 0; i < ROOM; i++)
		low->records[i] = arm_at(i, 0x100000000ULL * i);
	ASSERT_EQ(ROOM, submit_i386(low, self->fd, ROOM));
	for (i = 0; i < ROOM; i++) {
		EXPECT_EQ(0, low->records[i].status);
		EXPECT_NE(0, low->records[i].id);
	}
	ASSERT_EQ(ROOM * RECORD, read_i386(low, self->fd, WAIT_MS));
	for (i = 0; i < ROOM; i++) {
		EXPECT_EQ(EXPIRY_OP_EXPIRED, low->records[i].op);
		EXPECT_EQ(i, low->records[i].deadline_ns);
		EXPECT_EQ(0x100000000ULL * i, low->records[i].cookie);
	}
	EXPECT_EQ(-EAGAIN, call_i386(I386_READ, self->fd,
				     low_address(low->records),
				     sizeof(low->records), 0, 0));
}

TEST_F(compat, upper_half_of_an_address_counts)
{
	struct low *low = self->low;

	if (!self->known)
		SKIP(return, NO_I386);
	ASSERT_EQ(0, config_i386(low, self->fd, 0));
	low->records[0] = arm_in(HOUR_NS, 1);
	low->batch = (struct expiry_batch) {
		.addr = low_address(low->records) | 1ULL << 62,
		.count = 1,
	};
	EXPECT_EQ(-EFAULT,
		  ioctl_i386(self->fd, EXPIRY_IOC_SUBMIT, &low->batch));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(compat, stat_tells_the_same)
{
	struct low *low = self->low;

	if (!self->known)
		SKIP(return, NO_I386);
	ASSERT_EQ(0, config_i386(low, self->fd, EXPIRY_MODE_KEYED));
	low->records[0] = arm_in(HOUR_NS, 1);
	low->records[0].id = 1ULL << 63 | 7;
	ASSERT_EQ(1, submit_i386(low, self->fd, 1));
	ASSERT_EQ(0, ioctl_i386(self->fd, EXPIRY_IOC_STAT, &low->stat_i386));
	ASSERT_EQ(0, queue_stat(self->fd, &low->stat));
	EXPECT_LE(low->stat_i386.now_ns, low->stat.now_ns);
	EXPECT_LT(0, low->stat_i386.now_ns);
	low->stat_i386.now_ns = low->stat.now_ns;
	EXPECT_EQ(0, memcmp(&low->stat, &low->stat_i386, sizeof(low->stat)));
	EXPECT_EQ(1, low->stat.armed);
}

TEST_F(compat, scan_goes_on_where_it_was)
{
	struct low *low = self->low;
	__u64 seen = 0;
	int i, ret;

	if (!self->known)
		SKIP(return, NO_I386);
	ASSERT_EQ(0, config_i386(low, self->fd, 0));
	for (i = 0; i < ROOM; i++)
		low->records[i] = arm_in(HOUR_NS, i);
	ASSERT_EQ(ROOM, submit_i386(low, self->fd, ROOM));
	low->scan.cursor = 0;
	do {
		low->scan.addr = low_address(low->records);
		low->scan.count = 10;
		ret = ioctl_i386(self->fd, EXPIRY_IOC_SCAN, &low->scan);
		ASSERT_LE(0, ret);
		for (i = 0; i < ret; i++) {
			ASSERT_GT(ROOM, low->records[i].cookie);
			ASSERT_EQ(0, seen >> low->records[i].cookie & 1);
			seen |= 1ULL << low->records[i].cookie;
		}
	} while (low->scan.cursor);
	EXPECT_EQ(~0ULL, seen);
}

TEST_F(compat, rewind_makes_due_again)
{
	struct low *low = self->low;

	if (!self->known)
		SKIP(return, NO_I386);
	ASSERT_EQ(0, config_i386(low, self->fd, EXPIRY_MODE_ACK));
	low->records[0] = arm_at(0, 8);
	ASSERT_EQ(1, submit_i386(low, self->fd, 1));
	ASSERT_EQ(RECORD, read_i386(low, self->fd, WAIT_MS));
	EXPECT_EQ(0, low->records[0].flags);
	ASSERT_EQ(0, ioctl_i386(self->fd, EXPIRY_IOC_REWIND, NULL));
	ASSERT_EQ(RECORD, read_i386(low, self->fd, WAIT_MS));
	EXPECT_EQ(EXPIRY_F_REDELIVERED, low->records[0].flags);
	EXPECT_EQ(8, low->records[0].cookie);
}

/* A ring made by a 32-bit program, mapped as usual. */
struct ring {
	int fd;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

#define RING_SIZE	4096		/* more than one entry needs */

static int ring_init(struct ring *ring, struct low *low)
{
	struct io_uring_params *p = &low->params;
	char *sq, *cq;

	memset(p, 0, sizeof(*p));
	ring->fd = call_i386(I386_IO_URING_SETUP, 1, low_address(p), 0, 0, 0);
	if (ring->fd < 0)
		return ring->fd;
	sq = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		  IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  ring->fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || ring->sqes == MAP_FAILED)
		return -ENOMEM;
	ring->sq_tail = (void *)(sq + p->sq_off.tail);
	ring->sq_array = (void *)(sq + p->sq_off.array);
	ring->cq_head = (void *)(cq + p->cq_off.head);
	ring->cq_tail = (void *)(cq + p->cq_off.tail);
	ring->cqes = (void *)(cq + p->cq_off.cqes);
	return 0;
}

/* Submits the only entry and waits for it; returns its result. */
static int ring_do(struct ring *ring, struct low *low,
		   const struct io_uring_sqe *sqe, unsigned int entries)
{
	unsigned int head = *ring->cq_head;
	int ret;

	ring->sqes[0] = *sqe;
	ring->sq_array[0] = 0;
	__atomic_store_n(ring->sq_tail, *ring->sq_tail + 1, __ATOMIC_RELEASE);
	ret = call_i386(I386_IO_URING_ENTER, ring->fd, 1, 0, 0, 0);
	if (ret != 1)
		return ret < 0 ? ret : -EIO;
	while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
		low->pollfd = (struct pollfd) {
			.fd = ring->fd,
			.events = POLLIN,
		};
		if (!call_i386(I386_POLL, low_address(&low->pollfd), 1, WAIT_MS,
			       0, 0))
			return -ETIMEDOUT;
	}
	ret = ring->cqes[head & (entries - 1)].res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return ret;
}

TEST_F(compat, ring_of_a_32_bit_program)
{
	struct io_uring_sqe command = {
		.opcode = IORING_OP_URING_CMD,
		.fd = self->fd,
		.cmd_op = EXPIRY_IOC_SUBMIT,
	};
	struct io_uring_sqe readv = {
		.opcode = IORING_OP_READV,
		.fd = self->fd,
		.off = -1,
		.len = 1,
	};
	struct low *low = self->low;
	struct ring ring;
	int ret, i;

	if (!self->known)
		SKIP(return, NO_I386);
	ret = ring_init(&ring, low);
	if (ret)
		SKIP(return, "io_uring: %s", strerror(-ret));
	ASSERT_EQ(0, config_i386(low, self->fd, 0));

	for (i = 0; i < ROOM; i++)
		low->records[i] = arm_in(20 * NSEC_PER_MSEC, i);
	low->batch = (struct expiry_batch) {
		.addr = low_address(low->records),
		.count = ROOM,
	};
	memcpy(command.cmd, &low->batch, sizeof(low->batch));
	ASSERT_EQ(ROOM, ring_do(&ring, low, &command, low->params.cq_entries));
	EXPECT_EQ(0, low->records[ROOM - 1].status);
	EXPECT_NE(0, low->records[ROOM - 1].id);

	/* Its vectors have 32-bit addresses, so this ring is a 32-bit one. */
	memset(low->records, 0, sizeof(low->records));
	low->iovec_i386.base = low_address(low->records);
	low->iovec_i386.len = RECORD;
	readv.addr = low_address(&low->iovec_i386);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	ASSERT_EQ(RECORD, ring_do(&ring, low, &readv, low->params.cq_entries));
	EXPECT_EQ(EXPIRY_OP_EXPIRED, low->records[0].op);
	EXPECT_GE(clock_ns(CLOCK_MONOTONIC), low->records[0].deadline_ns);
	EXPECT_EQ(ROOM - 1, queue_armed(self->fd));
	close(ring.fd);
}

#endif /* __x86_64__ */

TEST_HARNESS_MAIN
