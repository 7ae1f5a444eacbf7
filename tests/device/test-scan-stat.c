// SPDX-License-Identifier: LGPL-2.1-or-later
/* Views of a queue: EXPIRY_IOC_SCAN, EXPIRY_IOC_STAT, fdinfo. */
#include "device.h"
#include "files.h"

FIXTURE(seen) {
	int fd;
};

FIXTURE_VARIANT(seen) {
	__u32 mode;
};

FIXTURE_VARIANT_ADD(seen, plain) {
	.mode = 0,
};

FIXTURE_VARIANT_ADD(seen, keyed_ack) {
	.mode = EXPIRY_MODE_KEYED | EXPIRY_MODE_ACK,
};

FIXTURE_SETUP(seen)
{
	self->fd = queue_new(variant->mode);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(seen)
{
	close(self->fd);
}

/* Returns rows written, or -errno. */
static int scan(int fd, void *rows, __u32 count, __u64 *cursor)
{
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)rows,
		.count = count,
		.cursor = *cursor,
	};
	int ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);

	*cursor = scan.cursor;
	return ret < 0 ? -errno : ret;
}

static struct expiry_record arm_one(__u32 mode, unsigned int i)
{
	struct expiry_record record = arm_at(EXPIRY_NEVER - i, i);

	record.period_ms = i % 3;
	if (mode & EXPIRY_MODE_KEYED)
		record.id = 1000000 + i;
	return record;
}

TEST_F(seen, scan_shows_every_timer_once_whatever_the_page)
{
	enum { COUNT = 5000 };
	static const unsigned int pages[] = { 1000, 97, 65536 };
	static struct expiry_record records[COUNT], rows[65536];
	static unsigned char times[COUNT];
	unsigned int i, j, wrong = 0, total, calls;
	__u64 cursor;
	int ret;

	for (i = 0; i < COUNT; i++)
		records[i] = arm_one(variant->mode, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	for (j = 0; j < ARRAY_SIZE(pages); j++) {
		memset(times, 0, sizeof(times));
		cursor = 0;
		total = 0;
		calls = 0;
		do {
			ret = scan(self->fd, rows, pages[j], &cursor);
			ASSERT_LE(0, ret);
			ASSERT_GE(pages[j], ret);
			for (i = 0; i < ret; i++) {
				ASSERT_GT(COUNT, rows[i].cookie);
				times[rows[i].cookie]++;
				wrong += rows[i].op != EXPIRY_OP_QUERY ||
					 rows[i].flags || rows[i].status ||
					 rows[i].id !=
						records[rows[i].cookie].id ||
					 rows[i].deadline_ns !=
						EXPIRY_NEVER - rows[i].cookie ||
					 rows[i].period_ms !=
						rows[i].cookie % 3;
			}
			total += ret;
			ASSERT_GT(10 * COUNT, ++calls);
		} while (cursor);
		EXPECT_EQ(COUNT, total);
		for (i = 0; i < COUNT; i++)
			wrong += times[i] != 1;
	}
	EXPECT_EQ(0, wrong);
}

TEST_F(seen, scan_of_an_empty_queue_ends_at_once)
{
	struct expiry_record row;
	__u64 cursor = 0;

	EXPECT_EQ(0, scan(self->fd, &row, 1, &cursor));
	EXPECT_EQ(0, cursor);
}

TEST_F(seen, scan_keeps_what_stays_while_others_come_and_go)
{
	enum { COUNT = 2000 };
	static struct expiry_record records[COUNT], rows[64];
	static unsigned char times[COUNT];
	struct expiry_record record;
	unsigned int i, turn = 0, wrong = 0;
	__u64 cursor = 0;
	int ret;

	for (i = 0; i < COUNT; i++)
		records[i] = arm_one(variant->mode, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	do {
		ret = scan(self->fd, rows, ARRAY_SIZE(rows), &cursor);
		ASSERT_LE(0, ret);
		for (i = 0; i < ret; i++)
			if (rows[i].cookie < COUNT)
				times[rows[i].cookie]++;
		/* One of the odd ones goes, a new one comes. */
		if (2 * turn + 1 < COUNT) {
			record = ask(EXPIRY_OP_CANCEL,
				     records[2 * turn + 1].id);
			ASSERT_EQ(0, request(self->fd, &record));
			record = arm_one(variant->mode, COUNT + turn);
			ASSERT_EQ(0, request(self->fd, &record));
		}
		ASSERT_GT(100 * COUNT, turn++);
	} while (cursor);
	for (i = 0; i < COUNT; i += 2)
		wrong += times[i] != 1;
	for (i = 1; i < COUNT; i += 2)
		wrong += times[i] > 1;
	EXPECT_EQ(0, wrong);
}

TEST_F(seen, scan_marks_what_is_delivered_and_not_acknowledged)
{
	struct expiry_record record = arm_one(variant->mode, 1), row;
	__u64 cursor = 0;

	record.deadline_ns = 0;
	record.period_ms = 0;
	ASSERT_EQ(0, request(self->fd, &record));
	ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	if (!(variant->mode & EXPIRY_MODE_ACK)) {
		EXPECT_EQ(0, scan(self->fd, &row, 1, &cursor));
		return;
	}
	ASSERT_EQ(1, scan(self->fd, &row, 1, &cursor));
	EXPECT_EQ(EXPIRY_F_REDELIVERED, row.flags);
	EXPECT_EQ(record.id, row.id);
	EXPECT_EQ(0, row.deadline_ns);
}

TEST_F(seen, scan_refuses_bad_arguments)
{
	struct expiry_record rows[2] = { arm_one(variant->mode, 1) };
	struct expiry_scan bad = {
		.addr = (__u64)(uintptr_t)rows,
		.count = 1,
		.flags = 1,
	};
	__u64 cursor = 0;

	ASSERT_EQ(0, request(self->fd, &rows[0]));
	EXPECT_EQ(-EINVAL, scan(self->fd, rows, 0, &cursor));
	EXPECT_EQ(-EINVAL, scan(self->fd, rows, EXPIRY_BATCH_MAX + 1, &cursor));
	EXPECT_EQ(-EINVAL, scan(self->fd, (char *)rows + 4, 1, &cursor));
	EXPECT_EQ(-EFAULT, scan(self->fd, (void *)8, 1, &cursor));
	EXPECT_EQ(-EFAULT, scan(self->fd, (void *)-4096L, 1, &cursor));
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_SCAN, &bad));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_SCAN, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, cursor);
	EXPECT_EQ(1, scan(self->fd, rows, 1, &cursor));
}

TEST_F(seen, scan_from_a_cursor_nobody_gave_ends)
{
	static const __u64 cursors[] = {
		1, 100, 1ULL << 31, 1ULL << 32, ~0ULL, ~0ULL >> 1,
	};
	struct expiry_record row = arm_one(variant->mode, 1);
	unsigned int i, calls;
	__u64 cursor;
	int ret;

	ASSERT_EQ(0, request(self->fd, &row));
	for (i = 0; i < ARRAY_SIZE(cursors); i++) {
		cursor = cursors[i];
		calls = 0;
		do {
			ret = scan(self->fd, &row, 1, &cursor);
			ASSERT_TRUE(ret == 0 || ret == 1 || ret == -ECANCELED);
			ASSERT_GT(100, ++calls);
		} while (ret >= 0 && cursor);
	}
}

TEST_F(seen, stat_counts_what_happened)
{
	bool keyed = variant->mode & EXPIRY_MODE_KEYED;
	bool ack = variant->mode & EXPIRY_MODE_ACK;
	struct expiry_record records[10], record;
	struct expiry_stat stat;
	__u64 total = 0;
	unsigned int i;

	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(EXPIRY_NEVER, stat.next_ns);
	EXPECT_EQ(0, stat.armed + stat.unacked + stat.arms + stat.refreshes +
		     stat.cancels + stat.acks + stat.delivered +
		     stat.redelivered + stat.refused + stat.refused_limit);

	/* Two for times that have passed, two that are due as they are armed. */
	for (i = 0; i < 10; i++) {
		records[i] = arm_at(i < 4 ? i : HOUR_NS * 1000000 + i, i);
		if (i == 2 || i == 3) {
			records[i].flags = EXPIRY_F_RELATIVE;
			records[i].deadline_ns = 1000000;
		}
		records[i].id = keyed ? i + 1 : 0;
	}
	ASSERT_EQ(10, submit(self->fd, records, 10));
	record = ask(EXPIRY_OP_CANCEL, records[9].id);
	ASSERT_EQ(0, request(self->fd, &record));
	record = ask(EXPIRY_OP_REFRESH, records[8].id);
	record.deadline_ns = EXPIRY_NEVER;
	ASSERT_EQ(0, request(self->fd, &record));
	record = ask(99, 0);
	ASSERT_EQ(-EOPNOTSUPP, request(self->fd, &record));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(1, receive_wait(self->fd, &record, 1));
	record = ask(EXPIRY_OP_ACK, records[0].id);
	ASSERT_EQ(ack ? 0 : -EINVAL, request(self->fd, &record));

	ASSERT_EQ(0, queue_stat(self->fd, &stat));
	EXPECT_EQ(10, stat.arms);
	EXPECT_EQ(1, stat.cancels);
	EXPECT_EQ(1, stat.refreshes);
	EXPECT_EQ(4, stat.delivered);
	EXPECT_EQ(0, stat.redelivered);
	EXPECT_EQ(ack ? 1 : 0, stat.acks);
	EXPECT_EQ(ack ? 1 : 2, stat.refused);
	EXPECT_EQ(0, stat.refused_limit);
	EXPECT_EQ(5, stat.armed);
	EXPECT_EQ(ack ? 3 : 0, stat.unacked);
	EXPECT_GE(HOUR_NS * 1000000 + 4, stat.next_ns);
	EXPECT_LE(stat.armed, stat.nodes);
	EXPECT_NE(0, stat.pages_heap);
	EXPECT_NE(0, stat.pages_slots);
	EXPECT_EQ(keyed, stat.pages_index != 0);
	EXPECT_GE(stat.pages_heap + stat.pages_slots + stat.pages_index,
		  stat.pages_resident);
	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		total += stat.lateness[i];
	EXPECT_EQ(2, total);
	EXPECT_EQ(2, stat.past);
	EXPECT_EQ(0, stat.held);
	EXPECT_NE(0, stat.lateness_max_ns);
	EXPECT_GT(60000000000, stat.lateness_max_ns);
	EXPECT_EQ(0, stat.reserved[0]);
}

TEST_F(seen, stat_keeps_nodes_within_bounds_when_most_are_cancelled)
{
	enum { COUNT = 20000 };
	static struct expiry_record records[COUNT];
	struct expiry_stat stat;
	unsigned int round, i;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < COUNT; i++) {
			records[i] = arm_in(HOUR_NS + i, i);
			if (variant->mode & EXPIRY_MODE_KEYED)
				records[i].id = i + 1;
		}
		ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
		/* All but one in a hundred. */
		for (i = 0; i < COUNT; i++)
			records[i] = ask(i % 100 ? EXPIRY_OP_CANCEL :
						   EXPIRY_OP_QUERY,
					 records[i].id);
		ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
		ASSERT_EQ(0, queue_stat(self->fd, &stat));
		EXPECT_GE(2 * stat.armed + 4096, stat.nodes);
	}
}

TEST_F(seen, stat_refuses_a_bad_address)
{
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_STAT, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_STAT, -4096L));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(seen, fdinfo_tells_the_number_of_timers)
{
	enum { COUNT = 1234 };
	static struct expiry_record records[COUNT];
	char path[64], text[4096];
	unsigned int i;
	ssize_t len;
	int info;

	for (i = 0; i < COUNT; i++)
		records[i] = arm_one(variant->mode, i);
	ASSERT_EQ(COUNT, submit(self->fd, records, COUNT));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	info = open(path, O_RDONLY);
	ASSERT_LE(0, info);
	len = read(info, text, sizeof(text) - 1);
	ASSERT_LT(0, len);
	text[len] = '\0';
	EXPECT_NE(NULL, strstr(text, "\t1234\n")) {
		TH_LOG("%s", text);
	}
	close(info);
}

#define UNPIN_MS	"/sys/module/expiry/parameters/unpin_ms"

/* Returns the pinned pages after the queue has been looked at every 30 ms until
 * none are pinned, for five seconds at most; by STAT, too, if @by_stat.
 */
static long long pinned_after_looks(int fd, bool by_stat)
{
	struct expiry_stat stat;
	long long pinned = -1;
	unsigned int i;

	for (i = 0; i < 170 && pinned; i++) {
		if (by_stat && queue_stat(fd, &stat))
			return -1;
		pinned = fdinfo_number(fd, "pages-pinned:");
		sleep_ms(30);
	}
	return pinned;
}

/* A monitor must not keep the pages of an idle queue in memory. */
TEST_F(seen, looks_do_not_keep_pages_pinned)
{
	enum { COUNT = 1000 };
	static struct expiry_record records[COUNT];
	char before[16] = "";
	int i, by_stat;
	FILE *file;

	file = fopen(UNPIN_MS, "r");
	if (file) {
		ASSERT_NE(NULL, fgets(before, sizeof(before), file));
		fclose(file);
	}
	if (!file || write_text(UNPIN_MS, "100"))
		SKIP(return, "no module parameter unpin_ms");
	for (by_stat = 0; by_stat < 2; by_stat++) {
		for (i = 0; i < COUNT; i++)
			records[i] = arm_one(variant->mode, i);
		EXPECT_EQ(COUNT, submit(self->fd, records, COUNT));
		EXPECT_LT(0, fdinfo_number(self->fd, "pages-pinned:"));
		EXPECT_EQ(0, pinned_after_looks(self->fd, by_stat));
	}
	EXPECT_EQ(0, write_text(UNPIN_MS, before));
}

TEST_HARNESS_MAIN
