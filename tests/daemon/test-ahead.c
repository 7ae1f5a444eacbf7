// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading ahead under ThreadSanitizer: whatever is read, and in whatever order, is what
 * the disk below has at that time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/journal/ahead.h"
#include "daemon/journal/reader.h"
#include "daemon/util/util.h"

#define FILES	4
#define TRIES	1000

/**
 * struct below - a disk of some files
 * @salt: what is in each
 * @fails_at: reads from here on fail, by each
 * @reads: how many there were; atomic
 */
static struct below {
	struct disk disk;
	uint64_t size[FILES];
	uint32_t salt[FILES];
	uint64_t fails_at[FILES];
	uint32_t reads;
} below;

static uint32_t word_at(int fd, uint64_t offset)
{
	return (uint32_t)(offset / 4) * 2654435761U + below.salt[fd];
}

static int on_open(struct disk *disk, const char *name, enum disk_how how)
{
	(void)disk;
	assert_int_equal(how, DISK_READ);
	return name[0] - '0';
}

static void on_close(struct disk *disk, int fd)
{
	(void)disk;
	/* The next file of this number is another one. */
	below.salt[fd]++;
}

static int64_t on_size(struct disk *disk, int fd)
{
	(void)disk;
	return below.size[fd];
}

static ssize_t on_read(struct disk *disk, int fd, void *data, size_t len,
		       uint64_t offset)
{
	uint32_t *word = data, i;

	(void)disk;
	__atomic_fetch_add(&below.reads, 1, __ATOMIC_RELAXED);
	if (offset >= below.size[fd])
		return 0;
	len = min_u64(len, below.size[fd] - offset);
	if (offset + len > below.fails_at[fd])
		return -EIO;
	for (i = 0; i < len / 4; i++)
		word[i] = word_at(fd, offset + 4ULL * i);
	return len;
}

static const struct disk_ops ops = {
	.open = on_open,
	.close = on_close,
	.size = on_size,
	.read = on_read,
};

static void make_below(uint64_t size)
{
	int i;

	below = (struct below) { .disk = { .ops = &ops, .align = 512 } };
	for (i = 0; i < FILES; i++) {
		below.size[i] = size;
		below.fails_at[i] = UINT64_MAX;
		below.salt[i] = 1000 * i;
	}
}

static void check(struct disk *disk, int fd, size_t len, uint64_t offset)
{
	uint64_t size = below.size[fd], there;
	uint32_t *data = malloc(len), i;
	ssize_t n = disk->ops->read(disk, fd, data, len, offset);

	there = offset < size ? min_u64(len, size - offset) : 0;
	if (there && offset + there > below.fails_at[fd]) {
		assert_int_equal(n, -EIO);
	} else {
		assert_int_equal(n, there);
		for (i = 0; i < there / 4; i++)
			assert_int_equal(data[i], word_at(fd, offset + 4ULL * i));
	}
	free(data);
}

static void test_whole_file(void **state)
{
	const uint32_t windows = 20;
	struct ahead ahead;
	uint32_t i;
	int fd;

	(void)state;
	make_below(windows * (uint64_t)READER_WINDOW + 512);
	ahead_init(&ahead, &below.disk);
	fd = ahead.disk.ops->open(&ahead.disk, "0", DISK_READ);
	assert_int_equal(ahead.disk.ops->size(&ahead.disk, fd), below.size[0]);
	for (i = 0; i <= windows; i++)
		check(&ahead.disk, fd, READER_WINDOW,
		      i * (uint64_t)READER_WINDOW);
	ahead.disk.ops->close(&ahead.disk, fd);
	/* Each was read once, and what was short at the end once more. */
	assert_int_equal(below.reads, windows + 2);
	ahead_deinit(&ahead);
}

static void test_short_file_needs_no_thread(void **state)
{
	struct ahead ahead;

	(void)state;
	make_below(4096);
	ahead_init(&ahead, &below.disk);
	check(&ahead.disk, 1, READER_WINDOW, 0);
	assert_null(ahead.memory);
	assert_int_equal(below.reads, 1);
	ahead.disk.ops->close(&ahead.disk, 1);
	ahead_deinit(&ahead);
}

static void test_error_is_the_callers(void **state)
{
	struct ahead ahead;
	int i;

	(void)state;
	make_below(8 * READER_WINDOW);
	below.fails_at[2] = 2 * READER_WINDOW;
	ahead_init(&ahead, &below.disk);
	for (i = 0; i < 4; i++)
		check(&ahead.disk, 2, READER_WINDOW, i * READER_WINDOW);
	/* It can be read again. */
	ahead.disk.ops->close(&ahead.disk, 2);
	below.fails_at[2] = UINT64_MAX;
	for (i = 0; i < 4; i++)
		check(&ahead.disk, 2, READER_WINDOW, i * READER_WINDOW);
	ahead.disk.ops->close(&ahead.disk, 2);
	ahead_deinit(&ahead);
}

static void test_any_order(void **state)
{
	uint64_t offset[FILES] = { 0 }, size = 10 * READER_WINDOW + 1024;
	struct ahead ahead;
	size_t len;
	int i, fd;

	(void)state;
	make_below(size);
	srand(1);
	ahead_init(&ahead, &below.disk);
	for (i = 0; i < TRIES; i++) {
		fd = rand() % FILES;
		if (rand() % 8 == 0)
			fd = 0;
		len = rand() % 3 ? READER_WINDOW :
				   4U * (1 + rand() % READER_WINDOW);
		if (rand() % 16 == 0)
			offset[fd] = rand() % size & ~3ULL;
		check(&ahead.disk, fd, len, offset[fd]);
		offset[fd] += len;
		if (offset[fd] >= size || rand() % 32 == 0) {
			ahead.disk.ops->close(&ahead.disk, fd);
			if (offset[fd] >= size || rand() % 2)
				offset[fd] = 0;
		}
	}
	ahead_deinit(&ahead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_short_file_needs_no_thread),
		cmocka_unit_test(test_error_is_the_callers),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
