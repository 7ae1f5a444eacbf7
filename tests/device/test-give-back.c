// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * After mass cancellation a queue gives its memory back to the machine, though timers
 * are left. tests/core/test-give-back.c has the orders of the cancels.
 */
#include <sys/ioctl.h>

#include "device.h"
#include "files.h"

#define SCAN_MS		"/sys/module/expiry/parameters/scan_ms"

#define LEFT		100U	/* one in a hundred stays */
#define BATCH		1000U

FIXTURE(cancelled) {
	struct expiry_record batch[BATCH];
	__u64 *ids;
	__u32 timers;
	char scan_ms[16];
	int fd;
};

/* @scans: a SCAN begins before the cancels, and is never continued. */
FIXTURE_VARIANT(cancelled) {
	__u32 mode;
	bool scans;
};

FIXTURE_VARIANT_ADD(cancelled, plain) { .mode = 0 };
FIXTURE_VARIANT_ADD(cancelled, keyed) { .mode = EXPIRY_MODE_KEYED };
FIXTURE_VARIANT_ADD(cancelled, plain_scanned) { .mode = 0, .scans = true };
FIXTURE_VARIANT_ADD(cancelled, keyed_scanned) {
	.mode = EXPIRY_MODE_KEYED,
	.scans = true,
};

FIXTURE_SETUP(cancelled)
{
	self->fd = -1;
	self->ids = NULL;
	snprintf(self->scan_ms, sizeof(self->scan_ms), "%lld",
		 read_number(SCAN_MS, ""));
	if (variant->scans && write_text(SCAN_MS, "100"))
		SKIP(return, SCAN_MS ": %s", strerror(errno));
	/* The same number of pages on each machine: a tenth may stay. */
	self->timers = 10 * BATCH * (sysconf(_SC_PAGESIZE) / 1024);
	self->ids = calloc(self->timers, sizeof(*self->ids));
	ASSERT_NE(NULL, self->ids);
	self->fd = queue_new(variant->mode);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(cancelled)
{
	if (variant->scans)
		write_text(SCAN_MS, self->scan_ms);
	close(self->fd);
	free(self->ids);
}

static __u64 resident(int fd)
{
	struct expiry_stat stat;

	return queue_stat(fd, &stat) ? ~0ULL : stat.pages_resident;
}

/* Lists the first timers. */
static int scan_some(int fd)
{
	static struct expiry_record rows[32];
	struct expiry_scan scan = {
		.addr = (__u64)(uintptr_t)rows,
		.count = ARRAY_SIZE(rows),
	};
	int ret = ioctl(fd, EXPIRY_IOC_SCAN, &scan);

	return ret < 0 ? -errno : ret;
}

TEST_F(cancelled, timers_give_their_pages_back)
{
	__u64 before, after = 0;
	__u32 i, n = 0;
	int ms;

	for (i = 0; i < self->timers; i++) {
		self->batch[n] = arm_in(HOUR_NS + i * NSEC_PER_MSEC, i);
		self->batch[n].id = variant->mode ? 1 + i : 0;
		if (++n < BATCH)
			continue;
		ASSERT_EQ(BATCH, submit(self->fd, self->batch, BATCH));
		for (n = 0; n < BATCH; n++)
			self->ids[i + 1 - BATCH + n] = self->batch[n].id;
		n = 0;
	}
	ASSERT_EQ(self->timers, queue_armed(self->fd));
	before = resident(self->fd);
	if (variant->scans)
		ASSERT_EQ(32, scan_some(self->fd));

	/* The last one of each hundred stays, so none of the first pages is free. */
	for (i = 0; i < self->timers; i++) {
		if (i % LEFT == LEFT - 1)
			continue;
		self->batch[n++] = ask(EXPIRY_OP_CANCEL, self->ids[i]);
		if (n < LEFT - 1)
			continue;
		ASSERT_EQ(n, submit(self->fd, self->batch, n));
		n = 0;
	}
	EXPECT_EQ(self->timers / LEFT, queue_armed(self->fd));

	/* A work item frees them a moment later. */
	for (ms = 0; ms < WAIT_MS; ms += 50) {
		after = resident(self->fd);
		if (after <= before / 10)
			break;
		sleep_ms(50);
	}
	EXPECT_GE(before / 10, after);
	TH_LOG("%llu pages before, %llu after", before, after);
	EXPECT_EQ(self->timers / LEFT, queue_armed(self->fd));
}

TEST_HARNESS_MAIN
