// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every allocation and every copy from or to the caller fails once: the first
 * of a call, then the second and so on, until the call ends without a failure.
 * After each the queue's contents are checked.
 *
 * Needs a kernel with CONFIG_FAULT_INJECTION and its options (see config);
 * elsewhere it is skipped. EXPIRY_TEST_SWEPT: a file to which the number of
 * faults of each call is added.
 */
#include "device.h"
#include "files.h"
#include "uring.h"

#define NTHS	2000		/* a longer sweep has no end */
#define IDS	400U
#define OLD	100U		/* ids 1 to OLD are armed before the fault */
#define MANY	2500U		/* ids that take more pages than a queue keeps */
#define KEPT	4U		/* pages that a heap without timers keeps */
#define CHUNK	32U		/* records whose replies may all be lost */
#define LATER	(1ULL << 62)	/* a deadline that does not come */

/* The expected contents of the queue, by id. */
struct timer {
	bool armed;
	__u64 deadline_ns;
	__u64 cookie;
};

static struct timer model[MANY + 1];
static int nth_fd;

/* Returns 0, or why faults are not available. Allocations that may sleep must
 * fail, too.
 */
static const char *faults_init(void)
{
	static const char * const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[128];
	unsigned int i;
	int fd;

	if (nth_fd > 0)
		close(nth_fd);
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_fd < 0)
		return "no /proc/thread-self/fail-nth";
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 settings[i][0]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return "not every kind of fault can be set in debugfs";
		if (write(fd, settings[i][1], strlen(settings[i][1])) < 0)
			return "debugfs does not take the settings";
		close(fd);
	}
	return NULL;
}

/* Runs before main(), like device_needed(): skips the whole program. */
static void __attribute__((constructor)) faults_needed(void)
{
	const char *why = faults_init();

	if (!why)
		return;
	if (!getenv("KSFT_TAP_LEVEL"))
		printf("TAP version 13\n");
	printf("1..0 # SKIP %s\n", why);
	fflush(stdout);
	_exit(KSFT_SKIP);
}

static void fault_set(unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	/* Turning it off is a copy that may itself fail. */
	while (pwrite(nth_fd, text, len, 0) != len)
		;
}

/* Turns it off. Returns whether something failed since it was set. */
static bool fault_came(void)
{
	char text[16] = "";
	bool came;

	/* If this copy fails, nothing did before. */
	came = pread(nth_fd, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;
	fault_set(0);
	return came;
}

/* The module's parameters, and their former values. */
static const char * const param_names[] = { "pin_max", "unpin_ms" };
static char param_old[ARRAY_SIZE(param_names)][32];

static int param_open(unsigned int i, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/module/expiry/parameters/%s",
		 param_names[i]);
	return open(path, flags | O_CLOEXEC);
}

static bool param_set(unsigned int i, const char *text)
{
	ssize_t length = strlen(text);
	int fd = param_open(i, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, length) == length;

	close(fd);
	return done;
}

/* Makes queues unpin their pages as soon as possible. */
static bool params_set(void)
{
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(param_names); i++) {
		fd = param_open(i, O_RDONLY);
		if (fd < 0 || read(fd, param_old[i], sizeof(param_old[i]) - 1) <= 0)
			return false;
		close(fd);
		if (!param_set(i, "0"))
			return false;
	}
	return true;
}

static void params_restore(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(param_names); i++)
		if (*param_old[i])
			param_set(i, param_old[i]);
}

FIXTURE(faults) {
	int fd;
	unsigned int nth;
	struct expiry_record batch[MANY];
};

FIXTURE_VARIANT(faults) {
	__u32 mode;
};

FIXTURE_VARIANT_ADD(faults, keyed) {
	.mode = EXPIRY_MODE_KEYED,
};

FIXTURE_VARIANT_ADD(faults, keyed_ack) {
	.mode = EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK,
};

FIXTURE_SETUP(faults)
{
	self->fd = -1;
	/* The setting of the thread that gets the faults. */
	ASSERT_EQ(NULL, faults_init());
	ASSERT_EQ(0, mlockall(MCL_CURRENT | MCL_FUTURE));
}

FIXTURE_TEARDOWN(faults)
{
	if (self->fd >= 0)
		close(self->fd);
	close(nth_fd);
	params_restore();
}

static struct expiry_record arm_id(__u64 id, __u64 deadline_ns)
{
	struct expiry_record record = arm_at(deadline_ns, id * 3);

	record.id = id;
	return record;
}

static void forget_all(void)
{
	memset(model, 0, sizeof(model));
}

/* Updates the model after a record that succeeded. */
static void went_well(const struct expiry_record *asked)
{
	struct timer *timer = &model[asked->id];

	timer->armed = asked->op == EXPIRY_OP_ARM;
	timer->deadline_ns = asked->deadline_ns;
	timer->cookie = asked->cookie;
}

/*
 * Compares the armed timers with the model, by a complete scan: 0, or a number
 * that names the fault. @unacked: delivered, unacknowledged timers are accepted
 * instead of armed ones.
 */
static int compare_with(int fd, bool unacked)
{
	static struct expiry_record rows[IDS];
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)rows,
		.count = IDS,
	};
	bool seen[MANY + 1] = { };
	unsigned int i, armed = 0, found = 0;
	int ret;

	do {
		ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);
		if (ret < 0)
			return 1;
		for (i = 0; i < (unsigned int)ret; i++) {
			const struct expiry_record *row = &rows[i];

			/* One that is due again after REWIND is armed. */
			if (row->flags & EXPIRY_F_REDELIVERED && !unacked &&
			    row->id <= MANY && !model[row->id].armed)
				continue;
			if (!row->id || row->id > MANY || seen[row->id])
				return 2;
			if (!model[row->id].armed ||
			    model[row->id].deadline_ns != row->deadline_ns ||
			    model[row->id].cookie != row->cookie)
				return 3;
			seen[row->id] = true;
			found++;
		}
	} while (scan.cursor);
	for (i = 1; i <= MANY; i++)
		armed += model[i].armed;
	if (found != armed)
		return 4;
	return unacked || queue_armed(fd) == armed ? 0 : 5;
}

static int compare(int fd)
{
	return compare_with(fd, false);
}

/* Returns a configured queue with timers 1 to @count, the first @due of them
 * due.
 */
static int queue_filled(__u32 mode, unsigned int count, unsigned int due)
{
	static struct expiry_record batch[MANY];
	int fd = queue_new(mode);
	unsigned int i;

	forget_all();
	if (fd < 0)
		return fd;
	for (i = 0; i < count; i++) {
		batch[i] = arm_id(i + 1, i < due ? i + 1 : LATER + i);
		went_well(&batch[i]);
	}
	if (submit(fd, batch, count) != (int)count) {
		close(fd);
		return -EPROTO;
	}
	return fd;
}

/* Returns whether a record without a reply was processed. */
static int find_out(int fd, const struct expiry_record *asked)
{
	struct timer before = model[asked->id];
	struct expiry_record record = ask(EXPIRY_OP_QUERY, asked->id);
	int status = request(fd, &record);

	if (status == -ENOENT) {
		if (before.armed && asked->op == EXPIRY_OP_ARM)
			return 1;
		model[asked->id].armed = false;
		return 0;
	}
	if (status)
		return 2;
	/* The former state, or the requested one. */
	if (before.armed && record.deadline_ns == before.deadline_ns &&
	    record.cookie == before.cookie)
		return 0;
	if (asked->op != EXPIRY_OP_ARM ||
	    record.deadline_ns != asked->deadline_ns ||
	    record.cookie != asked->cookie)
		return 3;
	went_well(asked);
	return 0;
}

/*
 * Updates the model after a batch with @done replies. The fault may have lost
 * the replies of one chunk.
 */
static int account(int fd, const struct expiry_record *asked,
		   const struct expiry_record *answered, unsigned int count,
		   int done)
{
	unsigned int i, known = done < 0 ? 0 : done;
	int err;

	for (i = 0; i < known; i++) {
		if (!answered[i].status)
			went_well(&asked[i]);
		else if (answered[i].status != -ENOMEM)
			return 10;
	}
	for (; i < count && i < known + CHUNK; i++) {
		err = find_out(fd, &asked[i]);
		if (err)
			return 10 + err;
	}
	return 0;
}

/* New timers, old ones brought forward, old ones cancelled. */
static unsigned int fill_batch(struct expiry_record *batch)
{
	unsigned int id, nr = 0;

	for (id = 1; id <= 40; id++)
		batch[nr++] = arm_id(id, LATER - id);
	for (; id <= 80; id++) {
		batch[nr] = ask(EXPIRY_OP_CANCEL, id);
		nr++;
	}
	for (id = OLD + 1; id <= IDS; id++)
		batch[nr++] = arm_id(id, LATER + (id * 7919) % 1000);
	return nr;
}

/* Returns 0, or the error itself if a fault cannot cause it. */
static int unexpected(int err)
{
	return err == -ENOMEM || err == -EFAULT || err == -EAGAIN ||
	       err == -ENFILE ? 0 : err;
}

static void tell_swept(const char *call, __u32 mode, unsigned int faults)
{
	const char *path = getenv("EXPIRY_TEST_SWEPT");
	FILE *file = path ? fopen(path, "a") : NULL;

	if (!file)
		return;
	fprintf(file, "%s%s: %u faults\n", call,
		mode & EXPIRY_MODE_ACK ? ", acknowledged" : "", faults);
	fclose(file);
}

/*
 * Too few faults mean that none was hit, and endless ones that all were. The
 * last number had no fault.
 */
#define EXPECT_SWEPT(least)						\
	do {								\
		EXPECT_LT(least, self->nth - 2);			\
		EXPECT_GT(NTHS, self->nth);				\
		TH_LOG("%u faults", self->nth - 2);			\
		tell_swept(_metadata->name, variant->mode,		\
			   self->nth - 2);				\
	} while (0)

TEST_F(faults, open)
{
	bool came = true;
	int ret;

	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		fault_set(self->nth);
		ret = queue_open(0);
		came = fault_came();
		if (ret < 0) {
			ASSERT_TRUE(came);
			ASSERT_EQ(0, unexpected(ret));
		} else {
			ASSERT_EQ(0, queue_config(ret, CLOCK_MONOTONIC,
						  variant->mode, 0));
			close(ret);
		}
	}
	EXPECT_SWEPT(3);
}

TEST_F(faults, config)
{
	struct expiry_record record;
	bool came = true;
	int ret;

	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		self->fd = queue_open(O_NONBLOCK);
		ASSERT_LE(0, self->fd);
		fault_set(self->nth);
		ret = queue_config(self->fd, CLOCK_MONOTONIC, variant->mode, 0);
		came = fault_came();
		if (ret) {
			/* Nothing has changed: it can be done now. */
			ASSERT_TRUE(came);
			ASSERT_EQ(0, unexpected(ret));
			record = arm_id(1, 1);
			ASSERT_EQ(ENOTCONN, request(self->fd, &record));
			ASSERT_EQ(0, queue_config(self->fd, CLOCK_MONOTONIC,
						  variant->mode, 0));
		}
		record = arm_id(1, 1);
		ASSERT_EQ(0, request(self->fd, &record));
		ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
		close(self->fd);
		self->fd = -1;
	}
	EXPECT_SWEPT(3);
}

TEST_F(faults, submit)
{
	static struct expiry_record asked[IDS];
	unsigned int count;
	bool came = true;
	int ret;

	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		self->fd = queue_filled(variant->mode, OLD, 0);
		ASSERT_LE(0, self->fd);
		count = fill_batch(asked);
		memcpy(self->batch, asked, sizeof(asked));
		fault_set(self->nth);
		ret = submit(self->fd, self->batch, count);
		came = fault_came();
		if (!came)
			ASSERT_EQ(count, ret);
		if (ret < 0)
			ASSERT_EQ(0, unexpected(ret));
		ASSERT_EQ(0, account(self->fd, asked, self->batch, count, ret));
		ASSERT_EQ(0, compare(self->fd));
		close(self->fd);
		self->fd = -1;
	}
	EXPECT_SWEPT(20);
}

TEST_F(faults, uring_cmd)
{
	static struct expiry_record asked[IDS];
	struct expiry_batch *batch;
	struct io_uring_sqe *sqe;
	struct io_uring_cqe cqe;
	struct uring ring;
	unsigned int count;
	bool came = true;

	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		ASSERT_EQ(0, uring_init(&ring, 4));
		self->fd = queue_filled(variant->mode, OLD, 0);
		ASSERT_LE(0, self->fd);
		count = fill_batch(asked);
		memcpy(self->batch, asked, sizeof(asked));
		sqe = uring_sqe(&ring, IORING_OP_URING_CMD, self->fd, 1);
		sqe->cmd_op = EXPIRY_IOC_SUBMIT;
		batch = (void *)sqe->cmd;
		batch->addr = (__u64)(uintptr_t)self->batch;
		batch->count = count;
		fault_set(self->nth);
		uring_submit(&ring);
		came = fault_came();
		/* The timers not taken are still there. */
		while (uring_wait(&ring, &cqe, 20))
			syscall(__NR_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0);
		if (!came)
			ASSERT_EQ(count, cqe.res);
		if (cqe.res < 0)
			ASSERT_EQ(0, unexpected(cqe.res));
		ASSERT_EQ(0, account(self->fd, asked, self->batch, count,
				     cqe.res));
		ASSERT_EQ(0, compare(self->fd));
		close(self->fd);
		self->fd = -1;
		uring_fini(&ring);
	}
	EXPECT_SWEPT(20);
}

/* Returns whether a ring is still mapped, or -errno. */
static int ring_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int found = 0;

	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps))
		found |= !!strstr(line, "[io_uring]");
	fclose(maps);
	return found;
}

/*
 * munmap() fails, too. A ring that stays mapped stays open: what is in flight on it then
 * keeps its queue, long after its program has closed both.
 */
TEST_F(faults, end_of_a_ring)
{
	struct uring ring;
	bool came = true;

	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		ASSERT_EQ(0, uring_init(&ring, 4));
		ASSERT_EQ(1, ring_mapped());
		fault_set(self->nth);
		uring_fini(&ring);
		came = fault_came();
		ASSERT_EQ(0, ring_mapped());
	}
	EXPECT_SWEPT(0);
}

TEST_F(faults, read)
{
	struct expiry_record record;
	unsigned int i, got;
	bool came = true;
	int ret;

	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		self->fd = queue_filled(variant->mode, OLD, OLD - 10);
		ASSERT_LE(0, self->fd);
		fault_set(self->nth);
		ret = receive(self->fd, self->batch, IDS);
		came = fault_came();
		if (!came)
			ASSERT_EQ(OLD - 10, ret);
		if (ret < 0)
			ASSERT_EQ(0, unexpected(ret));
		got = ret < 0 ? 0 : ret;
		for (i = 0; i < got; i++) {
			ASSERT_EQ(i + 1, self->batch[i].id);
			ASSERT_EQ(0, self->batch[i].flags);
			model[i + 1].armed = false;
		}
		ASSERT_EQ(0, compare(self->fd));
		/* The rest follows: none is lost, none comes twice. */
		for (; i < OLD - 10; i++) {
			ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
			ASSERT_EQ(i + 1, record.id);
			model[i + 1].armed = false;
		}
		ASSERT_EQ(-EAGAIN, receive(self->fd, &record, 1));
		ASSERT_EQ(0, compare(self->fd));
		close(self->fd);
		self->fd = -1;
	}
	EXPECT_SWEPT(2);
}

TEST_F(faults, poll_scan_and_stat)
{
	static struct expiry_record rows[IDS];
	struct expiry_scan scan;
	struct expiry_stat stat;
	bool came = true;

	self->fd = queue_filled(variant->mode, OLD, 1);
	ASSERT_LE(0, self->fd);
	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		fault_set(self->nth);
		queue_poll(self->fd, 0);
		came = fault_came();
		scan = (struct expiry_scan) {
			.addr = (__u64)(uintptr_t)rows,
			.count = IDS,
		};
		fault_set(self->nth);
		ioctl(self->fd, EXPIRY_IOC_SCAN, &scan);
		came |= fault_came();
		fault_set(self->nth);
		queue_stat(self->fd, &stat);
		came |= fault_came();
		ASSERT_EQ(POLLIN, queue_poll(self->fd, 0));
		ASSERT_EQ(0, compare(self->fd));
	}
	EXPECT_SWEPT(3);
}

/* Reads all of 1 to MANY, in order and with @flags: 0, or the missing id. */
static unsigned int read_many(int fd, struct expiry_record *batch, __u8 flags)
{
	unsigned int id = 1;
	int i, ret;

	while (id <= MANY) {
		ret = receive_wait(fd, batch, MANY);
		if (ret <= 0)
			return id;
		for (i = 0; i < ret; i++, id++)
			if (batch[i].id != id || batch[i].flags != flags)
				return id;
	}
	return 0;
}

/*
 * Delivered timers have left an empty heap, which soon frees its pages but for those
 * that it keeps, and the other pages are no longer pinned: a rewind begins with none.
 * Trimming may have begun between two reads: that some pages are gone is not enough.
 */
static bool wait_bare(int fd, const struct expiry_stat *full)
{
	__u64 pages = full->pages_resident - full->pages_heap + KEPT;
	struct expiry_stat stat;
	int tries = WAIT_MS / 10;

	do {
		sleep_ms(10);
		if (queue_stat(fd, &stat))
			return false;
	} while ((stat.pages_resident > pages ||
		  fdinfo_number(fd, "pages-pinned:")) && tries--);
	return tries > 0;
}

TEST_F(faults, rewind)
{
	struct expiry_stat full;
	bool came = true;
	int ret;

	if (!(variant->mode & EXPIRY_MODE_ACK))
		SKIP(return, "only of a queue that is acknowledged");
	ASSERT_TRUE(params_set());
	for (self->nth = 1; came && self->nth < NTHS; self->nth++) {
		self->fd = queue_filled(variant->mode, MANY, MANY);
		ASSERT_LE(0, self->fd);
		ASSERT_EQ(0, queue_stat(self->fd, &full));
		ASSERT_EQ(0, read_many(self->fd, self->batch, 0));
		ASSERT_TRUE(wait_bare(self->fd, &full));
		fault_set(self->nth);
		ret = ioctl(self->fd, EXPIRY_IOC_REWIND) ? -errno : 0;
		came = fault_came();
		if (ret) {
			ASSERT_TRUE(came);
			ASSERT_EQ(-ENOMEM, ret);
			/* A part is armed again, and none is lost. */
			ASSERT_EQ(0, compare_with(self->fd, true));
			ASSERT_EQ(0, ioctl(self->fd, EXPIRY_IOC_REWIND));
		}
		ASSERT_EQ(0, compare(self->fd));
		ASSERT_EQ(0, read_many(self->fd, self->batch,
				       EXPIRY_F_REDELIVERED));
		close(self->fd);
		self->fd = -1;
	}
	EXPECT_SWEPT(5);
}

TEST_HARNESS_MAIN
