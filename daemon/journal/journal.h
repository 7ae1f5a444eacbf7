/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The journal of one thread: what its durable queues have answered, in order.
 *
 * Records are gathered in memory. journal_commit() writes all of them as one
 * block and makes them durable; meanwhile others gather for the next commit.
 * Replies wait until @acked has reached the block that they are in.
 *
 * After a failed write or sync the file is never used again. The journal has
 * *failed* then, and takes no records until a checkpoint stands behind a new
 * segment; see checkpoint.h.
 */
#ifndef DAEMON_JOURNAL_H
#define DAEMON_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/disk.h"
#include "daemon/journal/format.h"
#include "daemon/journal/journal-stat.h"
#include "daemon/journal/runner.h"
#include "daemon/journal/segment.h"
#include "daemon/journal/stock.h"

struct journal;
struct recovery;

/* Bytes of the first segment and of the largest, and of a block that gathers. */
#define JOURNAL_SEGMENT_MIN	(4ULL << 20)
#define JOURNAL_SEGMENT_MAX	(64ULL << 20)
#define JOURNAL_GATHER_MAX	(2U << 20)

/* Segments made ahead: the next one, and a reserve for CANCEL and ACK. */
#define JOURNAL_AHEAD	2

/* Room of a journal without space that still takes records: for a queue's end, of at most
 * two, and for its file to make it anew.
 */
#define JOURNAL_ROOM_MIN	3U

/* Least time between two CLOCK records. */
#define JOURNAL_CLOCK_NS	100000000ULL

/* Wait before another try to make a segment, at first and at most. */
#define JOURNAL_RETRY_NS	1000000000ULL
#define JOURNAL_RETRY_MAX_NS	64000000000ULL

enum journal_state {
	JOURNAL_EMPTY,	/* no segment yet; the first records make one */
	JOURNAL_OPEN,
	JOURNAL_FAILED,	/* takes no records */
	JOURNAL_MENDING, /* a new segment waits for its checkpoint */
};

/**
 * struct journal_events - calls of the journal's owner; should only record
 * @advanced: @acked is greater
 * @failed: the records from @acked on are not durable
 * @clocks: sets the time on each clock, by loop_clock()
 */
struct journal_events {
	void (*advanced)(struct journal *journal);
	void (*failed)(struct journal *journal, int error);
	void (*clocks)(struct journal *journal, uint64_t ns[3]);
};

/**
 * struct journal_config - const settings of a journal
 * @disk: likewise @runner, @events, @stat
 * @thread: of the stream
 * @boot_id: of this start of the machine
 * @interval_ns: time between flushes; 0 = one with each commit
 * @segment_min: bytes of the first segment; each one is twice the one before, up
 *	to @segment_max
 * @block_max: most bytes of a block, at most JOURNAL_BLOCK_MAX
 * @size_max: most bytes of all files, but for a checkpoint; 0 = no limit
 */
struct journal_config {
	struct disk *disk;
	struct journal_runner *runner;
	const struct journal_events *events;
	struct journal_stat *stat;
	uint16_t thread;
	uint8_t boot_id[16];
	uint64_t interval_ns;
	uint64_t segment_min;
	uint64_t segment_max;
	uint32_t block_max;
	uint64_t size_max;
};

/**
 * struct journal_gather - records that gather for a block
 * @block: memory of block_max bytes
 * @queue: number of the queue of the last records
 */
struct journal_gather {
	struct journal_block *block;
	uint64_t queue;
};

/**
 * struct journal - a journal
 * @state: enum journal_state
 * @error: why it failed
 * @failures: how often it has failed
 * @is_full: no segment can be made: no space, or @size_max
 * @next_lsn: of the block that gathers
 * @written: every block up to here is written; likewise @durable
 * @acked: every block up to here may be answered
 * @number: the last one given to a segment
 * @made: segments made since the start
 * @is_ending: it has a CLOCK record of the daemon's end
 * @length: bytes written since the last checkpoint began
 * @current: the segment in use
 * @ahead: the ones after it, @nr_ahead of them
 * @gather: the one that gathers is number @gathering
 * @committing: @write is in progress, since @commit_ns
 * @flushing: @flush is in progress, which makes @flush_lsn durable
 * @flushed_ns: when the last one began; CLOCK_MONOTONIC, likewise @clock_ns and
 *	@retry_ns
 * @making: @maker is in progress
 * @stock: segments that have been used
 */
struct journal {
	struct journal_config config;
	enum journal_state state;
	int error;
	uint32_t failures;
	bool is_full;
	bool is_ending;
	uint64_t next_lsn;
	uint64_t written;
	uint64_t durable;
	uint64_t acked;
	uint64_t number;
	uint32_t made;
	uint64_t length;
	struct segment current;
	struct segment ahead[JOURNAL_AHEAD];
	uint32_t nr_ahead;

	struct journal_gather gather[2];
	uint32_t gathering;
	bool committing;
	uint64_t commit_ns;
	bool flushing;
	struct journal_write write;
	struct journal_write flush;
	uint64_t flush_lsn;
	uint64_t flushed_ns;
	uint64_t clock_ns;

	struct segment_maker maker;
	bool making;
	uint64_t retry_ns;
	uint64_t retry_after_ns;
	struct stock stock;
};

/* Initializes a journal behind what @recovery found. @shift: of this start, op 0
 * = none. Makes no file yet. -ENOMEM.
 */
int journal_init(struct journal *journal, const struct journal_config *config,
		 const struct recovery *recovery,
		 const struct journal_shift *shift);

/* Frees it. No job may be in progress. What is not committed is lost. */
void journal_deinit(struct journal *journal);

/* Returns whether the files exceed the limit: by the last checkpoint, since no
 * segment is made above it.
 */
static inline bool journal_is_over(const struct journal *journal)
{
	return journal->config.size_max &&
	       counter_read(&journal->config.stat->size) >
		       journal->config.size_max;
}

/* Returns whether records are taken now; 0 or the -errno to refuse them with.
 * @grows: they may add timers, and are not taken from the reserve. -EAGAIN: the journal
 * has to see first whether there is space for another segment, which journal_turn() makes
 * if that is awaited.
 */
int journal_takes(const struct journal *journal, bool grows);

/* Returns whether it has failed and is not mended. */
static inline bool journal_has_failed(const struct journal *journal)
{
	return journal->state == JOURNAL_FAILED ||
	       journal->state == JOURNAL_MENDING;
}

/* Returns how many records journal_append() takes now. */
uint32_t journal_room(const struct journal *journal);

/* Adds what must be logged of @count replies of the queue of that number: no
 * refused ones, and no QUERY. There must be room. A client made the records up: one
 * that has the op of the journal's own is refused, and left out.
 */
void journal_append(struct journal *journal, uint64_t queue,
		    const struct expiry_record *records, uint32_t count);

/* Adds a record of the daemon's about that queue: MAKE or DROP. Likewise. */
void journal_append_own(struct journal *journal, uint64_t queue,
			const void *record);

/* Adds a CLOCK record. @flags: JOURNAL_CLOCK_* */
void journal_append_clock(struct journal *journal, uint8_t flags);

/* Returns the block that a reply must wait for now: if it is above @acked. */
static inline uint64_t journal_pending(const struct journal *journal)
{
	return journal->gather[journal->gathering].block->count ?
	       journal->next_lsn : journal->next_lsn - 1;
}

/* Returns whether it has begun no segment, and what gathers needs none. */
static inline bool journal_is_unused(const struct journal *journal)
{
	return journal->state == JOURNAL_EMPTY && !journal->nr_ahead &&
	       journal_pending(journal) == journal->acked;
}

/* Begins what can begin: a commit of what has gathered, a flush that is due, a
 * segment. Called once a turn. @clock: a CLOCK record is wanted, if the last one
 * is old. @awaited: a client waits for -EAGAIN to end. Returns after how many
 * nanoseconds it must be called again at the latest, UINT64_MAX: after the next
 * completion.
 */
uint64_t journal_turn(struct journal *journal, bool clock, bool awaited);

/* Returns whether a job or a commit is in progress. */
static inline bool journal_is_busy(const struct journal *journal)
{
	return journal->committing || journal->flushing || journal->making ||
	       journal->stock.trimming;
}

/* Returns whether what has gathered has no place, and nothing is in progress that would
 * give it one.
 */
bool journal_is_stuck(const struct journal *journal);

/* For checkpoint.c: the segments before @number are not needed any more. At most
 * @keep bytes of them are kept, to be used again.
 */
void journal_release(struct journal *journal, uint64_t number, uint64_t keep);

/* For checkpoint.c: the checkpoint of a MENDING journal stands. */
void journal_mended(struct journal *journal);

#endif /* DAEMON_JOURNAL_H */
