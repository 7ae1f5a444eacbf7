/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stock of segments: those that a recovery would read, and those that it would not,
 * which are used again.
 */
#ifndef DAEMON_JOURNAL_STOCK_H
#define DAEMON_JOURNAL_STOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/disk.h"
#include "daemon/journal/runner.h"
#include "daemon/util/counter.h"

struct stock_segment {
	uint64_t number;
	uint64_t size;
};

/**
 * struct stock_list - some of them
 * @all: @nr of them; memory for @max
 */
struct stock_list {
	struct stock_segment *all;
	uint32_t nr;
	uint32_t max;
};

/**
 * struct stock - the segments of a journal
 * @disk: where they are (const); likewise @thread, of their names
 * @size_min: a smaller one is not used again (const)
 * @size: counts the bytes of all files (const)
 * @old: those since the last checkpoint, with the one in use
 * @spare: to be used again; @spare_bytes in all, up to @spare_bytes_max
 * @trimming: @trim removes @trimmed
 */
struct stock {
	struct disk *disk;
	uint16_t thread;
	uint64_t size_min;
	counter_t *size;
	struct stock_list old;
	struct stock_list spare;
	uint64_t spare_bytes;
	uint64_t spare_bytes_max;
	struct journal_job trim;
	struct stock_segment trimmed;
	bool trimming;
};

/* Sets an empty one's constants. */
void stock_init(struct stock *stock, struct disk *disk, uint16_t thread,
		uint64_t size_min, counter_t *size);
void stock_deinit(struct stock *stock);

/* Adds a segment that is needed, or one that is not: 0 or -ENOMEM. Its file stays until
 * the next start then, and so does one of a size that cannot be used.
 */
int stock_push_old(struct stock *stock, uint64_t number, uint64_t size);
int stock_push_spare(struct stock *stock, uint64_t number, uint64_t size);

/* Takes a spare one; there must be some. */
struct stock_segment stock_pop_spare(struct stock *stock);

/* Makes the old ones before @number spare, and keeps at most @keep bytes of all spare ones
 * from now on. Returns whether there were any.
 */
bool stock_release(struct stock *stock, uint64_t number, uint64_t keep);

/* Begins to remove a spare segment that is one too many. */
void stock_trim(struct stock *stock, struct journal_runner *runner);

#endif /* DAEMON_JOURNAL_STOCK_H */
