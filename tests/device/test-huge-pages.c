// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Small queues stay small where the kernel makes huge pages for shared memory, of one
 * memory cgroup and of two. Needs root and a kernel with transparent huge pages;
 * elsewhere it is skipped.
 */
#include "device.h"
#include "files.h"
#include "pressure.h"

#define ENABLED	"/sys/kernel/mm/transparent_hugepage/shmem_enabled"

/* Copies the word in brackets, the setting in force, to @word. */
static int setting(char *word, size_t size)
{
	char line[128] = "", *start, *end;
	FILE *file = fopen(ENABLED, "r");

	if (!file)
		return -errno;
	start = fgets(line, sizeof(line), file) ? strchr(line, '[') : NULL;
	end = start ? strchr(start, ']') : NULL;
	fclose(file);
	if (!end)
		return -EIO;
	*end = '\0';
	snprintf(word, size, "%s", start + 1);
	return 0;
}

FIXTURE(huge) {
	int unused;
};

FIXTURE_VARIANT(huge) {
	bool two_groups;
};

FIXTURE_VARIANT_ADD(huge, one_group) {
	.two_groups = false,
};

FIXTURE_VARIANT_ADD(huge, two_groups) {
	.two_groups = true,
};

FIXTURE_SETUP(huge)
{
}

FIXTURE_TEARDOWN(huge)
{
}

TEST_F(huge, queues_of_two_timers_take_no_huge_pages)
{
	enum { QUEUES = 50, MOST_KIB = 10 << 10 };
	struct expiry_record record;
	int fds[QUEUES], i, id;
	const char *why;
	char before[32];
	long long kib;

	if (setting(before, sizeof(before)) || write_text(ENABLED, "always"))
		SKIP(return, "no transparent huge pages for shared memory");
	why = variant->two_groups ? group_make() : NULL;
	if (why)
		SKIP(return, "%s", why);
	kib = read_number("/proc/meminfo", "Shmem:");
	for (i = 0; i < QUEUES; i++) {
		if (variant->two_groups)
			ASSERT_EQ(0, i % 2 ? group_enter() : group_leave());
		fds[i] = queue_new(EXPIRY_MODE_KEYED);
		EXPECT_LE(0, fds[i]);
		for (id = 1; id <= 2; id++) {
			record = arm_in(HOUR_NS, 0);
			record.id = id;
			EXPECT_EQ(0, request(fds[i], &record));
		}
	}
	EXPECT_GT(MOST_KIB, read_number("/proc/meminfo", "Shmem:") - kib);
	for (i = 0; i < QUEUES; i++)
		close(fds[i]);
	if (variant->two_groups) {
		group_leave();
		group_remove();
	}
	EXPECT_EQ(0, write_text(ENABLED, before));
}

TEST_HARNESS_MAIN
