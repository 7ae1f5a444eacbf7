/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal's files: docs/decisions has the reasons.
 *
 * A stream is the journal of one thread: segments `journal-TT-NNNNNNNNNNNNNNNN`
 * and at most one valid checkpoint, `checkpoint-TT-NNNNNNNNNNNNNNNN`, the one
 * with the highest number. Numbers are hexadecimal, and never given twice. Both
 * kinds of file are blocks of 32-byte records, so that one reader serves both.
 *
 * Block 0 of a segment is its header: records SEGMENT, CLOCK and perhaps SHIFT. The
 * others hold what was answered, in order. A segment that a later start went on with
 * has another header there. A checkpoint begins with START, SEGMENT and CLOCK, and
 * ends with END.
 */
#ifndef DAEMON_JOURNAL_FORMAT_H
#define DAEMON_JOURNAL_FORMAT_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/disk.h"

#define JOURNAL_VERSION		1		/* up with each change after a release */
#define JOURNAL_MAGIC		(0x004a5845U | JOURNAL_VERSION << 24)
#define JOURNAL_MAGIC_MASK	0x00ffffffU	/* without the version */
#define JOURNAL_UNIT		512U		/* blocks begin at multiples */
#define JOURNAL_BLOCK_MAX	(4U << 20)
#define JOURNAL_NAME		48		/* bytes of a file's name */
#define JOURNAL_SHIFTS		2		/* MONOTONIC, BOOTTIME */
#define JOURNAL_THREADS		256		/* a name has two digits for it */
#define JOURNAL_UNFINISHED	"import"	/* there until an import is complete */

/**
 * struct journal_block - the head of a block
 * @magic: JOURNAL_MAGIC
 * @crc: CRC-32C of the file's number and kind, then of the block from @size on
 * @size: bytes of the block with head and padding, a multiple of JOURNAL_UNIT
 * @count: records behind the head
 * @lsn: number of the block in its stream, 0 = header; in a checkpoint, in it
 * @durable: every block up to this one was durable before this was written
 *
 * Because the checksum covers the file's number, the blocks of a recycled segment
 * end with its old number.
 */
struct journal_block {
	uint32_t magic;
	uint32_t crc;
	uint32_t size;
	uint32_t count;
	uint64_t lsn;
	uint64_t durable;
};

/* Records beside those of timers, which are replies: ARM, REFRESH, CANCEL, ACK and
 * CLEAR. Those and a checkpoint's rows (QUERY) are about the queue of the last
 * JOURNAL_OP_QUEUE in their block.
 */
#define JOURNAL_OP_SEGMENT	128	/* struct journal_segment */
#define JOURNAL_OP_SHIFT	129	/* struct journal_shift */
#define JOURNAL_OP_START	130	/* struct journal_mark: a checkpoint's first */
#define JOURNAL_OP_END		131	/* struct journal_mark: its last */
#define JOURNAL_OP_CLOCK	132	/* struct journal_clock */
#define JOURNAL_OP_QUEUE	133	/* id = number of the queue; before its MAKE in a
					 * checkpoint cookie = about how many rows follow
					 */
#define JOURNAL_OP_MAKE		134	/* struct journal_make: there is a queue */
#define JOURNAL_OP_DROP		135	/* the queue has ended */

/* Describes a segment. @number is that of its name. */
struct journal_segment {
	uint8_t op;
	uint8_t version;
	uint16_t thread;
	uint32_t align;
	uint64_t number;
	uint8_t boot_id[16];
};

/* Says that the machine was started anew: deadlines before this header are moved by
 * @by_ns nanoseconds: those on MONOTONIC and on BOOTTIME.
 */
struct journal_shift {
	uint8_t op;
	uint8_t reserved[7];
	int64_t by_ns[JOURNAL_SHIFTS];
	uint64_t reserved2;
};

/* Begins and ends a checkpoint. Behind it the stream is read from block @lsn on, which
 * is in segment @number or a later one. @count: at the end its records between START
 * and END, at the beginning the bytes of segment @number before it.
 */
struct journal_mark {
	uint8_t op;
	uint8_t reserved[7];
	uint64_t lsn;
	uint64_t number;
	uint64_t count;
};

#define JOURNAL_CLOCK_CLEAN	1	/* @flags: the daemon stopped then */

/* The time on each clock, by loop_clock(): REALTIME, MONOTONIC, BOOTTIME. */
struct journal_clock {
	uint8_t op;
	uint8_t flags;
	uint8_t reserved[6];
	uint64_t ns[3];
};

/* A queue, known by @name, of mode EXPIRY_MODE_*. May come again with another
 * owner.
 */
struct journal_make {
	uint8_t op;
	uint8_t mode;
	uint8_t clock_id;
	uint8_t layout;
	uint32_t uid;
	char name[24];
};

_Static_assert(sizeof(struct journal_block) == 32, "a block's head");
_Static_assert(sizeof(struct journal_segment) == 32, "one record");
_Static_assert(sizeof(struct journal_shift) == 32, "one record");
_Static_assert(sizeof(struct journal_mark) == 32, "one record");
_Static_assert(sizeof(struct journal_clock) == 32, "one record");
_Static_assert(sizeof(struct journal_make) == 32, "one record");

enum journal_kind {
	JOURNAL_SEGMENT,
	JOURNAL_CHECKPOINT,
};

/* Identifies a file of a stream. */
struct journal_file {
	enum journal_kind kind;
	uint16_t thread;
	uint64_t number;
};

/* Writes the file's name, JOURNAL_NAME bytes. @is_new: its name while it is made.
 */
void journal_name(char *name, const struct journal_file *file, bool is_new);

/* Parses a name. Returns false if it is not a complete file's. */
bool journal_parse(const char *name, struct journal_file *file);

/* Returns whether it is the name of a file that was never completed. */
bool journal_is_unfinished(const char *name);

/* Returns the records of a block. */
static inline struct expiry_record *
journal_records(struct journal_block *block)
{
	return (struct expiry_record *)(block + 1);
}

/* Returns the bytes of a block with @count records. */
static inline uint32_t journal_block_size(uint32_t count, uint32_t align)
{
	uint32_t size = sizeof(struct journal_block) +
			count * sizeof(struct expiry_record);

	return (size + align - 1) & ~(align - 1);
}

/* Returns a deadline that is moved to another start of the machine, by @by_ns. */
uint64_t journal_move(uint64_t deadline_ns, int64_t by_ns);

/* Completes a block whose @count, @lsn and @durable are set: clears its padding,
 * sets the other fields. Returns its size.
 */
uint32_t journal_seal(struct journal_block *block,
		      const struct journal_file *file, uint32_t align);

/* Checks a block with @room bytes up to the end of what was read. Returns its
 * size; 0: it is none of @file's, -EPROTONOSUPPORT: of another version, -EAGAIN:
 * @room is too small to say.
 */
int journal_check(const struct journal_block *block,
		  const struct journal_file *file, uint64_t room);

#endif /* DAEMON_JOURNAL_FORMAT_H */
