// SPDX-License-Identifier: LGPL-2.1-or-later
/* Valid values of a batch's address, count and flags, and the end of its
 * memory.
 */
#include "device.h"

/* Three pages: read-write, and two whose protection the tests change. */
FIXTURE(memory) {
	int fd;
	size_t page;
	char *base;
};

FIXTURE_SETUP(memory)
{
	self->fd = queue_new(0);
	ASSERT_LE(0, self->fd);
	self->page = sysconf(_SC_PAGESIZE);
	self->base = mmap(NULL, 3 * self->page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->base);
}

FIXTURE_TEARDOWN(memory)
{
	munmap(self->base, 3 * self->page);
	close(self->fd);
}

static struct expiry_record *fill(char *at, unsigned int count)
{
	struct expiry_record *records = (void *)at;
	unsigned int i;

	for (i = 0; i < count; i++)
		records[i] = arm_in(HOUR_NS, i);
	return records;
}

static int submit_batch(int fd, __u64 addr, __u32 count, __u32 flags)
{
	struct expiry_batch batch = {
		.addr = addr,
		.count = count,
		.flags = flags,
	};
	int ret = ioctl(fd, EXPIRY_IOC_SUBMIT, &batch);

	return ret < 0 ? -errno : ret;
}

TEST_F(memory, count_must_be_1_to_the_limit)
{
	struct expiry_record *records = fill(self->base, 1);

	EXPECT_EQ(-EINVAL, submit(self->fd, records, 0));
	EXPECT_EQ(-EINVAL, submit(self->fd, records, EXPIRY_BATCH_MAX + 1));
	EXPECT_EQ(-EINVAL, submit(self->fd, records, ~0U));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(memory, flags_must_be_zero)
{
	struct expiry_record *records = fill(self->base, 1);
	int bit;

	for (bit = 0; bit < 32; bit++)
		EXPECT_EQ(-EINVAL,
			  submit_batch(self->fd, (uintptr_t)records, 1,
				       1U << bit));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(memory, address_must_be_aligned)
{
	int offset;

	for (offset = 1; offset < 8; offset++) {
		fill(self->base + offset, 1);
		EXPECT_EQ(-EINVAL, submit(self->fd, self->base + offset, 1));
	}
	EXPECT_EQ(0, queue_armed(self->fd));
	fill(self->base + 8, 1);
	EXPECT_EQ(1, submit(self->fd, self->base + 8, 1));
}

TEST_F(memory, address_must_be_the_callers)
{
	static const __u64 bad[] = {
		0, 8, 1ULL << 47, 0xffff888000000000ULL, 0xffffffff81000000ULL,
		~0ULL - 7, ~0ULL - 63,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EFAULT, submit_batch(self->fd, bad[i], 1, 0));
		EXPECT_EQ(-EFAULT, submit_batch(self->fd, bad[i],
						EXPIRY_BATCH_MAX, 0));
	}
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(memory, batch_struct_must_be_readable)
{
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_SUBMIT, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, EXPIRY_IOC_SUBMIT, -4096L));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(memory, unmapped_memory_does_nothing)
{
	fill(self->base, 4);
	ASSERT_EQ(0, munmap(self->base, self->page));
	EXPECT_EQ(-EFAULT, submit(self->fd, self->base, 4));
	EXPECT_EQ(0, queue_armed(self->fd));
}

TEST_F(memory, read_only_memory_does_nothing)
{
	struct expiry_record *records = fill(self->base, 4);

	ASSERT_EQ(0, mprotect(self->base, self->page, PROT_READ));
	EXPECT_EQ(-EFAULT, submit(self->fd, records, 4));
	EXPECT_EQ(0, queue_armed(self->fd));
	EXPECT_EQ(0, records[0].id);
}

TEST_F(memory, batch_is_processed_up_to_an_unmapped_page)
{
	struct expiry_record *records;
	unsigned int i;

	records = fill(self->base + self->page - 3 * RECORD, 10);
	ASSERT_EQ(0, munmap(self->base + self->page, self->page));
	ASSERT_EQ(3, submit(self->fd, records, 10));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, records[i].status);
		EXPECT_NE(0, records[i].id);
	}
	EXPECT_EQ(3, queue_armed(self->fd));
}

TEST_F(memory, batch_is_processed_up_to_a_read_only_page)
{
	struct expiry_record *records;

	records = fill(self->base + self->page - 3 * RECORD, 10);
	ASSERT_EQ(0, mprotect(self->base + self->page, self->page, PROT_READ));
	ASSERT_EQ(3, submit(self->fd, records, 10));
	EXPECT_NE(0, records[2].id);
	EXPECT_EQ(0, records[3].id);
	EXPECT_EQ(3, queue_armed(self->fd));
}

TEST_F(memory, record_astride_the_end_is_not_processed)
{
	struct expiry_record *records;

	records = fill(self->base + self->page - RECORD - 8, 4);
	ASSERT_EQ(0, mprotect(self->base + self->page, self->page, PROT_READ));
	ASSERT_EQ(1, submit(self->fd, records, 4));
	EXPECT_NE(0, records[0].id);
	EXPECT_EQ(1, queue_armed(self->fd));

	/* And when it is the first. */
	EXPECT_EQ(-EFAULT, submit(self->fd, &records[1], 3));
	EXPECT_EQ(1, queue_armed(self->fd));
}

TEST_F(memory, hole_in_the_middle_of_a_large_batch_ends_it)
{
	const unsigned int count = 20000, good = 12 * self->page / RECORD;
	struct expiry_record *records;
	size_t size = (count * RECORD + self->page - 1) & -self->page;
	unsigned int i, bad = 0;

	records = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, records);
	fill((char *)records, count);
	ASSERT_EQ(0, munmap((char *)records + 12 * self->page, self->page));
	ASSERT_EQ(good, submit(self->fd, records, count));
	for (i = 0; i < good; i++)
		bad += records[i].status || !records[i].id;
	EXPECT_EQ(0, bad);
	/* Beyond the hole nothing was touched. */
	EXPECT_EQ(0, records[13 * self->page / RECORD].id);
	EXPECT_EQ(good, queue_armed(self->fd));
	munmap(records, size);
}

TEST_F(memory, pages_not_yet_touched_are_faulted_in)
{
	struct expiry_record *records = (void *)self->base;

	/* All zero: op 0 is no op. */
	ASSERT_EQ(2, submit(self->fd, records, 2));
	EXPECT_EQ(-EOPNOTSUPP, records[0].status);
	EXPECT_EQ(-EOPNOTSUPP, records[1].status);
}

TEST_HARNESS_MAIN
