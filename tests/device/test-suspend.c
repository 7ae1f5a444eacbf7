// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The machine sleeps while processes wait for deadlines.
 *
 * EXPIRY_TEST_SUSPEND allows some of these, with commas between them. "freezer": all
 * processes are frozen and nothing else is; any other word allows it, too. "freeze" or
 * "mem": a state of /sys/power/state; the machine's clock wakes it. "test_resume": an
 * image of the machine is written to swap on EXPIRY_TEST_SWAP, all of that disk, and
 * read again at once. Skipped without.
 */
#include "device.h"
#include "files.h"
#include "pressure.h"
#include "uring.h"

#include <sys/sysmacros.h>

#define POWER		"/sys/power/"
#define WAKE_ALARM	"/sys/class/rtc/rtc0/wakealarm"
#define DELAY		"/sys/module/suspend/parameters/pm_test_delay"
#define SLEEP_S		5
#define UNPIN_MS	"/sys/module/expiry/parameters/unpin_ms"
#define TRACING		"/sys/kernel/tracing/"

/* Freezes all other processes for a time. */
static int freeze_processes(const char *seconds)
{
	int err;

	write_text(DELAY, seconds);
	err = write_text(POWER "pm_test", "freezer");
	if (!err) {
		err = write_text(POWER "state", "freeze");
		write_text(POWER "pm_test", "none");
	}
	return err;
}

/* Lets the machine sleep in @state; its clock wakes it after @seconds at the latest. */
static int sleep_in(const char *state, int seconds)
{
	char alarm[16];
	int err;

	snprintf(alarm, sizeof(alarm), "+%d", seconds);
	write_text(WAKE_ALARM, "0");
	err = write_text(WAKE_ALARM, alarm);
	return err ? err : write_text(POWER "state", state);
}

/* Whether EXPIRY_TEST_SUSPEND has the word. */
static bool allows(const char *word)
{
	const char *at = getenv("EXPIRY_TEST_SUSPEND");
	size_t length = strlen(word);

	while (at && *at) {
		if (!strncmp(at, word, length) &&
		    (!at[length] || at[length] == ','))
			return true;
		at += strcspn(at, ",");
		at += *at == ',';
	}
	return false;
}

FIXTURE(suspend) {
	const char *how;
};

FIXTURE_SETUP(suspend)
{
	self->how = getenv("EXPIRY_TEST_SUSPEND");
}

FIXTURE_TEARDOWN(suspend)
{
}

/* Ways to wait for one expiration, each in a child. */

static int get_by_read(int fd, struct expiry_record *record)
{
	return receive(fd, record, 1);
}

static int get_by_poll(int fd, struct expiry_record *record)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	MUST(poll(&pollfd, 1, WAIT_MS) == 1);
	return receive(fd, record, 1);
}

static int get_by_ring(int fd, struct expiry_record *record)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;

	if (uring_init(&ring, 1))
		return receive(fd, record, 1);
	sqe = uring_sqe(&ring, IORING_OP_READ, fd, 1);
	sqe->addr = (__u64)(uintptr_t)record;
	sqe->len = RECORD;
	sqe->off = -1;
	MUST(uring_submit(&ring) == 1);
	MUST(uring_wait(&ring, &cqe, WAIT_MS) == 0);
	return cqe.res == RECORD ? 1 : cqe.res;
}

TEST_F(suspend, who_waits_is_frozen_and_goes_on)
{
	static int (*const gets[])(int fd, struct expiry_record *record) = {
		get_by_read, get_by_poll, get_by_ring,
	};
	/* While all is frozen, and after that. */
	static const __u64 deadlines_ns[] = {
		500 * NSEC_PER_MSEC, 4 * NSEC_PER_SEC,
	};
	pid_t pids[ARRAY_SIZE(gets)];
	struct expiry_record record;
	unsigned int i, j;
	int fd;

	if (!self->how)
		SKIP(return, "EXPIRY_TEST_SUSPEND does not allow it");
	if (access(POWER "pm_test", W_OK))
		SKIP(return, POWER "pm_test: %s", strerror(errno));
	for (j = 0; j < ARRAY_SIZE(deadlines_ns); j++) {
		for (i = 0; i < ARRAY_SIZE(gets); i++) {
			fd = queue_new_flags(CLOCK_MONOTONIC, 0, 0);
			ASSERT_LE(0, fd);
			record = arm_in(deadlines_ns[j], i);
			pids[i] = fork();
			if (!pids[i]) {
				MUST(request(fd, &record) == 0);
				MUST(gets[i](fd, &record) == 1);
				MUST(record.cookie == i);
				MUST(record.deadline_ns <=
				     clock_ns(CLOCK_MONOTONIC));
				_exit(0);
			}
			close(fd);
		}
		sleep_ms(100);
		ASSERT_EQ(0, freeze_processes("1"));
		for (i = 0; i < ARRAY_SIZE(gets); i++)
			EXPECT_EQ(0, child_status(pids[i]));
	}
}

static int trace_on(const char *on)
{
	int err = write_text(TRACING "events/workqueue/workqueue_execute_start/enable",
			     on);

	return err ? err : write_text(TRACING "events/power/suspend_resume/enable",
				      on);
}

/* When the work item that unpins pages ran. */
struct runs {
	unsigned int before;	/* the processes were frozen */
	unsigned int frozen;
	unsigned int after;
};

static struct runs find_runs(void)
{
	FILE *file = fopen(TRACING "trace", "re");
	struct runs runs = { 0 };
	unsigned int *when = &runs.before;
	char line[1024];

	while (file && fgets(line, sizeof(line), file)) {
		if (strstr(line, "freeze_processes[0] end"))
			when = &runs.frozen;
		else if (strstr(line, "thaw_processes[0] begin"))
			when = &runs.after;
		else if (strstr(line, "function trim_idle_work"))
			++*when;
	}
	if (file)
		fclose(file);
	return runs;
}

/*
 * The work items read from swap and free its slots. While a hibernation image is
 * made and written, its swap must not change.
 */
TEST_F(suspend, work_items_are_frozen)
{
	struct expiry_record record = arm_in(HOUR_NS, 1);
	struct runs runs = { 0 };
	char unpin_ms[16];
	int fd, tries;

	if (!self->how)
		SKIP(return, "EXPIRY_TEST_SUSPEND does not allow it");
	if (access(POWER "pm_test", W_OK))
		SKIP(return, POWER "pm_test: %s", strerror(errno));
	if (trace_on("1"))
		SKIP(return, "no tracepoints of work items");
	snprintf(unpin_ms, sizeof(unpin_ms), "%lld", read_number(UNPIN_MS, ""));
	fd = queue_new_flags(CLOCK_MONOTONIC, 0, 0);
	ASSERT_LE(0, fd);
	/* Freezing must not take longer than until the item is due. */
	ASSERT_EQ(0, write_text(UNPIN_MS, "1000"));
	for (tries = 0; tries < 5 && !runs.after && !runs.frozen; tries++) {
		/* Let the item of the last try end; then that of this one begins. */
		sleep_ms(2500);
		EXPECT_EQ(0, write_text(TRACING "trace", "\n"));
		EXPECT_EQ(0, request(fd, &record));
		EXPECT_EQ(0, freeze_processes("3"));
		sleep_ms(1000);
		runs = find_runs();
	}
	EXPECT_EQ(0, runs.frozen);
	EXPECT_LT(0, runs.after);
	trace_on("0");
	write_text(UNPIN_MS, unpin_ms);
	close(fd);
}

/* Returns how long the machine has slept since it was started. */
static __u64 slept_ns(void)
{
	__u64 mono_ns = clock_ns(CLOCK_MONOTONIC);

	return clock_ns(CLOCK_BOOTTIME) - mono_ns;
}

/* A state of /sys/power/state in which the machine sleeps. */
FIXTURE(sleep) {
	int unused;
};

FIXTURE_VARIANT(sleep) {
	const char *state;
};

FIXTURE_VARIANT_ADD(sleep, freeze) {
	.state = "freeze",
};

FIXTURE_VARIANT_ADD(sleep, mem) {
	.state = "mem",
};

/* The tests skip: a skip in here does not keep them from running. */
FIXTURE_SETUP(sleep)
{
}

FIXTURE_TEARDOWN(sleep)
{
}

/* Takes what a periodic timer has ready. Returns how many times it was due. */
static __u64 take_periods(int fd, unsigned int *records)
{
	struct expiry_record record;
	__u64 times = 0;

	while (receive(fd, &record, 1) == 1) {
		times += record.count;
		++*records;
	}
	return times;
}

/*
 * One sleep for all, as an emulated machine may wake at once from the next. Only the
 * alarm ends it in time; what is due before on other clocks is delivered then.
 */
TEST_F(sleep, alarms_wake_boottime_goes_on_and_monotonic_does_not)
{
	enum { LATEST_S = 30 };
	__u64 began_ns, took_ns, slept_before_ns = slept_ns(), times;
	int boot, mono, alarm, later, periodic;
	struct expiry_record record;
	unsigned int records = 0;
	pid_t pid;

	if (!allows(variant->state))
		SKIP(return, "EXPIRY_TEST_SUSPEND does not allow it");
	if (access(WAKE_ALARM, W_OK))
		SKIP(return, WAKE_ALARM ": %s", strerror(errno));
	boot = queue_new_flags(CLOCK_BOOTTIME, 0, 0);
	mono = queue_new_flags(CLOCK_MONOTONIC, 0, 0);
	alarm = queue_new_flags(CLOCK_BOOTTIME_ALARM, 0, 0);
	later = queue_new_flags(CLOCK_BOOTTIME_ALARM, 0, 0);
	periodic = queue_new_flags(CLOCK_BOOTTIME, 0, O_NONBLOCK);
	ASSERT_LE(0, boot);
	ASSERT_LE(0, mono);
	ASSERT_LE(0, alarm);
	ASSERT_LE(0, later);
	ASSERT_LE(0, periodic);
	began_ns = clock_ns(CLOCK_BOOTTIME);
	record = arm_in(3 * NSEC_PER_SEC, 1);
	ASSERT_EQ(0, request(boot, &record));
	record = arm_in(HOUR_NS, 2);
	ASSERT_EQ(0, request(boot, &record));
	/* Longer than falling asleep takes, shorter than with the sleep. */
	record = arm_in(SLEEP_S * NSEC_PER_SEC, 3);
	ASSERT_EQ(0, request(mono, &record));
	record = arm_in(HOUR_NS, 4);
	ASSERT_EQ(0, request(later, &record));
	record = arm_in(SLEEP_S * NSEC_PER_SEC, 5);
	ASSERT_EQ(0, request(alarm, &record));
	record = arm_in(NSEC_PER_MSEC, 6);
	record.period_ms = 1;
	ASSERT_EQ(0, request(periodic, &record));
	pid = fork();
	if (!pid) {
		MUST(receive(boot, &record, 1) == 1);
		MUST(record.cookie == 1);
		_exit(0);
	}
	sleep_ms(100);
	ASSERT_EQ(0, sleep_in(variant->state, LATEST_S));

	times = take_periods(periodic, &records);
	took_ns = clock_ns(CLOCK_BOOTTIME) - began_ns;
	TH_LOG("slept %llu ms of %llu; %llu times in %u records",
	       (unsigned long long)(slept_ns() - slept_before_ns) / NSEC_PER_MSEC,
	       (unsigned long long)took_ns / NSEC_PER_MSEC,
	       (unsigned long long)times, records);
	EXPECT_LE(3 * NSEC_PER_SEC, slept_ns() - slept_before_ns);
	/* The machine's clock counts seconds. */
	EXPECT_LE((SLEEP_S - 1) * NSEC_PER_SEC, took_ns);
	EXPECT_GT((LATEST_S - 10) * NSEC_PER_SEC, took_ns);
	EXPECT_LE((SLEEP_S - 1) * 1000, times);
	EXPECT_GE(took_ns / NSEC_PER_MSEC, times);
	EXPECT_GT(1000, records);

	EXPECT_EQ(0, child_status(pid));
	EXPECT_EQ(1, queue_armed(boot));
	EXPECT_EQ(0, queue_poll(boot, QUIET_MS));
	EXPECT_EQ(POLLIN, queue_poll(alarm, WAIT_MS));
	EXPECT_EQ(1, receive(alarm, &record, 1));
	EXPECT_EQ(5, record.cookie);
	EXPECT_EQ(0, queue_poll(later, QUIET_MS));

	/* The time left before the sleep is still left. */
	EXPECT_EQ(1, receive(mono, &record, 1));
	EXPECT_EQ(3, record.cookie);
	EXPECT_LE(record.deadline_ns, clock_ns(CLOCK_MONOTONIC));
	close(boot);
	close(mono);
	close(alarm);
	close(later);
	close(periodic);
}

/* Makes all of @disk swap, for the image, too. */
static int swap_to(const char *disk)
{
	char number[32];
	struct stat stat_buf;
	int fd = open(disk, O_RDONLY | O_CLOEXEC), err;
	off_t size = lseek(fd, 0, SEEK_END);

	close(fd);
	if (stat(disk, &stat_buf) || size <= 0)
		return -ENODEV;
	err = swap_make(disk, size / pressure_page());
	if (!err && swapon(disk, 0))
		err = -errno;
	snprintf(number, sizeof(number), "%u:%u", major(stat_buf.st_rdev),
		 minor(stat_buf.st_rdev));
	/* Looks for an image there, and finds none. */
	if (!err)
		write_text(POWER "resume", number);
	return err;
}

/* Arms timers, some of them due during the sleep. Returns 0 or -errno. */
static int arm_many(int fd, struct expiry_record *records, __u32 nr)
{
	__u32 i;

	for (i = 0; i < nr; i++) {
		records[i] = arm_in(i % 100 ? HOUR_NS + i : NSEC_PER_MSEC, ~i);
		records[i].id = i + 1;
	}
	for (i = 0; i < nr; i += 1000)
		if (submit(fd, records + i, 1000) != 1000)
			return -EIO;
	return 0;
}

/* Returns how many of the timers are as they were; takes those that are due. */
static __u32 count_right(int fd, const struct expiry_record *records, __u32 nr)
{
	struct expiry_record record;
	__u32 i, right = 0;

	while (receive(fd, &record, 1) == 1)
		right += record.op == EXPIRY_OP_EXPIRED &&
			 record.id <= nr && record.id % 100 == 1 &&
			 record.cookie == records[record.id - 1].cookie;
	for (i = 0; i < nr; i++) {
		if (i % 100 == 0)
			continue;
		record = ask(EXPIRY_OP_QUERY, i + 1);
		right += !request(fd, &record) &&
			 record.deadline_ns == records[i].deadline_ns &&
			 record.cookie == records[i].cookie;
	}
	return right;
}

/*
 * Timers of queues, in memory and paged out, are in the image or in the swap around
 * it: of two that a memory cgroup pays for, and of one outside of it. The image is as
 * small as possible, so that most pages of queues are paged out.
 */
TEST_F(suspend, timers_outlive_hibernation)
{
	enum { QUEUES = 3, TIMERS = 50000 };
	static struct expiry_record records[QUEUES][TIMERS];
	static const clockid_t clocks[QUEUES] = {
		CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME,
	};
	const char *disk = getenv("EXPIRY_TEST_SWAP");
	int fds[QUEUES], i;

	if (!allows("test_resume"))
		SKIP(return, "EXPIRY_TEST_SUSPEND does not allow it");
	ASSERT_NE(NULL, disk);
	ASSERT_EQ(0, swap_to(disk));
	ASSERT_EQ(0, write_text(POWER "image_size", "0"));
	ASSERT_EQ(0, write_text(POWER "disk", "test_resume"));
	ASSERT_EQ(0, write_text(UNPIN_MS, "10"));
	ASSERT_EQ(NULL, group_make());
	for (i = 0; i < QUEUES; i++) {
		ASSERT_EQ(0, i ? group_enter() : group_leave());
		fds[i] = queue_new_flags(clocks[i], EXPIRY_MODE_KEYED,
					 O_NONBLOCK);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, arm_many(fds[i], records[i], TIMERS));
	}
	sleep_ms(1000);
	ASSERT_EQ(0, write_text(POWER "state", "disk"));
	TH_LOG("%lld kB in swap after it", read_number("/proc/meminfo", "SwapTotal:") -
	       read_number("/proc/meminfo", "SwapFree:"));
	for (i = 0; i < QUEUES; i++) {
		EXPECT_EQ(POLLIN, queue_poll(fds[i], WAIT_MS));
		EXPECT_EQ(TIMERS, count_right(fds[i], records[i], TIMERS));
		EXPECT_EQ(TIMERS - TIMERS / 100, queue_armed(fds[i]));
		close(fds[i]);
	}
	group_leave();
	group_remove();
	EXPECT_EQ(0, swapoff(disk));
}

TEST_HARNESS_MAIN
