/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Short memory: a memory cgroup with limits of its own, and compressed swap
 * (zram0) for the rest. Needs root, and a machine that uses neither. Functions
 * return 0 or -errno unless stated otherwise.
 */
#ifndef TESTS_PRESSURE_H
#define TESTS_PRESSURE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/types.h>
#include <sys/stat.h>
#include <sys/swap.h>

#include "files.h"

#define PRESSURE_ROOT	"/sys/fs/cgroup/"
#define PRESSURE_GROUP	PRESSURE_ROOT "expiry-test/"
#define PRESSURE_ZRAM	"/sys/block/zram0/"
#define PRESSURE_SWAP	"/dev/zram0"

static inline unsigned int pressure_page(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* Reads a number from the group's file @name, e.g. ("memory.stat", "shmem "). */
static inline long long group_read(const char *name, const char *key)
{
	char path[128];

	snprintf(path, sizeof(path), PRESSURE_GROUP "%s", name);
	return read_number(path, key);
}

static inline int group_write(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), PRESSURE_GROUP "%s", name);
	return write_text(path, text);
}

static inline int group_limit(const char *name, unsigned long long bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", bytes);
	return group_write(name, text);
}

/* Returns NULL, or why no group is available. */
static inline const char *group_make(void)
{
	if (access(PRESSURE_ROOT "cgroup.controllers", F_OK))
		return "no control groups, version 2";
	write_text(PRESSURE_ROOT "cgroup.subtree_control", "+memory");
	if (mkdir(PRESSURE_GROUP, 0755) && errno != EEXIST)
		return "no control group can be made";
	if (access(PRESSURE_GROUP "memory.max", F_OK))
		return "no memory control group";
	return NULL;
}

/* Moves the calling process into the group, or out of it. */
static inline int group_enter(void)
{
	return group_write("cgroup.procs", "0");
}

static inline int group_leave(void)
{
	return write_text(PRESSURE_ROOT "cgroup.procs", "0");
}

static inline void group_remove(void)
{
	rmdir(PRESSURE_GROUP);
}

/* Writes a swap header to @disk: a page with a signature at its end. */
static inline int swap_make(const char *disk, __u32 pages)
{
	static const char magic[10] = "SWAPSPACE2";
	__u32 version_and_last[2] = { 1, pages - 1 };
	size_t size = pressure_page();
	char *header = calloc(1, size);
	int fd, err = -EIO;

	if (!header)
		return -ENOMEM;
	memcpy(header + 1024, version_and_last, sizeof(version_and_last));
	memcpy(header + size - sizeof(magic), magic, sizeof(magic));
	fd = open(disk, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		free(header);
		return -errno;
	}
	if (write(fd, header, size) == (ssize_t)size && !fsync(fd))
		err = 0;
	close(fd);
	free(header);
	return err;
}

/* Returns NULL, or why no swap is available. */
static inline const char *swap_begin(unsigned int mib)
{
	char size[32];

	if (access(PRESSURE_ZRAM, F_OK) && system("modprobe zram 2>/dev/null"))
		return "no zram";
	if (read_number(PRESSURE_ZRAM "disksize", "") != 0)
		return "zram0 is in use";
	snprintf(size, sizeof(size), "%uM", mib);
	if (write_text(PRESSURE_ZRAM "disksize", size) ||
	    swap_make(PRESSURE_SWAP, (mib << 20) / pressure_page()) ||
	    swapon(PRESSURE_SWAP, 0))
		return "zram0 cannot be made swap";
	return NULL;
}

static inline void swap_end(void)
{
	swapoff(PRESSURE_SWAP);
	write_text(PRESSURE_ZRAM "reset", "1");
}

#endif /* TESTS_PRESSURE_H */
