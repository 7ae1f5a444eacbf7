// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Only expiry_open() allocates memory. If one of its allocations fails it says
 * so, and leaks neither memory nor a descriptor.
 */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support-queue.h"

#define CALLS_MAX	100

/* The C library's own names for its allocator, which these functions replace.
 */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *memory);

static _Atomic long calls, refused, held;

static bool is_refused(void)
{
	if (atomic_fetch_add(&calls, 1) + 1 != atomic_load(&refused))
		return false;
	errno = ENOMEM;
	return true;
}

static void *hold(void *memory)
{
	if (memory)
		atomic_fetch_add(&held, 1);
	return memory;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : hold(__libc_malloc(size));
}

void *calloc(size_t nr, size_t size)
{
	return is_refused() ? NULL : hold(__libc_calloc(nr, size));
}

void *realloc(void *memory, size_t size)
{
	if (is_refused())
		return NULL;
	return memory ? __libc_realloc(memory, size) : hold(__libc_malloc(size));
}

void *aligned_alloc(size_t align, size_t size)
{
	return is_refused() ? NULL : hold(__libc_memalign(align, size));
}

void free(void *memory)
{
	if (memory)
		atomic_fetch_sub(&held, 1);
	__libc_free(memory);
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static bool is_keyed(const struct expiry *h)
{
	struct expiry_info info;

	expiry_info(h, &info, sizeof(info));
	return info.mode & EXPIRY_MODE_KEYED;
}

/* Makes every call on a handle, without an allocation. */
static void use(struct expiry *h)
{
	struct expiry_record records[100] = { 0 };
	struct expiry_server_stat server;
	struct expiry_stat stat;
	uint64_t id = 1000, count;
	long before = calls;
	int i;

	for (i = 0; i < 100; i++)
		records[i] = (struct expiry_record) {
			.op = EXPIRY_OP_ARM,
			.flags = EXPIRY_F_RELATIVE,
			.id = is_keyed(h) ? 1 + i : 0,
			.deadline_ns = HOUR,
		};
	assert_int_equal(expiry_submit(h, records, 100), 100);
	assert_int_equal(expiry_arm(h, &id, HOUR, 0, 0, EXPIRY_F_RELATIVE), 0);
	assert_int_equal(expiry_refresh(h, id, 0, 0, NULL), 0);
	take_due(h, records, 1);
	assert_int_equal(expiry_query(h, id, NULL), -ENOENT);
	assert_int_equal(expiry_stat(h, &stat, &server, sizeof(server)), 0);
	assert_int_equal(expiry_clear(h, &count), 0);
	assert_in_range(count, 100, 101);
	assert_int_equal(calls, before);
}

static void try_each_call(const struct expiry_options *options)
{
	struct expiry *h = NULL;
	long number, memory;
	int files, ret;

	/* The C library allocates its own memory before this. */
	assert_int_equal(expiry_open(&h, address, options), 0);
	expiry_close(h);
	files = open_files();
	for (number = 1; number < CALLS_MAX; number++) {
		memory = held;
		h = NULL;
		refused = calls + number;
		ret = expiry_open(&h, address, options);
		if (calls < refused)
			break;
		refused = 0;
		assert_int_equal(ret, -ENOMEM);
		assert_null(h);
		assert_int_equal(held, memory);
		assert_int_equal(open_files(), files);
	}
	refused = 0;
	assert_int_equal(ret, 0);
	assert_true(number > 1 && number < CALLS_MAX);
	use(h);
	expiry_close(h);
	assert_int_equal(held, memory);
	assert_int_equal(open_files(), files);
}

static void consumer(void **state)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME,
		.clock_id = CLOCK_MONOTONIC,
	};

	(void)state;
	try_each_call(&options);
}

static void reconnecting(void **state)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_ACK |
			 EXPIRY_OPEN_RECONNECT,
		.queue = "no-memory",
		.clock_id = CLOCK_MONOTONIC,
	};

	(void)state;
	/* The device is no connection that could break. */
	if (!on_device())
		try_each_call(&options);
}

static int yield_none(void *arg, uint64_t *cursor, struct expiry_record *timers,
		      uint32_t max)
{
	(void)arg;
	(void)cursor;
	(void)timers;
	(void)max;
	return 0;
}

static void restoring(void **state)
{
	const struct expiry_options options = {
		.size = sizeof(options),
		.flags = EXPIRY_OPEN_CONSUME | EXPIRY_OPEN_KEYED,
		.clock_id = CLOCK_MONOTONIC,
		.restore = yield_none,
	};

	(void)state;
	if (!on_device())
		try_each_call(&options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(consumer),
		cmocka_unit_test(reconnecting),
		cmocka_unit_test(restoring),
	};

	return run_on_engines("no-memory", tests,
			      sizeof(tests) / sizeof(*tests));
}
