// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "daemon/journal/segment.h"
#include "daemon/util/util.h"

static struct journal_file file_of(const struct segment_maker *maker,
				   uint64_t number)
{
	return (struct journal_file) {
		.kind = JOURNAL_SEGMENT,
		.thread = maker->thread,
		.number = number,
	};
}

/* Writes zeros to the whole file: a block of it is then overwritten in place,
 * and a commit has no extent to convert.
 */
static int write_zeros(struct segment_maker *maker)
{
	const struct segment *segment = &maker->segment;
	uint64_t offset;
	int r = 0;

	for (offset = 0; !r && offset < segment->size;
	     offset += SEGMENT_ZEROS)
		r = maker->disk->ops->write(maker->disk, segment->fd,
					    maker->zeros,
					    min_u64(SEGMENT_ZEROS,
						    segment->size - offset),
					    offset);
	return r;
}

/* Writes a header. After block 0 the file counts as a segment. */
static int write_header(struct segment_maker *maker)
{
	struct journal_file file = file_of(maker, maker->segment.number);
	struct journal_block *block = maker->header;
	struct journal_segment segment = {
		.op = JOURNAL_OP_SEGMENT,
		.version = JOURNAL_VERSION,
		.thread = maker->thread,
		.align = maker->disk->align,
		.number = maker->segment.number,
	};
	uint32_t size;

	*block = (struct journal_block) { .count = 2 };
	memcpy(segment.boot_id, maker->boot_id, sizeof(segment.boot_id));
	memcpy(journal_records(block), &segment, sizeof(segment));
	memcpy(journal_records(block) + 1, &maker->clock, sizeof(maker->clock));
	if (maker->shift.op)
		memcpy(journal_records(block) + block->count++, &maker->shift,
		       sizeof(maker->shift));
	size = journal_seal(block, &file, maker->disk->align);
	maker->segment.offset += size;
	return maker->disk->ops->write(maker->disk, maker->segment.fd, block,
				       size, maker->segment.offset - size);
}

bool segment_is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT;
}

static void give_up(struct segment_maker *maker)
{
	if (maker->segment.fd >= 0)
		maker->disk->ops->close(maker->disk, maker->segment.fd);
	maker->segment.fd = -1;
}

/* Goes on with the last segment, behind its blocks. What is there was cut, and no block
 * among it could count again.
 */
static int resume(struct segment_maker *maker)
{
	const struct disk_ops *ops = maker->disk->ops;
	struct journal_file file = file_of(maker, maker->last.number);
	char name[JOURNAL_NAME];
	int r;

	journal_name(name, &file, false);
	maker->segment = maker->last;
	maker->segment.fd = ops->open(maker->disk, name, DISK_WRITE);
	if (maker->segment.fd < 0)
		return maker->segment.fd;
	r = write_header(maker);
	if (!r)
		r = ops->sync(maker->disk, maker->segment.fd);
	if (r)
		give_up(maker);
	maker->has_resumed = !r;
	return r;
}

static int make(struct segment_maker *maker)
{
	const struct disk_ops *ops = maker->disk->ops;
	struct journal_file file = file_of(maker, maker->segment.number);
	struct journal_file old = file_of(maker, maker->old);
	char name[JOURNAL_NAME], from[JOURNAL_NAME];
	int r;

	journal_name(name, &file, false);
	journal_name(from, maker->old ? &old : &file, !maker->old);
	maker->segment.fd = ops->open(maker->disk, from,
				      maker->old ? DISK_WRITE : DISK_MAKE);
	r = maker->segment.fd < 0 ? maker->segment.fd :
	    maker->old ? 0 : write_zeros(maker);
	if (segment_is_full(r) && maker->last.number) {
		give_up(maker);
		ops->unlink(maker->disk, from);
		maker->is_old_gone = maker->old;
		return resume(maker);
	}
	if (maker->segment.fd < 0)
		return r;
	/* Its old blocks end with the name, before the header is its own. */
	if (!r && maker->old)
		r = ops->rename(maker->disk, from, name);
	if (!r)
		r = write_header(maker);
	if (!r)
		r = ops->sync(maker->disk, maker->segment.fd);
	if (!r && !maker->old)
		r = ops->rename(maker->disk, from, name);
	if (!r)
		r = ops->sync_names(maker->disk);
	if (!r)
		return 0;
	give_up(maker);
	ops->unlink(maker->disk, name);
	ops->unlink(maker->disk, from);
	maker->is_old_gone = maker->old;
	return r;
}

void segment_make(struct journal_job *job)
{
	struct segment_maker *maker =
		container_of(job, struct segment_maker, job);

	maker->result = make(maker);
}

int segment_unlink(struct disk *disk, uint16_t thread, uint64_t number)
{
	struct journal_file file = {
		.kind = JOURNAL_SEGMENT,
		.thread = thread,
		.number = number,
	};
	char name[JOURNAL_NAME];

	journal_name(name, &file, false);
	return disk->ops->unlink(disk, name);
}
