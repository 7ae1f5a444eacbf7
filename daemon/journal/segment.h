/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Segments: making them ahead, zeroed, and using them again. */
#ifndef DAEMON_JOURNAL_SEGMENT_H
#define DAEMON_JOURNAL_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/disk.h"
#include "daemon/journal/format.h"
#include "daemon/journal/runner.h"

/**
 * struct segment - an open segment, ready to be written
 * @fd: its file, -1 = none
 * @number: of its name
 * @size: bytes
 * @offset: where the next block begins
 */
struct segment {
	int fd;
	uint64_t number;
	uint64_t size;
	uint64_t offset;
};

/**
 * struct segment_maker - makes one segment
 * @job: runs it
 * @disk: const
 * @thread: of the stream (const)
 * @boot_id: of this start of the machine (const)
 * @clock: when it was begun
 * @shift: for the first segment of a start; op 0 = none
 * @segment: the one to make: @number and @size; out: the rest
 * @old: number of the segment to use again, 0 = none; it has @old_size bytes
 * @is_old_gone: out: it failed, and there is no such file any more
 * @last: the one that the start found last, fd -1; number 0 = none. It is gone on
 *	with if there is no space for another one, and @has_resumed.
 * @header: memory of DISK_ALIGN_MAX bytes, aligned to as many
 * @zeros: memory of SEGMENT_ZEROS zeros, aligned likewise
 * @result: 0 or -errno
 */
struct segment_maker {
	struct journal_job job;
	struct disk *disk;
	uint16_t thread;
	uint8_t boot_id[16];
	struct journal_clock clock;
	struct journal_shift shift;
	struct segment segment;
	uint64_t old;
	uint64_t old_size;
	bool is_old_gone;
	struct segment last;
	bool has_resumed;
	void *header;
	void *zeros;
	int result;
};

#define SEGMENT_ZEROS	(256U << 10)

/* Returns whether a call failed because there is no space. */
bool segment_is_full(int error);

/* Makes the segment, and makes it and its name durable: a @job.run. Whatever
 * fails, no segment of that number counts.
 */
void segment_make(struct journal_job *job);

/* Removes a segment's name. */
int segment_unlink(struct disk *disk, uint16_t thread, uint64_t number);

#endif /* DAEMON_JOURNAL_SEGMENT_H */
