/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recovery: reading a stream after a start, or for a look at it.
 *
 * recovery_open() reads all segments that count and finds where the stream ends.
 * What follows the last good block is cut if nothing shows that it was ever
 * durable: it was not answered. If something shows that, the file is damaged, and
 * the stream is refused.
 */
#ifndef DAEMON_JOURNAL_RECOVERY_H
#define DAEMON_JOURNAL_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/disk.h"
#include "daemon/journal/format.h"

/**
 * struct recovery_segment - a segment's file
 * @is_needed: it is read; else it may be used again
 * @first_lsn: of its first good block, 0 = none
 * @end: where its good blocks end
 * @has_shift: a header of it says that the machine was started anew
 * @has_more: blocks behind @end, which do not count
 */
struct recovery_segment {
	uint64_t number;
	uint64_t size;
	bool is_needed;
	uint64_t first_lsn;
	uint64_t end;
	bool has_shift;
	bool has_more;
};

/**
 * struct recovery_shifts - how deadlines were moved up to some place
 * @by_ns: by the headers behind the checkpoint's beginning
 * @last: the last record; likewise @boot_id
 * @is_last: no block came since. A header that could not be completed may be there
 *	beside the one after it, which says the same.
 */
struct recovery_shifts {
	int64_t by_ns[JOURNAL_SHIFTS];
	struct journal_shift last;
	uint8_t boot_id[16];
	bool is_last;
};

/**
 * struct recovery - a stream that was read
 * @segments: by number, @nr_segments of them
 * @checkpoint: number of the one to read, 0 = none; @checkpoint_size: its bytes
 * @start: its first record; @start.lsn is 1 without one
 * @next_lsn: behind the last good block
 * @last_number: greatest number of any file
 * @length: bytes of blocks to read behind the checkpoint
 * @shifts: of all segments
 * @has_clock: @clock is the last CLOCK record, and @boot_id that of its boot
 * @forced: recovery_open() was told to go on after damage
 * @fault: file and offset of what is wrong
 * @why: what is wrong there
 */
struct recovery {
	struct disk *disk;
	uint16_t thread;
	struct recovery_segment *segments;
	uint32_t nr_segments;
	uint32_t max_segments;
	uint64_t checkpoint;
	uint64_t checkpoint_size;
	struct journal_mark start;
	uint64_t next_lsn;
	uint64_t last_number;
	uint64_t length;
	struct recovery_shifts shifts;
	bool has_clock;
	bool forced;
	struct journal_clock clock;
	uint8_t boot_id[16];
	struct journal_file fault;
	uint64_t fault_offset;
	const char *why;
	char *memory;
};

/**
 * struct recovery_place - where a record is
 * @file: its file; likewise @offset, of its block
 * @queue: number of its queue, 0 = none
 * @shift_ns: what to add to its deadline on MONOTONIC and BOOTTIME, so that it is
 *	on the clocks of the last segment
 */
struct recovery_place {
	struct journal_file file;
	uint64_t offset;
	uint64_t lsn;
	uint64_t queue;
	int64_t shift_ns[JOURNAL_SHIFTS];
};

/* Handles a record. Returns 0 to continue. */
typedef int (*recovery_visit_t)(void *data, const struct recovery_place *place,
				const struct expiry_record *record);

/* Reads the stream of @thread. @force: what follows damage is cut, too. Returns 0
 * or -errno, with @fault, @fault_offset and @why: -EBADMSG: damaged;
 * -EPROTONOSUPPORT: of another version; or what the disk returned.
 */
int recovery_open(struct recovery *recovery, struct disk *disk,
		  uint16_t thread, bool force);

/* Returns whether a new segment may take the file's place: it has no block, and says
 * nothing that no other one does. After a loss of power its name may be back, behind
 * another header: blocks that did not count would be taken for damage.
 */
static inline bool recovery_is_free(const struct recovery_segment *segment)
{
	return !segment->is_needed ||
	       (!segment->first_lsn && !segment->has_more &&
		!segment->has_shift);
}

/* Calls @visit for each record, the checkpoint's first. Returns 0, what @visit
 * returned, or -errno as recovery_open().
 */
int recovery_replay(struct recovery *recovery, recovery_visit_t visit,
		    void *data);

void recovery_close(struct recovery *recovery);

/* Makes durable what was read, then removes what no recovery reads: unfinished
 * files, older checkpoints. Returns 0 or -errno.
 */
int recovery_clean(struct recovery *recovery);

/* Sets bit n of @streams for each thread n that has a stream. Returns 0 or -errno:
 * -EINPROGRESS: they are of an import that was not completed, and may be a part.
 */
int recovery_streams(struct disk *disk, uint64_t streams[JOURNAL_THREADS / 64]);

#endif /* DAEMON_JOURNAL_RECOVERY_H */
