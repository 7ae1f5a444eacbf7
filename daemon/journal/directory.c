// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The real disk. Every file is private to the daemon's user: it is refused when
 * it is a symbolic link, another user's, open to others, or has a second name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/journal/directory.h"
#include "daemon/util/util.h"

#define FILE_MODE	0600

static struct journal_directory *directory_of(struct disk *disk)
{
	return container_of(disk, struct journal_directory, disk);
}

static int check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 077 || st.st_nlink != 1)
		return -EPERM;
	return 0;
}

static int real_open(struct disk *disk, const char *name, enum disk_how how)
{
	struct journal_directory *directory = directory_of(disk);
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd, r;

	if (how == DISK_MAKE) {
		if (unlinkat(directory->fd, name, 0) < 0 && errno != ENOENT)
			return -errno;
		flags |= O_CREAT | O_EXCL;
	}
	flags |= how == DISK_READ ? O_RDONLY : O_RDWR;
	if (how != DISK_READ && directory->disk.direct)
		flags |= O_DIRECT;
	fd = openat(directory->fd, name, flags, FILE_MODE);
	if (fd < 0)
		return -errno;
	r = check_file(fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

static void real_close(struct disk *disk, int fd)
{
	(void)disk;
	close(fd);
}

static int64_t real_size(struct disk *disk, int fd)
{
	struct stat st;

	(void)disk;
	return fstat(fd, &st) < 0 ? -errno : st.st_size;
}

static ssize_t real_read(struct disk *disk, int fd, void *data, size_t len,
			 uint64_t offset)
{
	size_t done = 0;
	ssize_t n;

	(void)disk;
	while (done < len) {
		n = pread(fd, (char *)data + done, len - done, offset + done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += n;
	}
	return done;
}

static int real_write(struct disk *disk, int fd, const void *data, size_t len,
		      uint64_t offset)
{
	size_t done = 0;
	ssize_t n;

	(void)disk;
	while (done < len) {
		n = pwrite(fd, (const char *)data + done, len - done,
			   offset + done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += n;
	}
	return 0;
}

static int real_sync(struct disk *disk, int fd)
{
	(void)disk;
	return fdatasync(fd) < 0 ? -errno : 0;
}

static int real_rename(struct disk *disk, const char *from, const char *to)
{
	int fd = directory_of(disk)->fd;

	return renameat(fd, from, fd, to) < 0 ? -errno : 0;
}

static int real_unlink(struct disk *disk, const char *name)
{
	return unlinkat(directory_of(disk)->fd, name, 0) < 0 ? -errno : 0;
}

static int real_sync_names(struct disk *disk)
{
	return fsync(directory_of(disk)->fd) < 0 ? -errno : 0;
}

static int real_list(struct disk *disk, disk_visit_t visit, void *data)
{
	int fd = openat(directory_of(disk)->fd, ".",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (!r) {
		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			r = -errno;
			break;
		}
		r = visit(data, entry->d_name);
	}
	closedir(dir);
	return r;
}

static const struct disk_ops real_ops = {
	.open = real_open,
	.close = real_close,
	.size = real_size,
	.read = real_read,
	.write = real_write,
	.sync = real_sync,
	.rename = real_rename,
	.unlink = real_unlink,
	.sync_names = real_sync_names,
	.list = real_list,
};

/* Sets the unit of direct writes to what the file system asks for. */
static void set_align(struct journal_directory *directory, int fd)
{
#ifdef STATX_DIOALIGN
	struct statx stx;
	uint32_t align;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) < 0 ||
	    !(stx.stx_mask & STATX_DIOALIGN))
		return;
	align = stx.stx_dio_offset_align;
	if (!align || align > DISK_ALIGN_MAX || align & (align - 1))
		directory->disk.direct = false;
	else
		directory->disk.align = align < 512 ? 512 : align;
#else
	(void)directory;
	(void)fd;
#endif
}

/* Finds out whether files can be written without the page cache, by a file
 * without a name.
 */
static void probe_direct(struct journal_directory *directory)
{
	int fd = openat(directory->fd, ".",
			O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, FILE_MODE);

	directory->disk.align = DISK_ALIGN_MAX;
	directory->disk.direct = fd >= 0;
	if (fd < 0)
		return;
	set_align(directory, fd);
	close(fd);
}

static int check_directory(struct journal_directory *directory)
{
	struct stat st;

	directory->why = "it cannot be opened";
	if (fstat(directory->fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid()) {
		directory->why = "it belongs to another user";
		return -EPERM;
	}
	if (st.st_mode & 022) {
		directory->why = "others may write to it";
		return -EPERM;
	}
	if (flock(directory->fd, LOCK_EX | LOCK_NB) < 0) {
		directory->why = "another process uses it";
		return -errno;
	}
	return 0;
}

int journal_directory_open(struct journal_directory *directory,
			   const char *path)
{
	int r;

	*directory = (struct journal_directory) {
		.disk.ops = &real_ops,
		.why = "it cannot be opened",
	};
	directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
				   O_CLOEXEC);
	if (directory->fd < 0)
		return -errno;
	r = check_directory(directory);
	if (r < 0) {
		journal_directory_close(directory);
		return r;
	}
	probe_direct(directory);
	return 0;
}

void journal_directory_close(struct journal_directory *directory)
{
	if (directory->fd >= 0)
		close(directory->fd);
	directory->fd = -1;
}
