/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading the blocks of one file, a checkpoint or a segment, in order. */
#ifndef DAEMON_JOURNAL_READER_H
#define DAEMON_JOURNAL_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/disk.h"
#include "daemon/journal/format.h"

/* Bytes of a read: the processor's cache has them until they are used. */
#define READER_WINDOW	(1U << 20)

/* Memory for a window of a file; the greatest block fits. */
#define READER_MEMORY	(JOURNAL_BLOCK_MAX + READER_WINDOW)

/**
 * struct reader - an open file
 * @memory: READER_MEMORY bytes, the caller's: [@base, @base + @len) of the file
 * @size: of the file
 * @offset: of the next block
 */
struct reader {
	struct disk *disk;
	struct journal_file file;
	int fd;
	char *memory;
	uint64_t base;
	uint64_t len;
	uint64_t size;
	uint64_t offset;
};

/* Opens a file. Returns 0 or -errno. */
int reader_open(struct reader *reader, struct disk *disk,
		const struct journal_file *file, char *memory);
void reader_close(struct reader *reader);

/* Reads the block at @offset, which stays until the next call, and moves behind
 * it. Returns 1; 0: there is no good block; or -errno: -EPROTONOSUPPORT (at the
 * file's beginning only).
 */
int reader_next(struct reader *reader, const struct journal_block **blockp);

/* Looks for a good block from @offset on, at each JOURNAL_UNIT. */
int reader_search(struct reader *reader, const struct journal_block **blockp);

#endif /* DAEMON_JOURNAL_READER_H */
