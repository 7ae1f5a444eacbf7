/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The timers and blocks that a recovery finds on a simulated disk. */
#ifndef TESTS_JOURNAL_RECOVERED_H
#define TESTS_JOURNAL_RECOVERED_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/recovery.h"
#include "tests/journal/model.h"
#include "tests/journal/simulated-disk.h"

#define BLOCKS		1024U

/* A block of the stream. */
struct seen {
	struct journal_file file;
	uint64_t offset;
	uint64_t lsn;
};

/* @model: with deadlines on REALTIME. The journal's are on BOOTTIME. */
struct recovered {
	struct model model;
	struct seen seen[BLOCKS];
	uint32_t nr_seen;
};

/* Recovers the disk's stream. Returns what recovery_open() or recovery_replay() does. */
int recover(struct recovered *recovered, struct sim_disk *disk,
	    struct recovery *recovery);

/* Returns a text of where a recovery failed, valid until the next call. */
const char *recovered_fault(const struct recovery *recovery);

/* Returns whether recovery has to notice that @seen is damaged, or with @remove that its
 * file is lost. The last block of all may look like a torn write.
 * @start: the first block that the checkpoint does not have
 */
bool recovered_needs(const struct recovered *recovered, const struct seen *seen,
		     bool remove, uint64_t start);

#endif /* TESTS_JOURNAL_RECOVERED_H */
