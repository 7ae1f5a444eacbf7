// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The timers of a queue can be paged out, and come back as they were: a queue
 * is filled, its memory pushed to compressed swap, and used again.
 *
 * Wants to be root on a machine with zram and memory.reclaim (Linux 5.19) that
 * has nothing else in swap; elsewhere it is skipped. EXPIRY_TEST_TIMERS: how
 * many timers, instead of a million by EXPIRY_TEST_SCALE.
 */
#include "device.h"
#include "uring.h"

#include <sys/stat.h>
#include <sys/swap.h>

#define CGROUP		"/sys/fs/cgroup"
#define GROUP		CGROUP "/expiry-test-swap"
#define ZRAM		"/sys/block/zram0"
#define ZRAM_DEVICE	"/dev/zram0"
#define BATCH		4096U

/* The first word of a file, or -1. */
static long long read_number(const char *path, const char *key)
{
	char line[256];
	long long number = -1;
	size_t length = strlen(key);
	FILE *file = fopen(path, "r");

	if (!file)
		return -1;
	while (number < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length))
			number = atoll(line + length);
	fclose(file);
	return number;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t ret;
	int err;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, strlen(text));
	err = ret < 0 ? -errno : 0;
	close(fd);
	return err;
}

static __u64 timers_wanted(void)
{
	const char *timers = getenv("EXPIRY_TEST_TIMERS");
	const char *scale = getenv("EXPIRY_TEST_SCALE");

	if (timers)
		return strtoull(timers, NULL, 0);
	return 1000000 / (scale && atoi(scale) > 0 ? atoi(scale) : 1);
}

static long long group_shmem(void)
{
	return read_number(GROUP "/memory.stat", "shmem ");
}

static long long group_swap(void)
{
	return read_number(GROUP "/memory.swap.current", "");
}

/* A swap header is a page with a signature at its end. */
static int swap_make(void)
{
	struct {
		char boot[1024];
		__u32 version;
		__u32 last_page;
		__u32 bad_pages;
		char rest[4096 - 1024 - 12 - 10];
		char magic[10];
	} header = {
		.version = 1,
		.last_page = (512 << 20) / 4096 - 1,
		.magic = { 'S', 'W', 'A', 'P', 'S', 'P', 'A', 'C', 'E', '2' },
	};
	int fd = open(ZRAM_DEVICE, O_WRONLY | O_CLOEXEC);
	ssize_t ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, &header, sizeof(header));
	if (!ret || fsync(fd))
		ret = -1;
	close(fd);
	return ret == sizeof(header) ? 0 : -EIO;
}

/* 0, or why there is no swap to be had. */
static const char *swap_init(void)
{
	if (access(ZRAM, F_OK) && system("modprobe zram 2>/dev/null"))
		return "no zram";
	if (access(CGROUP "/cgroup.controllers", F_OK))
		return "no control groups, version 2";
	if (read_number(ZRAM "/disksize", "") != 0)
		return "zram0 is in use";
	write_text(CGROUP "/cgroup.subtree_control", "+memory");
	if (mkdir(GROUP, 0755) && errno != EEXIST)
		return "no control group can be made";
	if (access(GROUP "/memory.reclaim", F_OK))
		return "no memory.reclaim";
	if (write_text(ZRAM "/disksize", "512M") || swap_make() ||
	    swapon(ZRAM_DEVICE, 0))
		return "zram0 cannot be made swap";
	return NULL;
}

FIXTURE(swap) {
	int fd;
	__u64 timers;
	bool on;
	struct expiry_record *batch;
};

FIXTURE_VARIANT(swap) {
	unsigned long layout;
};

FIXTURE_VARIANT_ADD(swap, subtree) {
	.layout = EXPIRY_LAYOUT_SUBTREE,
};

FIXTURE_VARIANT_ADD(swap, sorted) {
	.layout = EXPIRY_LAYOUT_SORTED,
};

FIXTURE_SETUP(swap)
{
	const char *why = swap_init();

	self->fd = -1;
	if (why)
		SKIP(return, "%s", why);
	self->on = true;
	self->timers = timers_wanted();
	self->batch = calloc(BATCH, RECORD);
	ASSERT_NE(NULL, self->batch);
	/* Who opens the queue pays for it. */
	ASSERT_EQ(0, write_text(GROUP "/cgroup.procs", "0"));
	self->fd = queue_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_LAYOUT, variant->layout));
	ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC,
				  EXPIRY_MODE_KEYED, 0));
}

FIXTURE_TEARDOWN(swap)
{
	if (self->fd >= 0)
		close(self->fd);
	if (!self->on)
		return;
	write_text(CGROUP "/cgroup.procs", "0");
	swapoff(ZRAM_DEVICE);
	write_text(ZRAM "/reset", "1");
	rmdir(GROUP);
	free(self->batch);
}

/* 1 to @timers, each once (the factor is prime), in an order that jumps about. */
static __u64 deadline_of(__u64 id, __u64 timers)
{
	return (id * 2654435761ULL) % timers + 1;
}

static int fill(int fd, struct expiry_record *batch, __u64 timers)
{
	__u64 id = 1;
	__u32 i, nr;

	while (id <= timers) {
		nr = timers - id + 1 < BATCH ? timers - id + 1 : BATCH;
		for (i = 0; i < nr; i++, id++) {
			batch[i] = arm_at(HOUR_NS * 1000000 +
					  deadline_of(id, timers), ~id);
			batch[i].id = id;
		}
		if (submit(fd, batch, nr) != (int)nr)
			return -1;
		for (i = 0; i < nr; i++)
			if (batch[i].status)
				return batch[i].status;
	}
	return 0;
}

static __u64 resident(int fd)
{
	struct expiry_stat stat;

	return queue_stat(fd, &stat) ? 0 : stat.pages_resident;
}

/* Ask until as good as nothing is left: pins are let go of first. */
static void push_out(int fd, __u64 pages)
{
	int tries;

	for (tries = 0; tries < 20 && resident(fd) > pages / 10; tries++) {
		write_text(GROUP "/memory.reclaim", "1G");
		sleep_ms(100);
	}
}

TEST_F(swap, timers_come_back_as_they_were)
{
	struct expiry_record record;
	long long shmem, swapped;
	__u64 pages, left, id, n;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, fill(self->fd, self->batch, self->timers));
	pages = resident(self->fd);
	shmem = group_shmem();
	EXPECT_LE((long long)pages * 4096, shmem + 4096 * 64);

	push_out(self->fd, pages);
	left = resident(self->fd);
	swapped = group_swap();
	TH_LOG("%llu timers: %llu pages, %llu after; shmem %lld kB, %lld after; swap %lld kB",
	       self->timers, pages, left, shmem >> 10, group_shmem() >> 10,
	       swapped >> 10);
	EXPECT_GE(pages / 10, left);
	EXPECT_GE(shmem / 5, group_shmem());
	EXPECT_LE((long long)(pages - left) * 4096 / 2, swapped);

	/* Each is there, by its id, wherever it is. */
	for (n = 0; n < 1000; n++) {
		id = 1 + n * 7919 % self->timers;
		record = ask(EXPIRY_OP_QUERY, id);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(~id, record.cookie);
		ASSERT_EQ(HOUR_NS * 1000000 + deadline_of(id, self->timers),
			  record.deadline_ns);
	}
	ASSERT_EQ(self->timers, queue_armed(self->fd));
}

/* Brought forward from swap to be due, and read in order. */
TEST_F(swap, they_are_delivered_in_order)
{
	__u64 pages, id = 1, next = 1;
	__u32 i, nr;
	int ret;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, fill(self->fd, self->batch, self->timers));
	pages = resident(self->fd);
	push_out(self->fd, pages);
	EXPECT_GE(pages / 10, resident(self->fd));

	while (id <= self->timers) {
		nr = self->timers - id + 1 < BATCH ?
		     self->timers - id + 1 : BATCH;
		for (i = 0; i < nr; i++, id++) {
			self->batch[i] = ask(EXPIRY_OP_REFRESH, id);
			self->batch[i].deadline_ns =
				deadline_of(id, self->timers);
		}
		ASSERT_EQ(nr, submit(self->fd, self->batch, nr));
		for (i = 0; i < nr; i++) {
			ASSERT_EQ(0, self->batch[i].status);
			ASSERT_EQ(~self->batch[i].id, self->batch[i].cookie);
		}
	}
	push_out(self->fd, resident(self->fd));

	while (next <= self->timers) {
		ret = receive_wait(self->fd, self->batch, BATCH);
		ASSERT_LT(0, ret);
		for (i = 0; i < (__u32)ret; i++, next++) {
			id = self->batch[i].id;
			ASSERT_EQ(next, self->batch[i].deadline_ns);
			ASSERT_EQ(next, deadline_of(id, self->timers));
			ASSERT_EQ(~id, self->batch[i].cookie);
		}
	}
	ASSERT_EQ(-EAGAIN, receive(self->fd, self->batch, 1));
	ASSERT_EQ(0, queue_armed(self->fd));
}

/*
 * A batch that must wait for pages is not waited for by who submits it: a
 * worker takes over. What the ring answers is the whole batch.
 */
TEST_F(swap, a_ring_gets_its_batch_answered)
{
	struct expiry_batch *batch;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;
	__u32 i;

	if (!self->on)
		return;	/* skipped */
	ASSERT_LE(BATCH, self->timers);
	ASSERT_EQ(0, uring_init(&ring, 4));
	ASSERT_EQ(0, fill(self->fd, self->batch, self->timers));
	push_out(self->fd, resident(self->fd));
	for (i = 0; i < BATCH; i++)
		self->batch[i] = ask(EXPIRY_OP_CANCEL,
				     1 + i * (self->timers / BATCH));
	sqe = uring_sqe(&ring, IORING_OP_URING_CMD, self->fd, 1);
	sqe->cmd_op = EXPIRY_IOC_SUBMIT;
	batch = (void *)sqe->cmd;
	batch->addr = (__u64)(uintptr_t)self->batch;
	batch->count = BATCH;
	ASSERT_EQ(1, uring_submit(&ring));
	ASSERT_EQ(0, uring_wait(&ring, &cqe, WAIT_MS));
	ASSERT_EQ(BATCH, cqe.res);
	for (i = 0; i < BATCH; i++) {
		ASSERT_EQ(0, self->batch[i].status);
		ASSERT_EQ(~self->batch[i].id, self->batch[i].cookie);
	}
	ASSERT_EQ(self->timers - BATCH, queue_armed(self->fd));
	uring_fini(&ring);
}

TEST_HARNESS_MAIN
