// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that fails: what is in a page with a memory error is not read, and the rest
 * of the queue works.
 *
 * Pages are lost until the machine starts anew, so EXPIRY_TEST_POISON must allow it.
 * Needs root, a memory cgroup, by which the pages of a queue are found, and the
 * module hwpoison-inject. Elsewhere it is skipped.
 */
#include "device.h"
#include "pressure.h"

#define POISON		"/sys/kernel/debug/hwpoison/corrupt-pfn"
#define UNPIN_MS	"/sys/module/expiry/parameters/unpin_ms"
#define TIMERS		20000
#define EACH		8	/* one page in EACH fails */

/* Of /proc/kpageflags. */
#define FLAG_ANON	(1ULL << 12)
#define FLAG_SWAPBACKED	(1ULL << 14)
#define FLAG_HWPOISON	(1ULL << 19)

FIXTURE(failure) {
	bool on;
	char unpin_ms[16];
	struct expiry_record *batch;
};

FIXTURE_SETUP(failure)
{
	const char *why = NULL;

	if (!getenv("EXPIRY_TEST_POISON"))
		SKIP(return, "EXPIRY_TEST_POISON does not allow it");
	if (access(POISON, W_OK) &&
	    (system("modprobe hwpoison-inject 2>/dev/null") || access(POISON, W_OK)))
		why = "no hwpoison-inject";
	why = why ?: group_make();
	if (why)
		SKIP(return, "%s", why);
	self->on = true;
	self->batch = calloc(TIMERS, RECORD);
	ASSERT_NE(NULL, self->batch);
	snprintf(self->unpin_ms, sizeof(self->unpin_ms), "%lld",
		 read_number(UNPIN_MS, ""));
	ASSERT_EQ(0, write_text(UNPIN_MS, "10"));
}

FIXTURE_TEARDOWN(failure)
{
	if (!self->on)
		return;
	write_text(UNPIN_MS, self->unpin_ms);
	group_leave();
	group_remove();
	free(self->batch);
}

/* Makes a queue that the group pays for, the caller being outside of it again. */
static int queue_of_group(struct expiry_record *batch)
{
	int fd, err, i;

	err = group_enter();
	fd = queue_new(EXPIRY_MODE_KEYED);
	err = group_leave() ?: err;
	if (err || fd < 0)
		return err ?: fd;
	for (i = 0; i < TIMERS; i++) {
		batch[i] = arm_in(HOUR_NS + i, ~i);
		batch[i].id = i + 1;
	}
	for (i = 0; i < TIMERS; i += 1000)
		if (submit(fd, batch + i, 1000) != 1000)
			return -EIO;
	return fd;
}

/* Waits until the queue is idle, so that no page of it is pinned. */
static int wait_unpinned(int fd)
{
	int i;

	for (i = 0; i < WAIT_MS; i += 10) {
		if (!fdinfo_number(fd, "pages-pinned:"))
			return 0;
		sleep_ms(10);
	}
	return -ETIMEDOUT;
}

/*
 * Makes every EACH-th page fail that is charged to the group and may be the queue's:
 * shared memory. Returns how many have failed, or -errno.
 */
static int poison_pages(void)
{
	FILE *groups = fopen("/proc/kpagecgroup", "re");
	int flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	__u64 group, flags, pfn, nr = 0;
	struct stat stat_buf;
	int failed = 0;
	char text[24];

	if (!groups || flags_fd < 0 || stat(PRESSURE_GROUP, &stat_buf))
		return -errno;
	for (pfn = 0; fread(&group, sizeof(group), 1, groups) == 1; pfn++) {
		if (group != stat_buf.st_ino ||
		    pread(flags_fd, &flags, sizeof(flags), 8 * pfn) != 8 ||
		    !(flags & FLAG_SWAPBACKED) || flags & FLAG_ANON)
			continue;
		if (nr++ % EACH)
			continue;
		snprintf(text, sizeof(text), "%llu", pfn);
		if (write_text(POISON, text))
			continue;
		if (pread(flags_fd, &flags, sizeof(flags), 8 * pfn) == 8 &&
		    flags & FLAG_HWPOISON)
			failed++;
	}
	fclose(groups);
	close(flags_fd);
	return failed;
}

/* Some of the timers are lost, with EIO, and the others are as they were. */
TEST_F(failure, what_is_in_a_failed_page_is_not_read)
{
	int fd, other, i, failed, right = 0, lost = 0, wrong = 0;
	struct expiry_record *record, *second;

	if (!self->on)
		return;	/* skipped */
	second = calloc(TIMERS, RECORD);
	ASSERT_NE(NULL, second);
	other = queue_new(EXPIRY_MODE_KEYED);
	ASSERT_LE(0, other);
	fd = queue_of_group(self->batch);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, wait_unpinned(fd));
	failed = poison_pages();
	ASSERT_LT(0, failed);
	for (i = 0; i < TIMERS; i++) {
		record = &second[i];
		*record = ask(EXPIRY_OP_QUERY, i + 1);
		ASSERT_EQ(1, submit(fd, record, 1));
		if (record->status == -EIO)
			lost++;
		else if (!record->status &&
			 record->deadline_ns == self->batch[i].deadline_ns &&
			 record->cookie == self->batch[i].cookie)
			right++;
		else
			wrong++;
	}
	TH_LOG("%d pages failed: %d timers are lost, %d right", failed, lost, right);
	EXPECT_LT(0, lost);
	EXPECT_LT(0, right);
	EXPECT_EQ(0, wrong);
	/* Another queue does not notice it. */
	*second = arm_in(0, 7);
	second->id = 1;
	EXPECT_EQ(0, request(other, second));
	EXPECT_EQ(1, receive_wait(other, second, 1));
	EXPECT_EQ(7, second->cookie);
	close(other);
	close(fd);
	free(second);
}

TEST_HARNESS_MAIN
