// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A full memory cgroup: arming timers in it is refused one by one, with
 * -ENOMEM, and no process is killed. Armed timers stay correct, and processes
 * outside of the group are undisturbed. Without swap, so that the limit is
 * final.
 *
 * Needs root and version 2 of control groups; elsewhere it is skipped.
 */
#include "device.h"
#include "pressure.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#define BATCH		256U
#define FAR_NS		(HOUR_NS * 1000000)
#define LIMIT		(8ULL << 20)
#define MORE		(4ULL << 20)
/* More timers than fit in LIMIT + MORE. */
#define IDS		(1U << 19)
/* Completely refused batches in a row: no memory is left. */
#define REFUSED		2

/*
 * Memory shared by the processes of a test. @full, @again, @more: number of
 * timers when memory ran out. At first, when half of them had been replaced,
 * and with a higher limit.
 */
struct shared {
	char armed[IDS + 1];	/* by id */
	__u32 nr;		/* of them */
	__u32 full, again, more;
	int err;		/* of the child */
	int status;		/* with which it has ended */
	int raise;		/* it wants a higher limit */
};

FIXTURE(memcg) {
	bool on;
	struct shared *shared;
	struct expiry_record *batch;
};

FIXTURE_SETUP(memcg)
{
	const char *why = group_make();

	if (why)
		SKIP(return, "%s", why);
	self->on = true;
	/* Made and charged outside of the group. */
	self->shared = mmap(NULL, sizeof(*self->shared),
			    PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	self->batch = mmap(NULL, BATCH * RECORD, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->batch);
}

FIXTURE_TEARDOWN(memcg)
{
	if (!self->on)
		return;
	group_leave();
	group_remove();
	munmap(self->batch, BATCH * RECORD);
	munmap(self->shared, sizeof(*self->shared));
}

static __u64 deadline_of(__u64 id)
{
	return FAR_NS + id * 2654435761ULL % IDS;
}

/*
 * Arms @nr timers from @id on. Each is either armed, or refused without memory
 * and then unchanged. Returns how many were armed, or -errno.
 */
static int arm(int fd, struct shared *shared, struct expiry_record *batch,
	       __u64 id, __u32 nr)
{
	struct expiry_record sent;
	__u32 i;
	int ret, armed = 0;

	for (i = 0; i < nr; i++) {
		batch[i] = arm_at(deadline_of(id + i), ~(id + i));
		batch[i].id = id + i;
	}
	ret = submit(fd, batch, nr);
	if (ret != (int)nr)
		return ret < 0 ? ret : -EPROTO;
	for (i = 0; i < nr; i++) {
		sent = arm_at(deadline_of(id + i), ~(id + i));
		sent.id = id + i;
		sent.status = batch[i].status;
		if (batch[i].status && batch[i].status != -ENOMEM)
			return batch[i].status;
		if (memcmp(&sent, &batch[i], RECORD))
			return -EBADMSG;
		if (batch[i].status)
			continue;
		shared->armed[id + i] = 1;
		shared->nr++;
		armed++;
	}
	return armed;
}

/* Arms until all are refused; returns the next id, or -errno. */
static long long arm_all(int fd, struct shared *shared,
			 struct expiry_record *batch, __u64 id)
{
	int ret, refused = 0;

	for (; refused < REFUSED && id + BATCH <= IDS; id += BATCH) {
		ret = arm(fd, shared, batch, id, BATCH);
		if (ret < 0)
			return ret;
		refused = ret ? 0 : refused + 1;
	}
	return refused < REFUSED ? -ERANGE : (long long)id;
}

/* Checks that a scan shows exactly the armed timers, unchanged: 0 or -errno. */
static int compare(int fd, const struct shared *shared,
		   struct expiry_record *batch)
{
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)batch,
		.count = BATCH,
	};
	__u32 seen = 0;
	int i, ret;

	do {
		ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);
		if (ret < 0)
			return -errno;
		for (i = 0; i < ret; i++, seen++) {
			if (!batch[i].id || batch[i].id > IDS ||
			    !shared->armed[batch[i].id])
				return -ENOENT;
			if (batch[i].deadline_ns != deadline_of(batch[i].id) ||
			    batch[i].cookie != ~batch[i].id)
				return -EBADMSG;
		}
	} while (scan.cursor);
	if (queue_armed(fd) != shared->nr)
		return -EPROTO;
	/* Each row once: that many rows are complete. */
	return seen == shared->nr ? 0 : -ESRCH;
}

static int cancel(int fd, struct shared *shared, __u32 nr)
{
	struct expiry_record record;
	__u64 id;
	int err;

	for (id = 1; nr && id <= IDS; id++) {
		if (!shared->armed[id])
			continue;
		record = ask(EXPIRY_OP_CANCEL, id);
		err = request(fd, &record);
		if (err)
			return err;
		shared->armed[id] = 0;
		shared->nr--;
		nr--;
	}
	return 0;
}

/* Lets the parent raise the limit: the group has no memory for that. */
static void raise_limit(struct shared *shared)
{
	__atomic_store_n(&shared->raise, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shared->raise, __ATOMIC_ACQUIRE))
		sleep_ms(1);
}

/* In the group: fills it completely; continues when some of it is free again.
 */
static int fill_up(struct shared *shared, struct expiry_record *batch)
{
	long long next;
	int fd, err;

	fd = queue_new(EXPIRY_MODE_KEYED);
	if (fd < 0)
		return fd;
	next = arm_all(fd, shared, batch, 1);
	if (next < 0)
		return next;
	shared->full = shared->nr;
	err = compare(fd, shared, batch);
	if (err)
		return err;

	err = cancel(fd, shared, shared->full / 2);
	if (err)
		return err;
	next = arm_all(fd, shared, batch, next);
	if (next < 0)
		return next;
	shared->again = shared->nr;
	err = compare(fd, shared, batch);
	if (err)
		return err;

	raise_limit(shared);
	next = arm_all(fd, shared, batch, next);
	if (next < 0)
		return next;
	shared->more = shared->nr;
	return compare(fd, shared, batch);
}

/*
 * Outside of the group: arms, receives, cancels, until the other process has
 * ended. Raises the limit on request. Returns rounds, or -errno.
 */
static int live_on(struct shared *shared, pid_t pid)
{
	struct expiry_record record;
	int fd = queue_new(EXPIRY_MODE_KEYED), rounds = 0, err;

	if (fd < 0)
		return fd;
	for (; !waitpid(pid, &shared->status, WNOHANG); rounds++) {
		record = arm_in(0, 7);
		record.id = 1 + rounds;
		err = request(fd, &record);
		if (err)
			return err;
		if (receive_wait(fd, &record, 1) != 1 || record.cookie != 7 ||
		    record.id != (__u64)(1 + rounds))
			return -EBADMSG;
		record = arm_at(FAR_NS, 8);
		record.id = 1 + rounds;
		err = request(fd, &record);
		if (err)
			return err;
		record = ask(EXPIRY_OP_CANCEL, 1 + rounds);
		err = request(fd, &record);
		if (err)
			return err;
		if (__atomic_load_n(&shared->raise, __ATOMIC_ACQUIRE)) {
			err = group_limit("memory.max", LIMIT + MORE);
			if (err)
				return err;
			__atomic_store_n(&shared->raise, 0, __ATOMIC_RELEASE);
		}
		sleep_ms(1);
	}
	err = queue_armed(fd) ? -EPROTO : 0;
	close(fd);
	return err ?: rounds;
}

/* Runs @work in the group, in a process of its own that never needs memory. */
static pid_t in_group(struct shared *shared, struct expiry_record *batch,
		      int (*work)(struct shared *shared,
				  struct expiry_record *batch))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (mlockall(MCL_CURRENT) || group_enter())
		shared->err = -errno;
	else
		shared->err = work(shared, batch);
	_exit(0);
}

TEST_F(memcg, a_full_group_is_told_no_and_nothing_worse)
{
	int rounds;
	pid_t pid;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, group_limit("memory.max", LIMIT));
	ASSERT_EQ(0, group_limit("memory.swap.max", 0));
	pid = in_group(self->shared, self->batch, fill_up);
	ASSERT_LE(0, pid);
	rounds = live_on(self->shared, pid);
	if (rounds < 0)
		kill(pid, SIGKILL);
	EXPECT_LT(0, rounds);
	EXPECT_EQ(0, self->shared->status);
	EXPECT_EQ(0, self->shared->err);
	/* Cancelled timers make room for as many, and so does a higher limit.
	 */
	EXPECT_LE(self->shared->full * 9 / 10, self->shared->again);
	EXPECT_LE(self->shared->again * 5 / 4, self->shared->more);

	EXPECT_LT(0, group_read("memory.events", "max "));
	EXPECT_EQ(0, group_read("memory.events", "oom_kill "));
	TH_LOG("%u timers in %llu KiB, %u with half of them replaced, %u in %llu KiB",
	       self->shared->full, LIMIT >> 10, self->shared->again,
	       self->shared->more, (LIMIT + MORE) >> 10);
	TH_LOG("limit hit %lld times, oom %lld, killed %lld; %d rounds beside it",
	       group_read("memory.events", "max "),
	       group_read("memory.events", "oom "),
	       group_read("memory.events", "oom_kill "), rounds);
}

/* In the group: arms until it is above memory.high; each is armed. */
static int grow(struct shared *shared, struct expiry_record *batch)
{
	int fd = queue_new(EXPIRY_MODE_KEYED), ret, err;
	__u64 id;

	if (fd < 0)
		return fd;
	for (id = 1; group_read("memory.events", "high ") < 4; id += BATCH) {
		if (id + BATCH > IDS)
			return -ERANGE;
		ret = arm(fd, shared, batch, id, BATCH);
		if (ret != (int)BATCH)
			return ret < 0 ? ret : -ENOMEM;
	}
	shared->full = shared->nr;
	err = compare(fd, shared, batch);
	/* And it can go back below. */
	return err ?: cancel(fd, shared, shared->nr / 2) ?:
		compare(fd, shared, batch);
}

TEST_F(memcg, a_group_that_is_slowed_down_goes_on)
{
	int rounds;
	pid_t pid;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, group_limit("memory.high", LIMIT));
	ASSERT_EQ(0, group_limit("memory.swap.max", 0));
	pid = in_group(self->shared, self->batch, grow);
	ASSERT_LE(0, pid);
	rounds = live_on(self->shared, pid);
	if (rounds < 0)
		kill(pid, SIGKILL);
	EXPECT_LT(0, rounds);
	EXPECT_EQ(0, self->shared->status);
	EXPECT_EQ(0, self->shared->err);
	EXPECT_EQ(0, group_read("memory.events", "oom_kill "));
	TH_LOG("%u timers above %llu KiB, slowed down %lld times; %d rounds beside it",
	       self->shared->full, LIMIT >> 10, group_read("memory.events", "high "),
	       rounds);
}

/* A reader beside a submitter with a real-time policy, on the same processor. */
struct reader {
	int fd;
	int go, stop;
	unsigned long reads;
};

static void *read_on(void *arg)
{
	struct reader *reader = arg;
	struct expiry_record records[32];

	while (!__atomic_load_n(&reader->stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&reader->go, __ATOMIC_RELAXED) &&
		    receive(reader->fd, records, 32) > 0)
			reader->reads++;
		else
			sleep_ms(1);
	}
	return NULL;
}

static int to_processor_0(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* Arms timers until there is no memory for @refused in a row. */
static void use_up(int fd, int refused)
{
	struct expiry_record record;
	int i, in_row = 0;

	for (i = 0; i < 400000 && in_row < refused; i++) {
		record = arm_in(HOUR_NS * 1000, i);
		in_row = request(fd, &record) == -ENOMEM ? in_row + 1 : 0;
	}
}

/* Returns the most processor time that one of @nr ARMs took. */
static __u64 longest_arm(int fd, int nr)
{
	struct expiry_record record;
	__u64 start, took, most = 0;
	int i;

	for (i = 0; i < nr; i++) {
		sleep_ms(1 + i % 2);
		record = arm_in(HOUR_NS * 1000, i);
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		request(fd, &record);
		took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
		if (took > most)
			most = took;
	}
	return most;
}

/* In the group: returns 0, or the fault. */
static int arm_beside_a_reader(struct shared *shared,
			       struct expiry_record *batch)
{
	struct sched_param fifo = { .sched_priority = 50 }, other = { 0 };
	struct reader reader = { 0 };
	pthread_t thread;
	__u64 id, most;
	int i, err;

	reader.fd = queue_new(EXPIRY_MODE_ACK);
	if (reader.fd < 0)
		return reader.fd;
	for (id = 0; id < 2 * IDS; id += BATCH) {
		for (i = 0; i < (int)BATCH; i++)
			batch[i] = arm_at(1 + i, i);
		if (submit(reader.fd, batch, BATCH) != (int)BATCH)
			return -EPROTO;
	}
	err = to_processor_0();
	if (err)
		return err;
	err = pthread_create(&thread, NULL, read_on, &reader);
	if (err)
		return -err;
	/* Of the limit nothing is left for the process itself. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return -errno;
	sleep_ms(QUIET_MS);
	if (group_limit("memory.max", group_read("memory.current", "") + MORE))
		return -EPERM;
	use_up(reader.fd, 300);
	__atomic_store_n(&reader.go, 1, __ATOMIC_RELAXED);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo))
		return -errno;
	most = longest_arm(reader.fd, 300);
	sched_setscheduler(0, SCHED_OTHER, &other);
	__atomic_store_n(&reader.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	shared->nr = most / NSEC_PER_MSEC;
	shared->full = reader.reads;
	return 0;
}

/*
 * Where there is no memory, a thread that does not give up its processor gets
 * its answer and does not wait, running, for a reader that cannot run.
 */
TEST_F(memcg, a_real_time_submitter_does_not_spin)
{
	enum { SPIN_MS = 500 };
	int status;
	pid_t pid;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, group_limit("memory.max", 128 << 20));
	ASSERT_EQ(0, group_limit("memory.swap.max", 0));
	pid = in_group(self->shared, self->batch, arm_beside_a_reader);
	ASSERT_LE(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, self->shared->err);
	EXPECT_GT(SPIN_MS, self->shared->nr);
	TH_LOG("an ARM took %u ms of the processor at most; %u reads",
	       self->shared->nr, self->shared->full);
}

TEST_HARNESS_MAIN
