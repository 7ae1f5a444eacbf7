// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The timers of a queue can be paged out, and return unchanged: a queue of
 * millions is filled, its memory pushed to compressed swap, and used again.
 *
 * Needs root on a machine with zram and memory.reclaim (Linux 5.19) that has
 * nothing else in swap; elsewhere it is skipped. EXPIRY_TEST_TIMERS: how many
 * timers, instead of four million by EXPIRY_TEST_SCALE, or as many as the
 * machine's memory has room for.
 */
#include "device.h"
#include "pressure.h"
#include "uring.h"

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

#define BATCH		4096U
#define SWAP_MIB	1024U
/* Memory of the test itself and the tables of pages. */
#define SLACK		(8ULL << 20)
/* Memory of a timer and its model, in pages and compressed. */
#define TIMER_BYTES	512U
#define FAR_NS		(HOUR_NS * 1000000)

static __u64 timers_wanted(void)
{
	const char *timers = getenv("EXPIRY_TEST_TIMERS");
	const char *scale = getenv("EXPIRY_TEST_SCALE");
	__u64 most = (__u64)sysconf(_SC_PHYS_PAGES) * pressure_page() /
		     TIMER_BYTES;
	__u64 wanted = 4000000 / (scale && atoi(scale) > 0 ? atoi(scale) : 1);

	if (timers)
		return strtoull(timers, NULL, 0);
	return wanted < most ? wanted : most;
}

/* Returns NULL, or why not. */
static const char *pressure_begin(void)
{
	const char *why = group_make();

	if (why)
		return why;
	if (access(PRESSURE_GROUP "memory.reclaim", F_OK))
		return "no memory.reclaim";
	return swap_begin(SWAP_MIB);
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

FIXTURE_VARIANT_ADD(swap, radix) {
	.layout = EXPIRY_LAYOUT_RADIX,
};

FIXTURE_SETUP(swap)
{
	const char *why = pressure_begin();

	self->fd = -1;
	if (why)
		SKIP(return, "%s", why);
	self->on = true;
	self->timers = timers_wanted();
	self->batch = calloc(BATCH, RECORD);
	ASSERT_NE(NULL, self->batch);
	ASSERT_LE(BATCH, self->timers);
	/* The opener of the queue is charged. */
	ASSERT_EQ(0, group_enter());
	self->fd = queue_open(0);
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
	group_leave();
	swap_end();
	group_remove();
	free(self->batch);
}

/* Returns 1 to @timers, each once (the factor is prime), in a scattered order.
 */
static __u64 place_of(__u64 id, __u64 timers)
{
	return (id * 2654435761ULL) % timers + 1;
}

/*
 * Submits one request for each id from @from to @to, made by @make(record,
 * timers) of a record that has its id. Each must succeed and answer with the
 * cookie ~id. Returns 0, or the fault.
 */
static int each(int fd, struct expiry_record *batch, __u64 timers, __u64 from,
		__u64 to, void (*make)(struct expiry_record *record,
				       __u64 timers))
{
	__u64 id = from;
	__u32 i, nr;

	while (id <= to) {
		nr = to - id + 1 < BATCH ? to - id + 1 : BATCH;
		for (i = 0; i < nr; i++, id++) {
			batch[i] = ask(0, id);
			make(&batch[i], timers);
		}
		if (submit(fd, batch, nr) != (int)nr)
			return -EPROTO;
		for (i = 0; i < nr; i++) {
			if (batch[i].status)
				return batch[i].status;
			if (batch[i].cookie != ~batch[i].id)
				return -EBADMSG;
		}
	}
	return 0;
}

/* The timers of the beginning are due in a hundred years. */
static void far(struct expiry_record *record, __u64 timers)
{
	record->op = EXPIRY_OP_ARM;
	record->deadline_ns = FAR_NS + place_of(record->id, timers);
	record->cookie = ~record->id;
}

/* Even deadlines long past for these, odd ones for those armed later. */
static __u64 past_of(__u64 id, __u64 timers)
{
	return id <= timers ? 2 * place_of(id, timers) :
	       2 * place_of(id - timers, timers) + 1;
}

static void past(struct expiry_record *record, __u64 timers)
{
	record->op = record->id <= timers ? EXPIRY_OP_REFRESH : EXPIRY_OP_ARM;
	record->deadline_ns = past_of(record->id, timers);
	if (record->op == EXPIRY_OP_ARM)
		record->cookie = ~record->id;
}

static void cancel(struct expiry_record *record, __u64 timers)
{
	record->op = EXPIRY_OP_CANCEL;
}

static void query(struct expiry_record *record, __u64 timers)
{
	record->op = EXPIRY_OP_QUERY;
}

static __u64 resident(int fd)
{
	struct expiry_stat stat;

	return queue_stat(fd, &stat) ? 0 : stat.pages_resident;
}

/*
 * Reclaims until almost nothing is left in memory: pages are unpinned first.
 * Returns whether nine tenths are out, and prints that.
 */
static bool push_out(struct __test_metadata *_metadata, int fd)
{
	long long shmem = group_read("memory.stat", "shmem ");
	__u64 pages = resident(fd), left = pages;
	int tries;

	for (tries = 0; tries < 50 && left > pages / 20; tries++) {
		group_write("memory.reclaim", "2G");
		sleep_ms(20);
		left = resident(fd);
	}
	TH_LOG("%llu timers: %llu pages, %llu after; shmem %lld kB, %lld after; swap %lld kB",
	       queue_armed(fd), pages, left, shmem >> 10,
	       group_read("memory.stat", "shmem ") >> 10,
	       group_read("memory.swap.current", "") >> 10);
	return left <= pages / 10 &&
	       group_read("memory.stat", "shmem ") <= shmem / 5 &&
	       group_read("memory.swap.current", "") >=
	       (long long)(pages - left) / 2 * pressure_page();
}

/*
 * Reads @wanted expirations. Each must come after the one before it (@last,
 * from 0), with its own deadline and cookie. Returns 0, or the fault.
 */
static int drain(int fd, struct expiry_record *batch, __u64 timers,
		 __u64 wanted, __u64 *last)
{
	__u64 id;
	int i, ret;

	while (wanted) {
		ret = receive_wait(fd, batch, wanted < BATCH ? wanted : BATCH);
		if (ret <= 0)
			return ret ?: -EPROTO;
		for (i = 0; i < ret; i++, wanted--) {
			id = batch[i].id;
			if (batch[i].deadline_ns != past_of(id, timers) ||
			    batch[i].cookie != ~id)
				return -EBADMSG;
			if (batch[i].deadline_ns <= *last)
				return -EILSEQ;
			*last = batch[i].deadline_ns;
		}
	}
	return 0;
}

/*
 * Returns the bytes of shmem of the group, once they are at least @wanted. The kernel sums
 * up what its processors count every two seconds, or when there is much of it.
 */
static long long shmem_settled(long long wanted)
{
	long long shmem = group_read("memory.stat", "shmem ");
	int tries;

	for (tries = 0; shmem < wanted && tries < 100; tries++) {
		sleep_ms(100);
		shmem = group_read("memory.stat", "shmem ");
	}
	return shmem;
}

TEST_F(swap, timers_come_back_as_they_were)
{
	long long least;
	__u64 id;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, each(self->fd, self->batch, self->timers, 1, self->timers,
			  far));
	least = ((long long)resident(self->fd) - 64) * pressure_page();
	EXPECT_LE(least, shmem_settled(least));
	EXPECT_TRUE(push_out(_metadata, self->fd));

	/* Each exists, by its id, in memory or not. */
	ASSERT_EQ(0, each(self->fd, self->batch, self->timers, 1, self->timers,
			  query));
	for (id = 1; id <= self->timers; id += 7919) {
		struct expiry_record record = ask(EXPIRY_OP_QUERY, id);

		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(FAR_NS + place_of(id, self->timers),
			  record.deadline_ns);
	}
	ASSERT_EQ(self->timers, queue_armed(self->fd));
}

/*
 * Cancels, brings forward and adds timers while they are out, then reads:
 * exactly the expected ones, in order.
 */
TEST_F(swap, changes_find_what_is_out)
{
	__u64 timers = self->timers, gone = timers / 4, last = 0;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, each(self->fd, self->batch, timers, 1, timers, far));
	EXPECT_TRUE(push_out(_metadata, self->fd));
	ASSERT_EQ(0, each(self->fd, self->batch, timers, 1, gone, cancel));
	EXPECT_TRUE(push_out(_metadata, self->fd));
	ASSERT_EQ(0, each(self->fd, self->batch, timers, gone + 1, timers,
			  past));
	EXPECT_TRUE(push_out(_metadata, self->fd));
	ASSERT_EQ(0, each(self->fd, self->batch, timers, timers + 1,
			  timers + gone, past));
	EXPECT_TRUE(push_out(_metadata, self->fd));
	ASSERT_EQ(timers, queue_armed(self->fd));

	/* A cancelled one would come with a far deadline. */
	ASSERT_EQ(0, drain(self->fd, self->batch, timers, timers, &last));
	ASSERT_EQ(0, queue_armed(self->fd));
}

/* Arms and cancels a timer of its own until it is killed; exits if it cannot. */
static void disturb(int fd, __u64 id)
{
	struct expiry_record record;

	for (;;) {
		record = arm_at(FAR_NS, ~id);
		record.id = id;
		if (request(fd, &record))
			_exit(1);
		record = ask(EXPIRY_OP_CANCEL, id);
		if (request(fd, &record) || record.cookie != ~id)
			_exit(2);
	}
}

/*
 * The group gets a quarter of the queue: its reader must wait for each page,
 * and for another to be paged out, while another process uses the queue.
 */
TEST_F(swap, a_queue_larger_than_its_memory_is_read)
{
	__u64 timers = self->timers, some = timers / 256, last = 0, limit;
	int status;
	pid_t pid;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, each(self->fd, self->batch, timers, 1, timers, far));
	limit = resident(self->fd) * pressure_page() / 4 + SLACK;
	ASSERT_EQ(0, group_limit("memory.max", limit));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		disturb(self->fd, 2 * timers + 1);

	ASSERT_EQ(0, each(self->fd, self->batch, timers, 1, timers, past));
	TH_LOG("%llu timers in %llu pages, of which %llu in memory: limit %llu kB",
	       timers, 4 * (limit - SLACK) / pressure_page(), resident(self->fd),
	       limit >> 10);
	EXPECT_GE(limit / pressure_page(), resident(self->fd));
	ASSERT_EQ(0, drain(self->fd, self->batch, timers, some, &last));

	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	/* It had not ended by itself. */
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, group_read("memory.events", "oom_kill "));

	/* The others come when there is room, which takes less time. */
	ASSERT_EQ(0, group_write("memory.max", "max"));
	ASSERT_EQ(0, drain(self->fd, self->batch, timers, timers - some, &last));
	EXPECT_GE(1, queue_armed(self->fd));
}

/*
 * Counts threads of this process. @named: io_uring's workers, which have that
 * name from their first run on.
 */
static int threads(const char *named)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	char path[64 + sizeof(entry->d_name)], name[16];
	FILE *file;
	int nr = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			nr += !strncmp(name, named, strlen(named));
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return nr;
}

/* Returns how often this thread gave up its processor to wait. */
static long waits(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? -1 : usage.ru_nvcsw;
}

static __u32 answered(const struct expiry_record *records, __u32 nr)
{
	__u32 i, found = 0;

	for (i = 0; i < nr; i++)
		found += records[i].cookie == ~records[i].id;
	return found;
}

/*
 * Binds this thread and io_uring's workers to one processor, which this thread
 * keeps until it waits. So a worker has not run yet before that.
 */
static int alone(struct uring *ring)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set) ||
	    sched_setscheduler(0, SCHED_FIFO, &param) ||
	    syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_IOWQ_AFF,
		    &set, sizeof(set)))
		return -errno;
	return 0;
}

/*
 * The submitter does not wait for a batch that must wait for pages: a worker
 * continues it, and the ring goes on meanwhile. The final answer is for the
 * whole batch.
 */
TEST_F(swap, a_ring_hands_it_to_a_worker)
{
	struct expiry_batch *batch;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;
	long waited;
	__u32 i;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, uring_init(&ring, 4));
	ASSERT_EQ(0, each(self->fd, self->batch, self->timers, 1, self->timers,
			  far));
	EXPECT_TRUE(push_out(_metadata, self->fd));
	for (i = 0; i < BATCH; i++)
		self->batch[i] = ask(EXPIRY_OP_CANCEL,
				     1 + i * (self->timers / BATCH));
	sqe = uring_sqe(&ring, IORING_OP_URING_CMD, self->fd, 1);
	sqe->cmd_op = EXPIRY_IOC_SUBMIT;
	batch = (void *)sqe->cmd;
	batch->addr = (__u64)(uintptr_t)self->batch;
	batch->count = BATCH;
	uring_sqe(&ring, IORING_OP_NOP, -1, 2);
	ASSERT_EQ(0, alone(&ring));
	ASSERT_EQ(1, threads(""));

	waited = waits();
	ASSERT_EQ(2, uring_submit(&ring));
	EXPECT_EQ(waited, waits());
	/* The request behind it is done, it itself has hardly begun. */
	ASSERT_EQ(0, uring_wait(&ring, &cqe, 0));
	EXPECT_EQ(2, cqe.user_data);
	EXPECT_EQ(-ETIMEDOUT, uring_wait(&ring, &cqe, 0));
	EXPECT_GT(BATCH / 2, answered(self->batch, BATCH));
	EXPECT_EQ(2, threads(""));
	TH_LOG("submitted: %u of %u answered, %d threads",
	       answered(self->batch, BATCH), BATCH, threads(""));

	ASSERT_EQ(0, uring_wait(&ring, &cqe, WAIT_MS));
	ASSERT_EQ(1, cqe.user_data);
	ASSERT_EQ(BATCH, cqe.res);
	EXPECT_EQ(1, threads("iou-wrk"));
	for (i = 0; i < BATCH; i++)
		ASSERT_EQ(0, self->batch[i].status);
	ASSERT_EQ(BATCH, answered(self->batch, BATCH));
	ASSERT_EQ(self->timers - BATCH, queue_armed(self->fd));
	uring_fini(&ring);
}

/* Has a ring carry out a batch and cancels it at once. @status: what the batch, [1], and
 * its cancelling, [2], came to. Returns 0, or the fault.
 */
static int submit_and_cancel(struct uring *ring, int fd,
			     struct expiry_record *records, int status[3])
{
	struct expiry_batch *batch;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	int i, err;

	sqe = uring_sqe(ring, IORING_OP_URING_CMD, fd, 1);
	sqe->cmd_op = EXPIRY_IOC_SUBMIT;
	batch = (void *)sqe->cmd;
	batch->addr = (__u64)(uintptr_t)records;
	batch->count = BATCH;
	sqe = uring_sqe(ring, IORING_OP_ASYNC_CANCEL, -1, 2);
	sqe->addr = 1;
	if (uring_submit(ring) != 2)
		return -EPROTO;
	for (i = 0; i < 2; i++) {
		err = uring_wait(ring, &cqe, WAIT_MS);
		if (err)
			return err;
		if (cqe.user_data > 2)
			return -EPROTO;
		status[cqe.user_data] = cqe.res;
	}
	return 0;
}

/*
 * A batch is cancelled at once. Its first records find their pages in memory, a
 * later one does not. It answers how many records were done: -ECANCELED says that
 * none were. A slow machine had that answer once, which is right as well, but shows
 * less: then all is done once more.
 */
TEST_F(swap, a_cancelled_batch_was_not_begun)
{
	enum { HOT = 64, TRIES = 20 };
	__u64 timers = self->timers;
	int status[3] = { 1, 1, 1 };
	struct uring ring;
	__u32 i, tries = 0, done;

	if (!self->on)
		return;	/* skipped */
	ASSERT_EQ(0, uring_init(&ring, 4));
	ASSERT_EQ(0, each(self->fd, self->batch, timers, 1, timers, far));
	EXPECT_TRUE(push_out(_metadata, self->fd));
	ASSERT_EQ(0, alone(&ring));
	do {
		/* Cancelled and armed again, so that all pages for that are in memory. */
		ASSERT_EQ(0, each(self->fd, self->batch, timers, 1, HOT, cancel));
		ASSERT_EQ(0, each(self->fd, self->batch, timers, 1, HOT, far));
		for (i = 0; i < BATCH; i++)
			self->batch[i] = ask(EXPIRY_OP_CANCEL, i < HOT ? 1 + i :
					     1 + i * (timers / BATCH));
		ASSERT_EQ(0, submit_and_cancel(&ring, self->fd, self->batch, status));
		done = answered(self->batch, BATCH);
		TH_LOG("the batch: %d, its cancelling: %d, %u answered",
		       status[1], status[2], done);
		ASSERT_EQ(done ? (int)done : -ECANCELED, status[1]);
		ASSERT_EQ(timers - done, queue_armed(self->fd));
	} while (!done && ++tries < TRIES);
	EXPECT_LT(0, done);
	EXPECT_GT(BATCH, done);
	uring_fini(&ring);
}

TEST_HARNESS_MAIN
