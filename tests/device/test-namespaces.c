// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Callers in namespaces, as in expiry(4). Deadlines are on the caller's clocks.
 * root of only a user namespace is an ordinary user.
 */
#include "device.h"
#include "files.h"

#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

#define PARAMETERS	"/sys/module/expiry/parameters/"
#define QUEUES		"/sys/kernel/debug/expiry/queues"

/*
 * Time namespaces
 */

#define AHEAD_S		100000
#define AHEAD_NS	(AHEAD_S * NSEC_PER_SEC)

FIXTURE(time_namespace) {
	int fd;
	int err;
};

FIXTURE_VARIANT(time_namespace) {
	clockid_t clock;
};

FIXTURE_VARIANT_ADD(time_namespace, monotonic) {
	.clock = CLOCK_MONOTONIC,
};

FIXTURE_VARIANT_ADD(time_namespace, boottime) {
	.clock = CLOCK_BOOTTIME,
};

/* From here on children are in a namespace whose clocks are ahead. */
FIXTURE_SETUP(time_namespace)
{
	char offsets[64];

	self->fd = queue_new_flags(variant->clock, 0, O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->err = unshare(CLONE_NEWTIME) ? errno : 0;
	if (self->err)
		return;
	snprintf(offsets, sizeof(offsets), "monotonic %d 0\nboottime %d 0\n",
		 AHEAD_S, AHEAD_S);
	ASSERT_EQ(0, write_text("/proc/self/timens_offsets", offsets));
}

FIXTURE_TEARDOWN(time_namespace)
{
	close(self->fd);
}

#define NO_TIME_NAMESPACE	"time namespaces: %s", strerror(self->err)

static struct expiry_record row_of(int fd)
{
	struct expiry_record row = { 0 };
	struct expiry_scan scan = { .addr = (uintptr_t)&row, .count = 1 };

	MUST(ioctl(fd, EXPIRY_IOC_SCAN, &scan) == 1);
	return row;
}

/* Each way in and out, of a queue wherever it was made. */
static void is_on_the_callers_clock(int fd, clockid_t clock)
{
	struct expiry_record record, query;
	struct expiry_stat stat;
	__u64 before, wanted;

	before = clock_ns(clock);
	MUST(queue_stat(fd, &stat) == 0);
	MUST(before <= stat.now_ns && stat.now_ns <= clock_ns(clock));

	wanted = clock_ns(clock) + HOUR_NS;
	record = arm_at(wanted, 1);
	MUST(request(fd, &record) == 0);
	MUST(record.deadline_ns == wanted);
	MUST(row_of(fd).deadline_ns == wanted);
	MUST(queue_stat(fd, &stat) == 0);
	MUST(stat.next_ns == wanted);
	query = ask(EXPIRY_OP_QUERY, record.id);
	MUST(request(fd, &query) == 0);
	MUST(query.deadline_ns == wanted);

	wanted = clock_ns(clock) + 50 * NSEC_PER_MSEC;
	query = ask(EXPIRY_OP_REFRESH, record.id);
	query.deadline_ns = wanted;
	MUST(request(fd, &query) == 0);
	MUST(query.deadline_ns == wanted);
	MUST(receive_wait(fd, &query, 1) == 1);
	MUST(query.deadline_ns == wanted);
	MUST(clock_ns(clock) >= wanted);

	/* From now, never, before the host's clock began, and what is refused. */
	before = clock_ns(clock);
	record = arm_in(HOUR_NS, 2);
	MUST(request(fd, &record) == 0);
	MUST(record.deadline_ns >= before + HOUR_NS);
	MUST(record.deadline_ns <= clock_ns(clock) + HOUR_NS);
	query = ask(EXPIRY_OP_CANCEL, record.id);
	MUST(request(fd, &query) == 0);
	MUST(query.deadline_ns == record.deadline_ns);
	record = arm_at(EXPIRY_NEVER, 3);
	MUST(request(fd, &record) == 0);
	MUST(record.deadline_ns == EXPIRY_NEVER);
	MUST(queue_stat(fd, &stat) == 0);
	MUST(stat.next_ns == EXPIRY_NEVER);
	record = ask(EXPIRY_OP_CANCEL, record.id);
	MUST(request(fd, &record) == 0);
	MUST(record.deadline_ns == EXPIRY_NEVER);
	record = arm_at(1, 4);
	MUST(request(fd, &record) == 0);
	MUST(receive_wait(fd, &record, 1) == 1);
	MUST(record.cookie == 4);
	record = ask(EXPIRY_OP_REFRESH, 12345);
	record.deadline_ns = 1;
	MUST(request(fd, &record) == -ENOENT);
	MUST(record.deadline_ns == 1);
}

/* ACK says for when a periodic timer is armed. */
static void ack_is_on_the_callers_clock(clockid_t clock)
{
	int fd = queue_new_flags(clock, EXPIRY_MODE_ACK, O_NONBLOCK);
	__u64 wanted = clock_ns(clock);
	struct expiry_record record = arm_at(wanted, 1);

	record.period_ms = HOUR_NS / NSEC_PER_MSEC;
	MUST(request(fd, &record) == 0);
	MUST(receive_wait(fd, &record, 1) == 1);
	record = ask(EXPIRY_OP_ACK, record.id);
	MUST(request(fd, &record) == 0);
	MUST(record.deadline_ns == wanted + HOUR_NS);
	close(fd);
}

TEST_F(time_namespace, deadlines_are_on_the_callers_clock)
{
	pid_t pid;

	if (self->err)
		SKIP(return, NO_TIME_NAMESPACE);
	pid = fork();
	if (!pid) {
		is_on_the_callers_clock(self->fd, variant->clock);
		is_on_the_callers_clock(queue_new_flags(variant->clock, 0,
							O_NONBLOCK),
					variant->clock);
		ack_is_on_the_callers_clock(variant->clock);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));
}

TEST_F(time_namespace, each_holder_of_a_queue_sees_its_own)
{
	__u64 deadline_ns = clock_ns(variant->clock) + 100 * NSEC_PER_MSEC;
	struct expiry_record record = arm_at(deadline_ns, 4), query;
	pid_t pid;

	if (self->err)
		SKIP(return, NO_TIME_NAMESPACE);
	ASSERT_EQ(0, request(self->fd, &record));
	pid = fork();
	if (!pid) {
		query = ask(EXPIRY_OP_QUERY, record.id);
		MUST(request(self->fd, &query) == 0);
		MUST(query.deadline_ns == deadline_ns + AHEAD_NS);
		MUST(receive_wait(self->fd, &query, 1) == 1);
		MUST(query.cookie == 4);
		MUST(query.deadline_ns == deadline_ns + AHEAD_NS);
		/* Due an hour ago, by whichever clock. */
		record = arm_at(deadline_ns + AHEAD_NS - HOUR_NS, 5);
		MUST(request(self->fd, &record) == 0);
		_exit(0);
	}
	ASSERT_EQ(0, child_status(pid));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	EXPECT_EQ(5, record.cookie);
	/* The host's clock has not run for an hour: then it began at 0. */
	EXPECT_EQ(deadline_ns < HOUR_NS ? 0 : deadline_ns - HOUR_NS,
		  record.deadline_ns);
}

TEST_F(time_namespace, realtime_is_the_same_everywhere)
{
	struct expiry_record record;
	__u64 deadline_ns;
	pid_t pid;
	int fd;

	if (self->err)
		SKIP(return, NO_TIME_NAMESPACE);
	pid = fork();
	if (!pid) {
		fd = queue_new_flags(CLOCK_REALTIME, 0, O_NONBLOCK);
		deadline_ns = clock_ns(CLOCK_REALTIME) + 50 * NSEC_PER_MSEC;
		record = arm_at(deadline_ns, 6);
		MUST(request(fd, &record) == 0);
		MUST(receive_wait(fd, &record, 1) == 1);
		MUST(record.deadline_ns == deadline_ns);
		MUST(clock_ns(CLOCK_REALTIME) >= deadline_ns);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));
}

/*
 * User namespaces
 */

#define SOMEBODY	54321		/* a user without any rights here */
#define SOMEBODY_ELSE	54322

FIXTURE(user_namespace) {
	long long queues_per_user;
};

FIXTURE_SETUP(user_namespace)
{
	self->queues_per_user = read_number(PARAMETERS "queues_per_user",
					    "");
}

FIXTURE_TEARDOWN(user_namespace)
{
	char text[32];

	if (self->queues_per_user < 0)
		return;
	snprintf(text, sizeof(text), "%lld", self->queues_per_user);
	write_text(PARAMETERS "queues_per_user", text);
}

static struct stat device_stat(void)
{
	struct stat st;

	MUST(stat(device_path(), &st) == 0);
	return st;
}

/*
 * Makes this process root of a namespace of its own, and @uid of @gid on the
 * machine. Returns 0, or the error of unshare().
 */
static int become_root_of_namespace(uid_t uid, gid_t gid)
{
	char map[32];

	MUST(setgroups(0, NULL) == 0);
	MUST(setresgid(gid, gid, gid) == 0);
	MUST(setresuid(uid, uid, uid) == 0);
	/* Another user's process cannot write its own /proc. */
	MUST(prctl(PR_SET_DUMPABLE, 1) == 0);
	if (unshare(CLONE_NEWUSER))
		return errno;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	MUST(write_text("/proc/self/uid_map", map) == 0);
	MUST(getuid() == 0);
	return 0;
}

#define CANNOT	100	/* exit status: no user namespace available */

/* Forks a child that is root of a namespace, of the device's group. */
static pid_t fork_root_of_namespace(uid_t uid)
{
	pid_t pid = fork();

	if (!pid && become_root_of_namespace(uid, device_stat().st_gid))
		_exit(CANNOT);
	return pid;
}

/* Returns whether the rest of a test is possible. */
static bool can_be_root_of_namespace(void)
{
	pid_t pid;

	if (getuid())
		return false;
	pid = fork_root_of_namespace(SOMEBODY);
	if (!pid)
		_exit(0);
	return child_status(pid) != CANNOT;
}

#define NO_USER_NAMESPACE	"needs root and user namespaces"

TEST_F(user_namespace, its_root_may_open_the_device_no_sooner)
{
	pid_t pid;

	if (!can_be_root_of_namespace())
		SKIP(return, NO_USER_NAMESPACE);
	if (device_stat().st_mode & 0006)
		SKIP(return, "the device is everybody's");
	pid = fork();
	if (!pid) {
		MUST(become_root_of_namespace(SOMEBODY, SOMEBODY) == 0);
		MUST(queue_open(0) == -EACCES);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));
}

TEST_F(user_namespace, its_root_has_no_higher_limit_of_timers)
{
	long long maximum = read_number(PARAMETERS "timers_max", "");
	pid_t pid;
	int fd;

	if (!can_be_root_of_namespace())
		SKIP(return, NO_USER_NAMESPACE);
	ASSERT_LT(0, maximum);
	pid = fork_root_of_namespace(SOMEBODY);
	if (!pid) {
		fd = queue_open(0);
		MUST(fd >= 0);
		MUST(queue_config(fd, CLOCK_MONOTONIC, 0, maximum + 1) ==
		     -EPERM);
		MUST(queue_config(fd, CLOCK_MONOTONIC, 0, maximum) == 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));

	/* root of the machine has it. */
	fd = queue_open(0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, queue_config(fd, CLOCK_MONOTONIC, 0, maximum + 1));
	close(fd);
}

TEST_F(user_namespace, queues_of_a_user_count_together_in_all_of_them)
{
	int ready[2], done[2], fds[3], i;
	pid_t holder, pid;
	char byte;

	if (!can_be_root_of_namespace())
		SKIP(return, NO_USER_NAMESPACE);
	ASSERT_EQ(0, write_text(PARAMETERS "queues_per_user", "2"));
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(done));
	holder = fork_root_of_namespace(SOMEBODY);
	if (!holder) {
		close(done[1]);
		for (i = 0; i < 2; i++)
			MUST(queue_open(0) >= 0);
		MUST(queue_open(0) == -EMFILE);
		MUST(write(ready[1], "", 1) == 1);
		MUST(read(done[0], &byte, 1) == 0);
		_exit(0);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));

	/* The same user, root of another namespace. */
	pid = fork_root_of_namespace(SOMEBODY);
	if (!pid) {
		MUST(queue_open(0) == -EMFILE);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));

	/* Also 0 in a namespace, but another user. */
	pid = fork_root_of_namespace(SOMEBODY_ELSE);
	if (!pid) {
		MUST(queue_open(0) >= 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));

	/* The capability on the machine lifts the limit. */
	for (i = 0; i < 3; i++) {
		fds[i] = queue_open(0);
		EXPECT_LE(0, fds[i]);
	}
	for (i = 0; i < 3; i++)
		close(fds[i]);

	close(done[1]);
	EXPECT_EQ(0, child_status(holder));
}

/* Takes descriptor @fd of process @pid. */
static int take_descriptor(pid_t pid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	int ret = syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	close(pidfd);
	return ret;
}

TEST_F(user_namespace, queue_stays_charged_to_who_opened_it)
{
	int ready[2], done[2], theirs, mine;
	pid_t pid;
	char byte;

	if (!can_be_root_of_namespace())
		SKIP(return, NO_USER_NAMESPACE);
	ASSERT_EQ(0, write_text(PARAMETERS "queues_per_user", "1"));
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(done));
	pid = fork_root_of_namespace(SOMEBODY);
	if (!pid) {
		close(done[1]);
		theirs = queue_open(0);
		MUST(theirs >= 0);
		MUST(write(ready[1], &theirs, sizeof(theirs)) ==
		     sizeof(theirs));
		MUST(read(done[0], &byte, 1) == 0);
		_exit(0);
	}
	ASSERT_EQ(sizeof(theirs), read(ready[0], &theirs, sizeof(theirs)));
	mine = take_descriptor(pid, theirs);
	ASSERT_LE(0, mine);
	close(done[1]);
	ASSERT_EQ(0, child_status(pid));

	/* It counts for its opener, which has exited, until it ends. */
	pid = fork_root_of_namespace(SOMEBODY);
	if (!pid) {
		MUST(queue_open(0) == -EMFILE);
		close(mine);
		MUST(queue_open(0) == -EMFILE);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));
	close(mine);
	pid = fork_root_of_namespace(SOMEBODY);
	if (!pid) {
		MUST(queue_open(0) >= 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_status(pid));
}

/* Returns how many queues of @uid the list has, or -1. */
static int listed(uid_t uid)
{
	FILE *file = fopen(QUEUES, "re");
	unsigned int serial, owner;
	char line[256];
	int count = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%u %u ", &serial, &owner) == 2)
			count += owner == uid;
	fclose(file);
	return count;
}

TEST_F(user_namespace, list_of_queues_names_the_machines_user)
{
	int ready[2], done[2];
	pid_t pid;
	char byte;

	if (!can_be_root_of_namespace())
		SKIP(return, NO_USER_NAMESPACE);
	if (listed(SOMEBODY) < 0)
		SKIP(return, "no " QUEUES);
	ASSERT_EQ(0, listed(SOMEBODY));
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(done));
	pid = fork_root_of_namespace(SOMEBODY);
	if (!pid) {
		close(done[1]);
		MUST(queue_open(0) >= 0);
		MUST(queue_new(0) >= 0);
		MUST(write(ready[1], "", 1) == 1);
		MUST(read(done[0], &byte, 1) == 0);
		_exit(0);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_EQ(2, listed(SOMEBODY));
	close(done[1]);
	ASSERT_EQ(0, child_status(pid));
	EXPECT_EQ(0, listed(SOMEBODY));
}

TEST_HARNESS_MAIN
