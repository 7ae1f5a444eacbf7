/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Import: a directory of journals is made of lines, without a daemon.
 *
 * The queues of each thread become a checkpoint. The file JOURNAL_UNFINISHED is there
 * before all others, and until the last checkpoint is valid. Meanwhile no daemon
 * starts from a part, and another import begins anew.
 */
#ifndef TOOLS_JOURNAL_IMPORT_H
#define TOOLS_JOURNAL_IMPORT_H

#include "daemon/journal/disk.h"
#include "tools/journal/line.h"

struct import_stream;

/**
 * struct import - an import in progress
 * @disk: has no journal yet
 * @streams: by thread; NULL = it has no line yet
 * @stream: of the last line about a journal
 * @queues: a tree by name
 * @numbers: likewise by stream and number
 * @segment_min: as in struct journal_config; likewise @block_max
 * @nr_queues: so far; likewise @nr_timers
 */
struct import {
	struct disk *disk;
	struct import_stream *streams[JOURNAL_THREADS];
	struct import_stream *stream;
	void *queues;
	void *numbers;
	uint64_t segment_min;
	uint32_t block_max;
	uint64_t nr_queues;
	uint64_t nr_timers;
};

/* Removes all files of journals, unfinished ones, too. Returns 0 or -errno. */
int import_remove(struct disk *disk);

/* Begins an import. Returns 0 or -errno; import_deinit() follows in both cases. */
int import_init(struct import *import, struct disk *disk);

/* Adds a line. Returns 0 or -errno: -EINVAL: it does not fit, for @why, which is
 * NULL for other errors; or what the disk returned.
 */
int import_add(struct import *import, const struct line *line,
	       const char **why);

/* Makes it durable and valid. Returns 0 or -errno. */
int import_finish(struct import *import);

/* Frees it. @keep: its files stay; else they are removed. */
void import_deinit(struct import *import, bool keep);

#endif /* TOOLS_JOURNAL_IMPORT_H */
