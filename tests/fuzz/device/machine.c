// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A machine with short memory: a memory control group of the fuzzer's own that
 * is reclaimed to compressed swap, and allocations that fail.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/stat.h>
#include <sys/swap.h>

#include "state.h"

#define CGROUP		"/sys/fs/cgroup"
#define GROUP		CGROUP "/expiry-fuzz"
#define ZRAM		"/sys/block/zram0"
#define ZRAM_DEVICE	"/dev/zram0"
#define SWAP_SIZE	(64 << 20)

/* A swap header is a page with a signature at its end. */
static bool swap_make(void)
{
	struct {
		char boot[1024];
		__u32 version;
		__u32 last_page;
		char rest[PAGE - 1024 - 8 - 10];
		char magic[10];
	} header = {
		.version = 1,
		.last_page = SWAP_SIZE / PAGE - 1,
		.magic = { 'S', 'W', 'A', 'P', 'S', 'P', 'A', 'C', 'E', '2' },
	};
	int fd = open(ZRAM_DEVICE, O_WRONLY | O_CLOEXEC);
	bool made;

	if (fd < 0)
		return false;
	made = write(fd, &header, sizeof(header)) == sizeof(header) &&
	       !fsync(fd);
	close(fd);
	return made;
}

bool machine_reclaim_init(void)
{
	char pid[16], size[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(size, sizeof(size), "%d", SWAP_SIZE);
	write_text(CGROUP "/cgroup.subtree_control", "+memory");
	if ((mkdir(GROUP, 0755) && errno != EEXIST) ||
	    access(GROUP "/memory.reclaim", W_OK) ||
	    write_text(GROUP "/cgroup.procs", pid) ||
	    write_text(ZRAM "/disksize", size) || !swap_make() ||
	    swapon(ZRAM_DEVICE, 0))
		return false;
	options.reclaim = GROUP "/memory.reclaim";
	return true;
}

/* Allocations that may wait, and single pages, fail too. */
bool machine_fail_init(void)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		/* No report of each failure. */
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[128];
	unsigned int i;

	if (access("/proc/self/fail-nth", W_OK))
		return false;
	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 settings[i][0]);
		write_text(path, settings[i][1]);
	}
	write_text("/proc/sys/vm/drop_caches", "4");
	options.fail = true;
	return true;
}
