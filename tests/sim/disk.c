// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The disk of durable queues: the daemon's calls, and where it fails. Segments and
 * blocks are small, so that a run has many of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/journal/checkpoint.h"
#include "daemon/journal/commit-way.h"
#include "daemon/journal/directory.h"
#include "daemon/journal/journal.h"
#include "tests/sim/file.h"
#include "tests/sim/lives.h"
#include "tests/sim/wrap.h"

#define SEGMENT_MIN	8192
#define SEGMENT_MAX	16384
#define BLOCK_MAX	2048
#define CHECKPOINT_MAX	1024

static struct sim_disk *the_disk;
static bool has_failed;

/* Ends an operation: the power may be gone. */
static int64_t ended(int64_t result)
{
	if (the_disk->is_dead) {
		trace("the disk loses power at operation %llu",
		      (unsigned long long)the_disk->operations);
		life_end();
	}
	if (result == -EIO || result == -ENOSPC) {
		trace("the disk fails: %s", strerror(-result));
		has_failed = true;
	}
	return result;
}

/* The loop may go on before the call does. */
static void begin(void)
{
	if (sim.phase != SIM_START)
		thread_yield(NULL);
}

/* ------------------------------------------------------------------ the table */

static int on_open(struct disk *disk, const char *name, enum disk_how how)
{
	int r;

	(void)disk;
	begin();
	r = ended(the_disk->disk.ops->open(&the_disk->disk, name, how));
	return r < 0 ? r : DISK_FD + r;
}

static void on_close(struct disk *disk, int fd)
{
	(void)disk;
	the_disk->disk.ops->close(&the_disk->disk, fd - DISK_FD);
}

static int64_t on_size(struct disk *disk, int fd)
{
	(void)disk;
	return the_disk->disk.ops->size(&the_disk->disk, fd - DISK_FD);
}

static ssize_t on_read(struct disk *disk, int fd, void *data, size_t len,
			 uint64_t offset)
{
	(void)disk;
	return the_disk->disk.ops->read(&the_disk->disk, fd - DISK_FD, data,
					len, offset);
}

static int on_write(struct disk *disk, int fd, const void *data, size_t len,
		      uint64_t offset)
{
	(void)disk;
	begin();
	return ended(the_disk->disk.ops->write(&the_disk->disk, fd - DISK_FD,
					       data, len, offset));
}

static int on_sync(struct disk *disk, int fd)
{
	(void)disk;
	begin();
	return ended(the_disk->disk.ops->sync(&the_disk->disk, fd - DISK_FD));
}

static int on_rename(struct disk *disk, const char *from, const char *to)
{
	(void)disk;
	begin();
	return ended(the_disk->disk.ops->rename(&the_disk->disk, from, to));
}

static int on_unlink(struct disk *disk, const char *name)
{
	(void)disk;
	begin();
	return ended(the_disk->disk.ops->unlink(&the_disk->disk, name));
}

static int on_sync_names(struct disk *disk)
{
	(void)disk;
	begin();
	return ended(the_disk->disk.ops->sync_names(&the_disk->disk));
}

static int on_list(struct disk *disk, disk_visit_t visit, void *data)
{
	(void)disk;
	return the_disk->disk.ops->list(&the_disk->disk, visit, data);
}

static const struct disk_ops calls = {
	.open = on_open,
	.close = on_close,
	.size = on_size,
	.read = on_read,
	.write = on_write,
	.sync = on_sync,
	.rename = on_rename,
	.unlink = on_unlink,
	.sync_names = on_sync_names,
	.list = on_list,
};

bool disk_is_direct(void)
{
	return sim.seed & 1;
}

int __wrap_journal_directory_open(struct journal_directory *directory,
				  const char *path)
{
	(void)path;
	*directory = (struct journal_directory) {
		.disk = {
			.ops = &calls,
			.align = SECTOR,
			.direct = disk_is_direct(),
		},
		.fd = DISK_FD,
	};
	return 0;
}

void __wrap_journal_directory_close(struct journal_directory *directory)
{
	directory->fd = -1;
}

/* ------------------------------------------------------------------- the ring */

/* Commits are few in a run: each takes one of both ways. */
bool __wrap_commit_way_is_linked(struct commit_way *way)
{
	(void)way;
	return rng_hits(&sim.kernel, 500);
}

int disk_write(int fd, const void *data, uint32_t len, uint64_t offset)
{
	int r;

	/* A part, which is written all the same. */
	if (sim.phase == SIM_RUN && len > SECTOR &&
	    rng_hits(&sim.kernel, sim.error)) {
		has_failed = true;
		len = SECTOR;
	}
	r = ended(the_disk->disk.ops->write(&the_disk->disk, fd - DISK_FD,
					    data, len, offset));
	return r ? r : (int)len;
}

int disk_sync(int fd)
{
	return ended(the_disk->disk.ops->sync(&the_disk->disk, fd - DISK_FD));
}

void disk_write_late(int fd, const void *data, uint32_t len, uint64_t offset)
{
	the_disk->disk.ops->write(&the_disk->disk, fd - DISK_FD, data, len,
				  offset);
}

/* -------------------------------------------------------------------- faults */

void disk_insert(struct sim_disk *disk)
{
	the_disk = disk;
	has_failed = false;
}

bool disk_has_failed(void)
{
	return has_failed;
}

void disk_step(struct rng *rng)
{
	uint64_t what = rng_below(rng, 1000);

	if (what < 2) {
		life_end();
	} else if (what < 5) {
		the_disk->crash_at = the_disk->operations +
				     rng_below(rng, 40);
	} else if (what < 8) {
		the_disk->fail_at = the_disk->operations + 1 +
				    rng_below(rng, 40);
		the_disk->fail_with = rng_hits(rng, 700) ? -EIO : -ENOSPC;
	} else if (what < 10) {
		the_disk->limit = rng_hits(rng, 500) ? 0 :
				  50 + rng_below(rng, 200);
	}
}

void disk_heal(void)
{
	the_disk->fail_at = 0;
	the_disk->limit = 0;
}

/* ----------------------------------------------------------------- the daemon's */

int __real_journal_init(struct journal *journal,
			const struct journal_config *config,
			const struct recovery *recovery,
			const struct journal_shift *shift);
int __wrap_journal_init(struct journal *journal,
			const struct journal_config *config,
			const struct recovery *recovery,
			const struct journal_shift *shift);

int __wrap_journal_init(struct journal *journal,
			const struct journal_config *config,
			const struct recovery *recovery,
			const struct journal_shift *shift)
{
	struct journal_config small = *config;

	small.segment_min = SEGMENT_MIN;
	small.segment_max = SEGMENT_MAX;
	small.block_max = BLOCK_MAX;
	return __real_journal_init(journal, &small, recovery, shift);
}

int __real_checkpoint_init(struct checkpoint *checkpoint,
			   struct journal *journal, uint32_t block_max,
			   uint64_t previous);
int __wrap_checkpoint_init(struct checkpoint *checkpoint,
			   struct journal *journal, uint32_t block_max,
			   uint64_t previous);

int __wrap_checkpoint_init(struct checkpoint *checkpoint,
			   struct journal *journal, uint32_t block_max,
			   uint64_t previous)
{
	(void)block_max;
	return __real_checkpoint_init(checkpoint, journal, CHECKPOINT_MAX,
				      previous);
}

/* The daemon opens one file by itself: the number of the machine's start. */
int __wrap_open(const char *path, int flags, ...)
{
	(void)flags;
	if (!strstr(path, "boot_id"))
		sim_fail("the daemon opens %s", path);
	return file_new(FILE_BOOT, NULL);
}

ssize_t __wrap_read(int fd, void *data, size_t len)
{
	if (fd < FILE_FIRST)
		return __real_read(fd, data, len);
	return snprintf(data, len, "%032x", sim.boots + 1);
}
