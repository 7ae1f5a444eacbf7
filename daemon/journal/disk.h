/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A disk: the directory with the journals' files, behind a table of operations.
 * directory.c is the real one; the tests have one in memory that crashes.
 *
 * All calls may block, and return 0, a number, or -errno. A name is a file's in
 * that directory. Calls about different files may come from different threads.
 */
#ifndef DAEMON_DISK_H
#define DAEMON_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disk;

/* How to open a file. */
enum disk_how {
	DISK_READ,	/* to read, through the page cache */
	DISK_WRITE,	/* an existing file, to write */
	DISK_MAKE,	/* to write; an older file of this name is replaced */
};

typedef int (*disk_visit_t)(void *data, const char *name);

/**
 * struct disk_ops - operations of a disk
 * @open: returns a descriptor
 * @close: closes it
 * @size: returns the bytes of the open file
 * @read: returns the bytes read, fewer than @len only at the end of the file
 * @write: writes all of @len bytes, or fails. Memory, @len and @offset are
 *	multiples of @align of the disk.
 * @sync: makes the file's data and size durable, not its name
 * @rename: gives the file another name, whose earlier file ends
 * @unlink: removes a name
 * @sync_names: makes all names durable
 * @list: calls @visit for each name until that returns other than 0
 *
 * A file whose @write or @sync failed must not be written or synced again:
 * Linux marks pages clean that it could not write, so a second fsync() succeeds
 * without them.
 */
struct disk_ops {
	int (*open)(struct disk *disk, const char *name, enum disk_how how);
	void (*close)(struct disk *disk, int fd);
	int64_t (*size)(struct disk *disk, int fd);
	ssize_t (*read)(struct disk *disk, int fd, void *data, size_t len,
			uint64_t offset);
	int (*write)(struct disk *disk, int fd, const void *data, size_t len,
		     uint64_t offset);
	int (*sync)(struct disk *disk, int fd);
	int (*rename)(struct disk *disk, const char *from, const char *to);
	int (*unlink)(struct disk *disk, const char *name);
	int (*sync_names)(struct disk *disk);
	int (*list)(struct disk *disk, disk_visit_t visit, void *data);
};

/**
 * struct disk - embedded in the disk's own
 * @ops: const
 * @align: unit of writes, a power of two from 512 to DISK_ALIGN_MAX (const)
 * @direct: files are written without the page cache (const)
 */
struct disk {
	const struct disk_ops *ops;
	uint32_t align;
	bool direct;
};

#define DISK_ALIGN_MAX	4096U

#endif /* DAEMON_DISK_H */
