/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checkpoints: all timers of a stream, so that older segments can be used again.
 *
 * It is fuzzy: rows are taken while requests go on. Because each record of the
 * journal says all of its timer's state, a reader that applies the journal from
 * the checkpoint's start on gets the same timers. It counts only once the journal
 * is durable up to its end: it may show what is not yet.
 *
 * The owner calls checkpoint_put() in bounded steps, then checkpoint_end().
 */
#ifndef DAEMON_JOURNAL_CHECKPOINT_H
#define DAEMON_JOURNAL_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/journal.h"

/* Bytes of its blocks. */
#define CHECKPOINT_BLOCK	(256U << 10)

enum checkpoint_state {
	CHECKPOINT_NONE,
	CHECKPOINT_SCANNING,
	CHECKPOINT_ENDING,	/* all rows are put */
	CHECKPOINT_FINISHING,
};

/**
 * struct checkpoint - a stream's checkpoints, one at a time
 * @journal: const; likewise @block_max, bytes of a block
 * @done: called at its end, with 0 or -errno; should only record
 * @state: enum checkpoint_state
 * @number: of the one in progress; @previous: of the last complete one, with
 *	@previous_size
 * @fd: its file, -1 = not made yet
 * @start: its first record
 * @end_lsn: the journal must be durable up to here before it counts
 * @keep: as of checkpoint_begin()
 * @mends: the journal was MENDING when it began, after @failures
 * @rows: records put
 * @next: the next block's number
 * @offset: of that block
 * @gather: the one that gathers is number @gathering
 * @job: writes number !@gathering while @writing
 * @abandoned: -errno, 0 = it is not
 * @started_ns: CLOCK_MONOTONIC
 */
struct checkpoint {
	struct journal *journal;
	uint32_t block_max;
	void (*done)(struct checkpoint *checkpoint, int result);
	enum checkpoint_state state;
	uint64_t number;
	uint64_t previous;
	uint64_t previous_size;
	int fd;
	struct journal_mark start;
	uint64_t end_lsn;
	uint64_t rows;
	uint64_t next;
	uint64_t offset;
	uint64_t keep;
	struct journal_gather gather[2];
	uint32_t gathering;
	struct journal_job job;
	struct journal_block *block;
	bool mends;
	uint32_t failures;
	bool writing;
	int abandoned;
	int result;
	uint64_t started_ns;
};

/* Initializes it. @previous: number of the complete one, 0 = none. -ENOMEM, or the
 * disk's errno.
 */
int checkpoint_init(struct checkpoint *checkpoint, struct journal *journal,
		    uint32_t block_max, uint64_t previous);
/* Frees it; no job may be in progress. */
void checkpoint_deinit(struct checkpoint *checkpoint);

/* Begins one; the journal has a segment. @keep: bytes of segments to be kept for
 * use again.
 */
void checkpoint_begin(struct checkpoint *checkpoint, uint64_t keep);

/* Returns how many records checkpoint_put() takes now, 0 = none. */
uint32_t checkpoint_room(const struct checkpoint *checkpoint);

/* Begins a queue that has about @timers. There is room for one record. */
void checkpoint_make(struct checkpoint *checkpoint, uint64_t queue,
		     const struct journal_make *make, uint64_t timers);

/* Adds rows of a queue, as SCAN gives them, or its MAKE. */
void checkpoint_put(struct checkpoint *checkpoint, uint64_t queue,
		    const struct expiry_record *records, uint32_t count);

/* Says that all rows are put. */
void checkpoint_end(struct checkpoint *checkpoint);

/* Gives the one in progress up: its rows cannot be read. */
void checkpoint_abandon(struct checkpoint *checkpoint, int error);

/* Begins what can begin. Called once a turn, before journal_turn(). */
void checkpoint_turn(struct checkpoint *checkpoint);

/* Returns whether a job is in progress. */
static inline bool checkpoint_is_busy(const struct checkpoint *checkpoint)
{
	return checkpoint->writing;
}

#endif /* DAEMON_JOURNAL_CHECKPOINT_H */
