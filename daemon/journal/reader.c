// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <string.h>

#include "daemon/journal/reader.h"
#include "daemon/util/util.h"

int reader_open(struct reader *reader, struct disk *disk,
		const struct journal_file *file, char *memory)
{
	char name[JOURNAL_NAME];
	int64_t size;

	*reader = (struct reader) {
		.disk = disk,
		.file = *file,
		.memory = memory,
	};
	journal_name(name, file, false);
	reader->fd = disk->ops->open(disk, name, DISK_READ);
	if (reader->fd < 0)
		return reader->fd;
	size = disk->ops->size(disk, reader->fd);
	if (size < 0) {
		reader_close(reader);
		return size;
	}
	reader->size = size;
	return 0;
}

void reader_close(struct reader *reader)
{
	reader->disk->ops->close(reader->disk, reader->fd);
}

/* Reads so that @want bytes from @offset on are in memory, at most JOURNAL_BLOCK_MAX.
 * Returns the bytes from there on, fewer at the file's end, or -errno.
 */
static int64_t fill(struct reader *reader, uint64_t want)
{
	uint64_t end = reader->base + reader->len, kept = 0, len;
	ssize_t n;

	if (reader->offset >= reader->size)
		return 0;
	want = min_u64(want, reader->size - reader->offset);
	if (reader->offset < reader->base || reader->offset + want > end) {
		if (reader->offset >= reader->base && reader->offset < end)
			kept = end - reader->offset;
		if (kept)
			memmove(reader->memory,
				reader->memory + (reader->offset - reader->base),
				kept);
		len = want - kept > READER_WINDOW ? want - kept : READER_WINDOW;
		n = reader->disk->ops->read(reader->disk, reader->fd,
					    reader->memory + kept, len,
					    reader->offset + kept);
		if (n < 0)
			return n;
		reader->base = reader->offset;
		reader->len = kept + n;
	}
	return reader->base + reader->len - reader->offset;
}

int reader_next(struct reader *reader, const struct journal_block **blockp)
{
	uint64_t want = JOURNAL_UNIT;
	int64_t room;
	int size;

	/* Few blocks reach beyond what was read with the one before. */
	do {
		room = fill(reader, want);
		if (room <= 0)
			return room;
		*blockp = (const void *)(reader->memory +
					 (reader->offset - reader->base));
		size = journal_check(*blockp, &reader->file, room);
		want *= JOURNAL_BLOCK_MAX / JOURNAL_UNIT;
	} while (size == -EAGAIN && want == JOURNAL_BLOCK_MAX);
	if (size == -EPROTONOSUPPORT && !reader->offset)
		return size;
	if (size <= 0)
		return 0;
	reader->offset += size;
	return 1;
}

int reader_search(struct reader *reader, const struct journal_block **blockp)
{
	int r = 0;

	for (; !r && reader->offset < reader->size;
	     reader->offset += r ? 0 : JOURNAL_UNIT)
		r = reader_next(reader, blockp);
	return r;
}
