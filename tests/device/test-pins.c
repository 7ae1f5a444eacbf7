// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pinned pages, which cannot be paged out, stay pinned only while they are used
 * and nobody else needs the memory: of the group, or of the node.
 *
 * Needs root, zram and a memory cgroup; the node's test two nodes with memory
 * (numa=fake=2). Elsewhere it is skipped. `make check-memory` has machines for
 * them. EXPIRY_TEST_PRESS: a file that is locked while a process asks for memory.
 * EXPIRY_TEST_BOOT: numa or nokmem, as the machine was booted: what that is for must
 * not be skipped.
 */
#include "device.h"
#include "pressure.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define UNPIN_MS	"/sys/module/expiry/parameters/unpin_ms"
#define NODE_1		"/sys/devices/system/node/node1/meminfo"
#define SWAP_MIB	256U
#define BATCH		4096U
#define FAR_NS		(HOUR_NS * 1000000)
#define MIB		(1ULL << 20)
#define MPOL_DEFAULT	0
#define MPOL_BIND	2

FIXTURE(pins) {
	bool on;
	int press;
	char unpin_ms[16];
	struct expiry_record *batch;
};

static int read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "r");
	char *read;

	if (!file)
		return -errno;
	read = fgets(line, size, file);
	fclose(file);
	return read ? 0 : -EIO;
}

FIXTURE_SETUP(pins)
{
	const char *why = group_make();

	if (!why)
		why = swap_begin(SWAP_MIB);
	if (why) {
		ASSERT_EQ(NULL, getenv("EXPIRY_TEST_BOOT"))
			TH_LOG("%s", why);
		SKIP(return, "%s", why);
	}
	self->on = true;
	self->press = open(getenv("EXPIRY_TEST_PRESS") ?: "/dev/null",
			   O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(0, flock(self->press, LOCK_EX));
	self->batch = calloc(BATCH, RECORD);
	ASSERT_NE(NULL, self->batch);
	ASSERT_EQ(0, read_line(UNPIN_MS, self->unpin_ms,
			       sizeof(self->unpin_ms)));
}

FIXTURE_TEARDOWN(pins)
{
	if (!self->on)
		return;
	write_text(UNPIN_MS, self->unpin_ms);
	group_leave();
	swap_end();
	group_remove();
	free(self->batch);
	close(self->press);
}

static long long pinned_pages(int fd)
{
	return fdinfo_number(fd, "pages-pinned:");
}

/* Arms timers with the ids from @from up to before @to, in a scattered order.
 * Returns how many were armed, or -errno.
 */
static int fill(int fd, struct expiry_record *batch, __u64 from, __u64 to)
{
	__u32 i, nr;
	int armed = 0, ret;

	for (; from < to; from += nr) {
		nr = to - from < BATCH ? to - from : BATCH;
		for (i = 0; i < nr; i++) {
			batch[i] = arm_at(FAR_NS + (from + i) * 2654435761ULL %
					  1000003, ~(from + i));
			batch[i].id = from + i;
		}
		ret = submit(fd, batch, nr);
		if (ret != (int)nr)
			return ret < 0 ? ret : -EPROTO;
		for (i = 0; i < nr; i++)
			armed += !batch[i].status;
	}
	return armed;
}

/*
 * A queue that is not used now gives way to another of its group, though it was
 * used a moment ago. Also where kernel memory is not charged to groups, so that
 * no shrinker is called for them (cgroup.memory=nokmem).
 */
TEST_F(pins, give_way_to_another_queue_of_the_group)
{
	enum { TIMERS = 100000 };
	long long before;
	int idle, busy;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, write_text(UNPIN_MS, "600000"));
	ASSERT_EQ(0, group_enter());
	idle = queue_new(EXPIRY_MODE_KEYED);
	busy = queue_new(EXPIRY_MODE_KEYED);
	ASSERT_LE(0, idle);
	ASSERT_LE(0, busy);
	ASSERT_EQ(TIMERS, fill(idle, self->batch, 1, 1 + TIMERS));
	ASSERT_EQ(64, fill(busy, self->batch, 1, 65));
	before = pinned_pages(idle);
	ASSERT_EQ(0, group_limit("memory.max",
				 group_read("memory.current", "") + MIB));

	EXPECT_EQ(TIMERS, fill(busy, self->batch, 65, 65 + TIMERS));
	EXPECT_GT(1000, pinned_pages(idle));
	EXPECT_EQ(0, group_read("memory.events", "oom_kill "));
	TH_LOG("%lld pages of the idle queue pinned before, %lld after",
	       before, pinned_pages(idle));
	EXPECT_EQ(0, group_write("memory.max", "max"));
	EXPECT_EQ(TIMERS, queue_armed(idle));
	close(busy);
	close(idle);
}

/* Uses timers from @from up to before @to: returns 0 or -errno. */
static int query(int fd, struct expiry_record *batch, __u64 from, __u64 to)
{
	__u32 i, nr;
	int ret;

	for (; from < to; from += nr) {
		nr = to - from < BATCH ? to - from : BATCH;
		for (i = 0; i < nr; i++)
			batch[i] = ask(EXPIRY_OP_QUERY, from + i);
		ret = submit(fd, batch, nr);
		if (ret != (int)nr)
			return ret < 0 ? ret : -EPROTO;
	}
	return 0;
}

/*
 * Of a queue in steady use, pages that are not used are unpinned, and those in
 * use stay.
 */
TEST_F(pins, stay_where_the_use_is)
{
	enum { TIMERS = 400000, HOT_MAX = 4 * 512, TRIES = 20 };
	struct expiry_record record;
	long long all, left = 0;
	int fd, i;

	if (!self->on)
		return;	/* skipped */
	/* A table has as many pages as pointers fit into one. */
	if (sysconf(_SC_PAGESIZE) > 4096)
		SKIP(return, "one table has all pages of the queue");
	fd = queue_new(EXPIRY_MODE_KEYED);
	ASSERT_LE(0, fd);
	ASSERT_EQ(TIMERS, fill(fd, self->batch, 1, 1 + TIMERS));
	all = pinned_pages(fd);
	/* Memory may have been short for a moment. */
	for (i = 0; i < TRIES && all <= 2 * HOT_MAX; i++) {
		ASSERT_EQ(0, query(fd, self->batch, 1, 1 + TIMERS));
		all = pinned_pages(fd);
	}
	ASSERT_LT(2 * HOT_MAX, all);
	ASSERT_EQ(0, write_text(UNPIN_MS, "400"));
	for (i = 0; i < 400; i++) {
		record = ask(EXPIRY_OP_QUERY, 7);
		ASSERT_EQ(0, request(fd, &record));
		left = pinned_pages(fd);
		/* None, if the machine stood still between the two calls. */
		if (left && left <= HOT_MAX)
			break;
		sleep_ms(20);
	}
	EXPECT_GE(HOT_MAX, left);
	EXPECT_LT(0, left);
	TH_LOG("%lld pages pinned, %lld after %d uses of one timer", all, left, i);
	close(fd);
}

/*
 * A group is removed before the queues that it pays for. Its list of pinned pages is
 * its parent's then, and reclaim finds it there.
 */
TEST_F(pins, give_way_when_their_group_is_gone)
{
	enum { TIMERS = 50000, QUEUES = 3, TRIES = 50 };
	long long before[QUEUES];
	int fds[QUEUES], i, j;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, write_text(UNPIN_MS, "600000"));
	for (i = 0; i < QUEUES; i++) {
		/* Two in the group, one outside. */
		ASSERT_EQ(0, i < 2 ? group_enter() : group_leave());
		fds[i] = queue_new(EXPIRY_MODE_KEYED);
		ASSERT_LE(0, fds[i]);
	}
	for (i = 0; i < QUEUES; i++)
		ASSERT_EQ(TIMERS, fill(fds[i], self->batch, 1, 1 + TIMERS));
	for (i = 0; i < QUEUES; i++) {
		before[i] = pinned_pages(fds[i]);
		ASSERT_LT(0, before[i]);
	}
	group_remove();
	ASSERT_NE(0, access(PRESSURE_GROUP, F_OK));
	for (i = 0; i < QUEUES; i++) {
		for (j = 0; j < TRIES && pinned_pages(fds[i]) > before[i] / 10; j++)
			ASSERT_EQ(0, write_text("/proc/sys/vm/drop_caches", "2"));
		EXPECT_GE(before[i] / 10, pinned_pages(fds[i]));
	}
	for (i = 0; i < QUEUES; i++) {
		EXPECT_EQ(0, query(fds[i], self->batch, 1, 1 + TIMERS));
		EXPECT_EQ(TIMERS, queue_armed(fds[i]));
		close(fds[i]);
	}
}

static int set_policy(int mode, unsigned int node)
{
	unsigned long mask = 1UL << node;

	if (syscall(__NR_set_mempolicy, mode, mode ? &mask : NULL,
		    mode ? 8 * sizeof(mask) : 0))
		return -errno;
	return 0;
}

/* Returns whether at most half of each queue's pages are pinned that were before. */
static bool gave_way(const int *fds, const long long *before, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (pinned_pages(fds[i]) > before[i] / 2)
			return false;
	return true;
}

/* Takes memory of node 1 until pages of each queue have gone. 0, or the fault. */
static int squeeze(const int *fds, const long long *before, int count)
{
	size_t step = 1 << 20, i;
	char *memory;

	if (set_policy(MPOL_BIND, 1) ||
	    write_text("/proc/self/oom_score_adj", "1000"))
		return 2;
	for (i = 0; i < 4096; i++) {
		if (gave_way(fds, before, count))
			return 0;
		memory = mmap(NULL, step, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED || mlock(memory, step))
			return 3;
	}
	return 4;
}

/*
 * Pages give way on the node where they are, whichever node has the queue's struct:
 * here that is the other one. Of two queues that one group pays for, and of two that
 * are of two groups.
 */
TEST_F(pins, give_way_on_their_own_node)
{
	enum { TIMERS = 150000, QUEUES = 100, USED = 2 };
	int all[QUEUES], fds[USED], i, groups, status;
	const char *boot = getenv("EXPIRY_TEST_BOOT");
	long long before[USED];
	pid_t pid;

	if (!self->on)
		return;	/* skipped */
	if (access(NODE_1, F_OK)) {
		ASSERT_TRUE(!boot || strcmp(boot, "numa"));
		SKIP(return, "one node");
	}
	ASSERT_EQ(0, write_text(UNPIN_MS, "600000"));
	for (groups = 1; groups <= USED; groups++) {
		ASSERT_EQ(0, set_policy(MPOL_BIND, 0));
		ASSERT_EQ(0, group_enter());
		/* Enough to need new memory for the structs. */
		for (i = 0; i < QUEUES; i++) {
			if (i == QUEUES - 1 && groups == 2)
				ASSERT_EQ(0, group_leave());
			all[i] = queue_open(0);
			ASSERT_LE(0, all[i]);
		}
		ASSERT_EQ(0, group_leave());
		ASSERT_EQ(0, set_policy(MPOL_BIND, 1));
		for (i = 0; i < USED; i++) {
			fds[i] = all[QUEUES - USED + i];
			ASSERT_EQ(0, queue_config(fds[i], CLOCK_MONOTONIC,
						  EXPIRY_MODE_KEYED, 0));
			EXPECT_EQ(TIMERS, fill(fds[i], self->batch, 1, 1 + TIMERS));
			before[i] = pinned_pages(fds[i]);
			EXPECT_LT(1000, before[i]);
		}
		ASSERT_EQ(0, set_policy(MPOL_DEFAULT, 0));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(squeeze(fds, before, USED));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
		for (i = 0; i < USED; i++) {
			TH_LOG("%d groups: %lld pages pinned before, %lld after",
			       groups, before[i], pinned_pages(fds[i]));
			EXPECT_EQ(TIMERS, queue_armed(fds[i]));
		}
		for (i = 0; i < QUEUES; i++)
			close(all[i]);
	}
}

TEST_HARNESS_MAIN
