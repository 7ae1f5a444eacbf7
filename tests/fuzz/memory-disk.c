// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/util.h"
#include "memory-disk.h"

static struct memory_disk *disk_of(struct disk *disk)
{
	return container_of(disk, struct memory_disk, disk);
}

static int find(struct memory_disk *disk, const char *name)
{
	int i;

	for (i = 0; i < MEMORY_FILES; i++)
		if (!strcmp(disk->files[i].name, name))
			return i;
	return -1;
}

static int memory_unlink(struct disk *disk, const char *name)
{
	struct memory_disk *memory = disk_of(disk);
	int fd = *name ? find(memory, name) : -1;

	if (fd < 0)
		return -ENOENT;
	free(memory->files[fd].data);
	memory->files[fd] = (struct memory_file) { .size = 0 };
	return 0;
}

static int memory_open(struct disk *disk, const char *name, enum disk_how how)
{
	struct memory_disk *memory = disk_of(disk);
	int fd;

	if (how == DISK_MAKE)
		memory_unlink(disk, name);
	fd = find(memory, name);
	if (fd >= 0)
		return fd;
	if (how != DISK_MAKE)
		return -ENOENT;
	fd = find(memory, "");
	if (fd < 0)
		return -ENOSPC;
	strcpy(memory->files[fd].name, name);
	return fd;
}

static void memory_close(struct disk *disk, int fd)
{
	(void)disk;
	(void)fd;
}

static int64_t memory_size(struct disk *disk, int fd)
{
	return disk_of(disk)->files[fd].size;
}

static ssize_t memory_read(struct disk *disk, int fd, void *data, size_t len,
			   uint64_t offset)
{
	const struct memory_file *file = &disk_of(disk)->files[fd];

	if (offset >= file->size)
		return 0;
	len = min_u64(len, file->size - offset);
	memcpy(data, file->data + offset, len);
	return len;
}

static int memory_write(struct disk *disk, int fd, const void *data, size_t len,
			uint64_t offset)
{
	struct memory_file *file = &disk_of(disk)->files[fd];

	if (offset + len > file->room) {
		file->room = 2 * (offset + len);
		file->data = realloc(file->data, file->room);
		if (!file->data)
			abort();
	}
	if (offset + len > file->size) {
		memset(file->data + file->size, 0, offset + len - file->size);
		file->size = offset + len;
	}
	memcpy(file->data + offset, data, len);
	return 0;
}

static int memory_sync(struct disk *disk, int fd)
{
	(void)disk;
	(void)fd;
	return 0;
}

static int memory_rename(struct disk *disk, const char *from, const char *to)
{
	struct memory_disk *memory = disk_of(disk);
	int fd = find(memory, from);

	if (fd < 0)
		return -ENOENT;
	memory_unlink(disk, to);
	strcpy(memory->files[fd].name, to);
	return 0;
}

static int memory_sync_names(struct disk *disk)
{
	(void)disk;
	return 0;
}

static int memory_list(struct disk *disk, disk_visit_t visit, void *data)
{
	struct memory_disk *memory = disk_of(disk);
	int i, r = 0;

	for (i = 0; !r && i < MEMORY_FILES; i++)
		if (*memory->files[i].name)
			r = visit(data, memory->files[i].name);
	return r;
}

static const struct disk_ops memory_ops = {
	.open = memory_open,
	.close = memory_close,
	.size = memory_size,
	.read = memory_read,
	.write = memory_write,
	.sync = memory_sync,
	.rename = memory_rename,
	.unlink = memory_unlink,
	.sync_names = memory_sync_names,
	.list = memory_list,
};

void memory_disk_init(struct memory_disk *disk)
{
	*disk = (struct memory_disk) {
		.disk = { .ops = &memory_ops, .align = JOURNAL_UNIT },
	};
}

void memory_disk_free(struct memory_disk *disk)
{
	int i;

	for (i = 0; i < MEMORY_FILES; i++)
		free(disk->files[i].data);
}
