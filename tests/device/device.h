/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Helpers for every test of /dev/expiry: queues, requests, expirations.
 *
 * Helpers return the kernel's result (-errno for a call that failed); the tests
 * check it. Nothing here or in the tests measures lateness. A test waits for
 * the event itself, with a limit that an emulated machine keeps, too.
 */
#ifndef TESTS_DEVICE_H
#define TESTS_DEVICE_H

#include "kselftest_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <linux/expiry.h>

/* The harness allows 30 seconds, which is for real machines. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#define WAIT_MS		60000		/* for expected events */
#define QUIET_MS	300		/* for events that must not come */

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL
#define HOUR_NS		(3600 * NSEC_PER_SEC)

#define RECORD		sizeof(struct expiry_record)

static inline const char *device_path(void)
{
	const char *path = getenv("EXPIRY_DEVICE");

	return path ? path : "/dev/expiry";
}

/* Runs before main(): without the module the whole program is skipped. */
static void __attribute__((constructor)) device_needed(void)
{
	int fd = open(device_path(), O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		close(fd);
		return;
	}
	if (!getenv("KSFT_TAP_LEVEL"))
		printf("TAP version 13\n");
	printf("1..0 # SKIP %s: %s\n", device_path(), strerror(errno));
	fflush(stdout);
	_exit(KSFT_SKIP);
}

static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static inline void sleep_ms(unsigned int ms)
{
	struct timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * NSEC_PER_MSEC,
	};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static inline int queue_open(int flags)
{
	int fd = open(device_path(), O_RDWR | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

static inline int queue_config(int fd, __u32 clock, __u32 mode, __u64 limit)
{
	struct expiry_config config = {
		.clock_id = clock,
		.mode = mode,
		.limit = limit,
	};

	return ioctl(fd, EXPIRY_IOC_CONFIG, &config) ? -errno : 0;
}

/* Returns a configured queue, never blocking if @flags contain O_NONBLOCK. */
static inline int queue_new_flags(__u32 clock, __u32 mode, int flags)
{
	int fd = queue_open(flags);
	int ret;

	if (fd < 0)
		return fd;
	ret = queue_config(fd, clock, mode, 0);
	if (ret) {
		close(fd);
		return ret;
	}
	return fd;
}

static inline int queue_new(__u32 mode)
{
	return queue_new_flags(CLOCK_MONOTONIC, mode, O_NONBLOCK);
}

/* Returns how many records were processed, or -errno. */
static inline int submit(int fd, const void *records, __u32 count)
{
	struct expiry_batch batch = {
		.addr = (__u64)(uintptr_t)records,
		.count = count,
	};
	int ret = ioctl(fd, EXPIRY_IOC_SUBMIT, &batch);

	return ret < 0 ? -errno : ret;
}

/* Submits one record: its status, or a positive errno if the call itself
 * failed.
 */
static inline int request(int fd, struct expiry_record *record)
{
	int ret = submit(fd, record, 1);

	if (ret == 1)
		return record->status;
	return ret < 0 ? -ret : ENODATA;
}

/* Returns whole records read, or -errno; a torn record is -EPROTO. */
static inline int receive(int fd, struct expiry_record *records, __u32 count)
{
	ssize_t ret = read(fd, records, count * RECORD);

	if (ret < 0)
		return -errno;
	return ret % RECORD ? -EPROTO : (int)(ret / RECORD);
}

/* Returns the events that came within @ms. */
static inline short queue_poll(int fd, int ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	int ret = poll(&pollfd, 1, ms);

	return ret > 0 ? pollfd.revents : ret;
}

/* Receives, but waits first; never blocks in read() after a spurious event. */
static inline int receive_wait(int fd, struct expiry_record *records,
			       __u32 count)
{
	int ret;

	do {
		if (queue_poll(fd, WAIT_MS) != POLLIN)
			return -ETIMEDOUT;
		ret = receive(fd, records, count);
	} while (ret == -EAGAIN);
	return ret;
}

static inline int queue_stat(int fd, struct expiry_stat *stat)
{
	memset(stat, 0, sizeof(*stat));
	return ioctl(fd, EXPIRY_IOC_STAT, stat) ? -errno : 0;
}

/* Returns the kernel's count of armed timers; ~0 if that failed. */
static inline __u64 queue_armed(int fd)
{
	struct expiry_stat stat;

	return queue_stat(fd, &stat) ? ~0ULL : stat.armed;
}

static inline struct expiry_record arm_at(__u64 deadline_ns, __u64 cookie)
{
	return (struct expiry_record) {
		.op = EXPIRY_OP_ARM,
		.deadline_ns = deadline_ns,
		.cookie = cookie,
	};
}

static inline struct expiry_record arm_in(__u64 ns, __u64 cookie)
{
	struct expiry_record record = arm_at(ns, cookie);

	record.flags = EXPIRY_F_RELATIVE;
	return record;
}

static inline struct expiry_record ask(__u8 op, __u64 id)
{
	return (struct expiry_record) { .op = op, .id = id };
}

/* Returns the exit status of @pid, or -1 if a signal ended it. */
static inline int child_status(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Reports a false condition in a child, where EXPECT has no effect, and exits.
 */
#define MUST(what)							\
	do {								\
		if (!(what)) {						\
			dprintf(STDOUT_FILENO, "# %s:%d: not so: %s\n",	\
				__FILE__, __LINE__, #what);		\
			_exit(1);					\
		}							\
	} while (0)

#endif /* TESTS_DEVICE_H */
