// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A process that uses a queue is killed at any point, while another holds the
 * queue, too. The survivor finds it consistent. Of a batch, a beginning was
 * done and the rest was not. Read timers were read once; all others are still
 * to come.
 */
#include "device.h"
#include "uring.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <linux/userfaultfd.h>

#define PAGE		65536U		/* of any machine: a multiple of its own */
#define A_PAGE		(PAGE / (unsigned int)RECORD)	/* records */
#define BATCH		EXPIRY_BATCH_MAX
#define MOST		(2 * BATCH)
#define ROUNDS		6

/* Memory shared by the victim and its killer: its results. */
struct shared {
	unsigned int stuck;		/* it waits for a page */
	_Alignas(PAGE) struct expiry_record records[MOST];
	_Alignas(PAGE) struct expiry_record read[BATCH];
};

FIXTURE(killed) {
	int fd;
	struct shared *shared;
	unsigned char *times;		/* how often each cookie was met */
};

FIXTURE_VARIANT(killed) {
	__u32 mode;
};

FIXTURE_VARIANT_ADD(killed, plain) {
	.mode = 0,
};

FIXTURE_VARIANT_ADD(killed, ack) {
	.mode = EXPIRY_MODE_ACK,
};

FIXTURE_VARIANT_ADD(killed, keyed) {
	.mode = EXPIRY_MODE_KEYED,
};

FIXTURE_SETUP(killed)
{
	self->fd = queue_new_flags(CLOCK_MONOTONIC, variant->mode, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->times = calloc(MOST, 1);
	ASSERT_NE(NULL, self->times);
	/* Untouched: there are no pages behind it yet. */
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
}

FIXTURE_TEARDOWN(killed)
{
	munmap(self->shared, sizeof(*self->shared));
	free(self->times);
	close(self->fd);
}

/* Makes requests to arm, @ns from now, with cookies from 0. */
static void fill(struct expiry_record *records, unsigned int count, __u32 mode,
		 __u64 ns)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		records[i] = arm_in(ns + i, i);
		if (mode & EXPIRY_MODE_KEYED)
			records[i].id = i + 1;
	}
}

/* A reply has lost the flag of its request. */
static bool is_done(const struct expiry_record *record)
{
	return !__atomic_load_n(&record->flags, __ATOMIC_ACQUIRE);
}

/* Returns how many of @count requests were done; -EPROTO if not the first ones.
 */
static int done_of(const struct expiry_record *records, unsigned int count)
{
	unsigned int i, done = 0;

	while (done < count && is_done(&records[done]))
		done++;
	for (i = done; i < count; i++)
		if (is_done(&records[i]))
			return -EPROTO;
	return done;
}

/* Returns how many expirations the victim got, likewise. */
static int given_of(const struct expiry_record *records, unsigned int count)
{
	unsigned int i, given = 0;

	while (given < count && records[given].op == EXPIRY_OP_EXPIRED)
		given++;
	for (i = given; i < count; i++)
		if (records[i].op)
			return -EPROTO;
	return given;
}

static void meet(unsigned char *times, const struct expiry_record *records,
		 int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (records[i].cookie < MOST)
			times[records[i].cookie]++;
}

/* Returns whether the cookies met are 0 to @count - 1, once each; then resets
 * them.
 */
static bool met_once(unsigned char *times, unsigned int count)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < MOST; i++)
		wrong += times[i] != (i < count);
	memset(times, 0, MOST);
	return !wrong;
}

/* Returns how many timers SCAN lists, as STAT counts them, or -EPROTO. */
static int list(int fd, unsigned char *times)
{
	static struct expiry_record rows[1000];
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)rows,
		.count = ARRAY_SIZE(rows),
	};
	struct expiry_stat stat;
	int ret, count = 0;

	do {
		ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);
		if (ret < 0)
			return -errno;
		meet(times, rows, ret);
		count += ret;
	} while (scan.cursor);
	if (queue_stat(fd, &stat))
		return -ENODATA;
	return count == (int)(stat.armed + stat.unacked) ? count : -EPROTO;
}

/* Returns how many expirations can be read, in order of deadline, or -EPROTO.
 */
static int drain(int fd, unsigned char *times)
{
	static struct expiry_record records[1000];
	__u64 last_ns = 0;
	int ret, i, count = 0;

	while ((ret = receive(fd, records, ARRAY_SIZE(records))) > 0) {
		for (i = 0; i < ret; i++) {
			if (records[i].deadline_ns < last_ns)
				return -EPROTO;
			last_ns = records[i].deadline_ns;
		}
		meet(times, records, ret);
		count += ret;
	}
	return ret == -EAGAIN ? count : ret;
}

/* Checks that a cleared queue is empty and delivers, whatever happened before.
 */
static bool still_works(int fd, __u32 mode)
{
	struct expiry_record record = ask(EXPIRY_OP_CLEAR, 0), rest;
	struct expiry_stat stat;

	if (request(fd, &record) || queue_stat(fd, &stat) || stat.armed ||
	    stat.unacked)
		return false;
	record = arm_in(5 * NSEC_PER_MSEC, 77);
	record.id = mode & EXPIRY_MODE_KEYED ? 12345 : 0;
	if (request(fd, &record) || receive_wait(fd, &record, 1) != 1 ||
	    record.cookie != 77 || receive(fd, &rest, 1) != -EAGAIN)
		return false;
	if (mode & EXPIRY_MODE_ACK) {
		record = ask(EXPIRY_OP_ACK, record.id);
		if (request(fd, &record))
			return false;
	}
	return queue_armed(fd) == 0;
}

static bool end(pid_t pid)
{
	int status;

	return !kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid &&
	       WIFSIGNALED(status);
}

/* Waits for a flag in shared memory; false: timeout. */
#define UNTIL(what)							\
	({								\
		__u64 limit_ns = clock_ns(CLOCK_MONOTONIC) +		\
				 WAIT_MS * NSEC_PER_MSEC;		\
		bool seen;						\
									\
		while (!(seen = (what)) &&				\
		       clock_ns(CLOCK_MONOTONIC) < limit_ns)		\
			sched_yield();					\
		seen;							\
	})

/*
 * At rest
 */

static void wait_by_read(int fd)
{
	struct expiry_record record;

	receive(fd, &record, 1);
}

static void wait_by_poll(int fd)
{
	queue_poll(fd, -1);
}

static void wait_by_ring(int fd)
{
	struct expiry_record records[4];
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;
	unsigned int i;

	if (uring_init(&ring, 8))
		pause();
	for (i = 0; i < ARRAY_SIZE(records); i++) {
		sqe = uring_sqe(&ring, IORING_OP_READ, fd, i);
		sqe->addr = (__u64)(uintptr_t)&records[i];
		sqe->len = RECORD;
		sqe->off = -1;
		/* Some of them in a worker. */
		sqe->flags = i % 2 ? IOSQE_ASYNC : 0;
	}
	sqe = uring_sqe(&ring, IORING_OP_POLL_ADD, fd, i);
	sqe->poll32_events = POLLIN;
	uring_submit(&ring);
	uring_wait(&ring, &cqe, -1);
}

TEST_F(killed, who_waits_takes_nothing_along)
{
	static void (*const waits[])(int fd) = {
		wait_by_read, wait_by_poll, wait_by_ring,
	};
	struct expiry_record *records = self->shared->records;
	unsigned int i, round;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		for (round = 0; round < ROUNDS; round++) {
			fill(records, 100, variant->mode, HOUR_NS);
			ASSERT_EQ(100, submit(self->fd, records, 100));
			ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
			pid = fork();
			if (!pid) {
				waits[i](self->fd);
				_exit(0);
			}
			sleep_ms(round * 10);
			ASSERT_TRUE(end(pid));
			ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));

			EXPECT_EQ(100, list(self->fd, self->times));
			EXPECT_TRUE(met_once(self->times, 100));
			EXPECT_TRUE(still_works(self->fd, variant->mode));
		}
	}
}

/* In the middle of its work */

struct victim {
	int fd;
	struct shared *shared;
};

static void *submit_two_batches(void *arg)
{
	struct victim *victim = arg;

	submit(victim->fd, victim->shared->records, BATCH);
	submit(victim->fd, victim->shared->records + BATCH, BATCH);
	return NULL;
}

TEST_F(killed, of_a_batch_a_beginning_is_done)
{
	static const unsigned int when[ROUNDS] = {
		0, 5000, 30000, BATCH - 1, BATCH + 10000, BATCH + 50000,
	};
	struct victim victim = { self->fd, self->shared };
	struct expiry_record *records = self->shared->records;
	unsigned int round;
	pthread_t thread;
	int armed;
	pid_t pid;

	for (round = 0; round < ROUNDS; round++) {
		fill(records, MOST, variant->mode, 0);
		pid = fork();
		if (!pid) {
			pthread_create(&thread, NULL, submit_two_batches,
				       &victim);
			pause();
		}
		ASSERT_TRUE(UNTIL(is_done(&records[when[round]])));
		ASSERT_TRUE(end(pid));

		armed = list(self->fd, self->times);
		EXPECT_LT(when[round], armed);
		EXPECT_EQ(armed, done_of(records, MOST));
		EXPECT_TRUE(met_once(self->times, armed));
		/* They are due, and come. */
		EXPECT_EQ(armed, drain(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, armed));
		EXPECT_TRUE(still_works(self->fd, variant->mode));
	}
}

TEST_F(killed, what_was_read_was_read_once)
{
	static const unsigned int when[ROUNDS] = {
		0, 100, 3000, 20000, 40000, BATCH - 1,
	};
	struct expiry_record *records = self->shared->records;
	struct expiry_record *read = self->shared->read;
	unsigned int round;
	int given;
	pid_t pid;

	for (round = 0; round < ROUNDS; round++) {
		fill(records, BATCH, variant->mode, 0);
		ASSERT_EQ(BATCH, submit(self->fd, records, BATCH));
		memset(read, 0, sizeof(self->shared->read));
		pid = fork();
		if (!pid) {
			receive(self->fd, read, BATCH);
			pause();
		}
		ASSERT_TRUE(UNTIL(__atomic_load_n(&read[when[round]].op,
						  __ATOMIC_ACQUIRE)));
		ASSERT_TRUE(end(pid));

		given = given_of(read, BATCH);
		EXPECT_LT(when[round], given);
		if (variant->mode & EXPIRY_MODE_ACK) {
			ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
			given = 0;
		}
		meet(self->times, read, given);
		EXPECT_EQ(BATCH - given, drain(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, BATCH));
		EXPECT_TRUE(still_works(self->fd, variant->mode));
	}
}

static void scan_for_ever(int fd, struct expiry_record *rows)
{
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)rows,
		.count = BATCH,
	};

	for (;;)
		ioctl(fd, EXPIRY_IOC_SCAN, &scan);
}

TEST_F(killed, scan_leaves_all_as_it_was)
{
	struct expiry_record *records = self->shared->records;
	struct expiry_record *rows = self->shared->read;
	unsigned int round;
	pid_t pid;

	fill(records, BATCH, variant->mode, 0);
	ASSERT_EQ(BATCH, submit(self->fd, records, BATCH));
	for (round = 0; round < ROUNDS; round++) {
		memset(rows, 0, sizeof(self->shared->read));
		pid = fork();
		if (!pid)
			scan_for_ever(self->fd, rows);
		ASSERT_TRUE(UNTIL(__atomic_load_n(&rows[round * 10000].id,
						  __ATOMIC_ACQUIRE)));
		ASSERT_TRUE(end(pid));
		EXPECT_EQ(BATCH, list(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, BATCH));
	}
	EXPECT_EQ(BATCH, drain(self->fd, self->times));
	EXPECT_TRUE(met_once(self->times, BATCH));
}

TEST_F(killed, rewind_loses_nothing)
{
	struct expiry_record *records = self->shared->records;
	struct expiry_record record;
	unsigned int round;
	pid_t pid;

	if (!(variant->mode & EXPIRY_MODE_ACK))
		SKIP(return, "the queue does not acknowledge");
	fill(records, BATCH, variant->mode, 0);
	ASSERT_EQ(BATCH, submit(self->fd, records, BATCH));
	ASSERT_EQ(BATCH, drain(self->fd, self->times));
	ASSERT_TRUE(met_once(self->times, BATCH));
	for (round = 0; round < ROUNDS; round++) {
		pid = fork();
		if (!pid) {
			/* Some of it is read again, to have more work. */
			for (;;) {
				ioctl(self->fd, EXPIRY_IOC_REWIND);
				receive(self->fd, self->shared->read,
					BATCH / 2);
			}
		}
		sleep_ms(1 + round * 7);
		ASSERT_TRUE(end(pid));
		EXPECT_EQ(BATCH, list(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, BATCH));
		ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
		EXPECT_EQ(1, receive(self->fd, &record, 1));
		EXPECT_EQ(EXPIRY_F_REDELIVERED, record.flags);
		meet(self->times, &record, 1);
		EXPECT_EQ(BATCH - 1, drain(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, BATCH));
	}
	EXPECT_TRUE(still_works(self->fd, variant->mode));
}

/* In the victim: a signal ends it @ms from now, wherever it is then. */
static void die_in(unsigned int ms)
{
	struct itimerval timer = {
		.it_value.tv_sec = ms / 1000,
		.it_value.tv_usec = ms % 1000 * 1000,
	};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* A fatal signal ends REWIND after a step: it is done in part. */
TEST_F(killed, rewind_ends_by_a_signal)
{
	enum { BATCHES = 8 };
	struct expiry_stat stat;
	unsigned int i, ms = 0;
	__u64 all;
	pid_t pid;

	if (!(variant->mode & EXPIRY_MODE_ACK))
		SKIP(return, "the queue does not acknowledge");
	for (i = 0; i < BATCHES; i++) {
		fill(self->shared->records, BATCH, variant->mode, 0);
		ASSERT_EQ(BATCH, submit(self->fd, self->shared->records, BATCH));
	}
	for (i = 0; i < BATCHES; i++)
		ASSERT_EQ(BATCH, receive(self->fd, self->shared->read, BATCH));
	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	all = stat.unacked;
	ASSERT_EQ(BATCHES * BATCH, all);

	/* Later and later, until it does not come before REWIND begins. */
	do {
		pid = fork();
		if (!pid) {
			die_in(ms + 1);
			ioctl(self->fd, EXPIRY_IOC_REWIND);
			pause();
		}
		ms++;
		ASSERT_EQ(-1, child_status(pid));
		ASSERT_EQ(0, queue_stat(self->fd, &stat));
	} while (stat.unacked == all);
	EXPECT_LT(0, stat.unacked);
	EXPECT_EQ(all, stat.unacked + stat.armed);
	/* Done in part: repeating it does the rest. */
	ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	EXPECT_EQ(all, queue_armed(self->fd));
	EXPECT_TRUE(still_works(self->fd, variant->mode));
}

/* Waiting for a page of its own memory that never comes */

static int userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return ioctl(fd, UFFDIO_API, &api) ? -errno : fd;
}

/* Returns why none is available, or 0. */
static int no_userfaultfd(void)
{
	int fd = userfaultfd();

	if (fd < 0)
		return -fd;
	close(fd);
	return 0;
}

#define NO_USERFAULTFD	"userfaultfd: %s", strerror(no_userfaultfd())

struct watch {
	int uffd;
	struct shared *shared;
};

static void *tell_when_stuck(void *arg)
{
	struct watch *watch = arg;
	struct uffd_msg msg;

	if (read(watch->uffd, &msg, sizeof(msg)) == sizeof(msg))
		__atomic_store_n(&watch->shared->stuck, 1, __ATOMIC_RELEASE);
	pause();
	return NULL;
}

/* In the victim: removes all pages of @records but the first. */
static void miss_pages(struct shared *shared, struct expiry_record *records)
{
	static struct watch watch;
	struct uffdio_register range = {
		.range.start = (uintptr_t)(records + A_PAGE),
		.range.len = 4 * PAGE,
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	pthread_t thread;

	watch = (struct watch) { userfaultfd(), shared };
	MUST(watch.uffd >= 0);
	MUST(ioctl(watch.uffd, UFFDIO_REGISTER, &range) == 0);
	MUST(pthread_create(&thread, NULL, tell_when_stuck, &watch) == 0);
}

static void submit_by_ring(int fd, struct expiry_record *records, __u32 count)
{
	struct expiry_batch batch = {
		.addr = (__u64)(uintptr_t)records,
		.count = count,
	};
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;

	MUST(uring_init(&ring, 4) == 0);
	sqe = uring_sqe(&ring, IORING_OP_URING_CMD, fd, 1);
	sqe->cmd_op = EXPIRY_IOC_SUBMIT;
	sqe->flags = IOSQE_ASYNC;
	memcpy(sqe->cmd, &batch, sizeof(batch));
	MUST(uring_submit(&ring) == 1);
	uring_wait(&ring, &cqe, -1);
}

TEST_F(killed, batch_ends_where_its_memory_does_not_come)
{
	struct expiry_record *records = self->shared->records;
	struct expiry_record one;
	struct uring ring;
	int by_ring;
	pid_t pid;

	if (no_userfaultfd())
		SKIP(return, NO_USERFAULTFD);
	for (by_ring = 0; by_ring < 2; by_ring++) {
		if (by_ring && uring_init(&ring, 1))
			SKIP(return, "no io_uring");
		fill(records, A_PAGE, variant->mode, 0);
		self->shared->stuck = 0;
		pid = fork();
		if (!pid) {
			miss_pages(self->shared, records);
			if (by_ring)
				submit_by_ring(self->fd, records, 2 * A_PAGE);
			else
				submit(self->fd, records, 2 * A_PAGE);
			_exit(0);
		}
		ASSERT_TRUE(UNTIL(__atomic_load_n(&self->shared->stuck,
						  __ATOMIC_ACQUIRE)));
		/* It blocks no other process. */
		one = arm_at(1, A_PAGE);
		one.id = variant->mode & EXPIRY_MODE_KEYED ? A_PAGE + 1 : 0;
		EXPECT_EQ(0, request(self->fd, &one));
		EXPECT_EQ(A_PAGE + 1, list(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, A_PAGE + 1));
		ASSERT_TRUE(end(pid));

		EXPECT_EQ(A_PAGE, done_of(records, A_PAGE));
		EXPECT_EQ(A_PAGE + 1, list(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, A_PAGE + 1));
		EXPECT_EQ(A_PAGE + 1, drain(self->fd, self->times));
		EXPECT_TRUE(met_once(self->times, A_PAGE + 1));
		EXPECT_TRUE(still_works(self->fd, variant->mode));
	}
}

TEST_F(killed, read_ends_where_its_memory_does_not_come)
{
	struct expiry_record *records = self->shared->records;
	struct expiry_record *read = self->shared->read;
	bool acks = variant->mode & EXPIRY_MODE_ACK;
	unsigned int count = 3 * A_PAGE;
	struct expiry_record one;
	pid_t pid;

	if (no_userfaultfd())
		SKIP(return, NO_USERFAULTFD);
	fill(records, count, variant->mode, 0);
	ASSERT_EQ(count, submit(self->fd, records, count));
	pid = fork();
	if (!pid) {
		miss_pages(self->shared, read);
		receive(self->fd, read, count);
		_exit(0);
	}
	ASSERT_TRUE(UNTIL(__atomic_load_n(&self->shared->stuck,
					  __ATOMIC_ACQUIRE)));
	/* Nobody has to wait for it, neither another reader nor REWIND. */
	EXPECT_EQ(POLLIN, queue_poll(self->fd, 0));
	EXPECT_EQ(count - A_PAGE, queue_armed(self->fd));
	ASSERT_EQ(1, receive(self->fd, &one, 1));
	EXPECT_EQ(A_PAGE, one.cookie);
	if (acks)
		EXPECT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
	ASSERT_TRUE(end(pid));

	EXPECT_EQ(A_PAGE, given_of(read, A_PAGE));
	if (!acks) {
		meet(self->times, read, A_PAGE);
		meet(self->times, &one, 1);
	}
	EXPECT_EQ(acks ? count : count - A_PAGE - 1,
		  drain(self->fd, self->times));
	EXPECT_TRUE(met_once(self->times, count));
	EXPECT_TRUE(still_works(self->fd, variant->mode));
}

TEST_F(killed, scan_ends_where_its_memory_does_not_come)
{
	struct expiry_record *records = self->shared->records;
	unsigned int count = 3 * A_PAGE;
	pid_t pid;

	if (no_userfaultfd())
		SKIP(return, NO_USERFAULTFD);
	fill(records, count, variant->mode, 0);
	ASSERT_EQ(count, submit(self->fd, records, count));
	pid = fork();
	if (!pid) {
		miss_pages(self->shared, self->shared->read);
		scan_for_ever(self->fd, self->shared->read);
	}
	ASSERT_TRUE(UNTIL(__atomic_load_n(&self->shared->stuck,
					  __ATOMIC_ACQUIRE)));
	EXPECT_EQ(count, list(self->fd, self->times));
	EXPECT_TRUE(met_once(self->times, count));
	ASSERT_TRUE(end(pid));
	EXPECT_EQ(count, list(self->fd, self->times));
	EXPECT_TRUE(met_once(self->times, count));
	EXPECT_EQ(count, drain(self->fd, self->times));
	EXPECT_TRUE(met_once(self->times, count));
	EXPECT_TRUE(still_works(self->fd, variant->mode));
}

TEST_HARNESS_MAIN
