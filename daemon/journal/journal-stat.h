/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters of a journal, which other threads read. */
#ifndef DAEMON_JOURNAL_STAT_H
#define DAEMON_JOURNAL_STAT_H

#include "daemon/util/counter.h"
#include "daemon/util/histogram.h"

/**
 * struct journal_stat - counters of a thread's journal, since the start
 * @records: written
 * @commits: blocks written
 * @bytes: written: blocks, checkpoints, and zeros of new segments
 * @checkpoints: complete ones
 * @failures: writes or flushes that ended a file
 * @size: bytes of all files now
 * @waiting: records that wait for the disk now
 * @has_failed: 1 = it takes no records now
 * @commit_ns: commits, by their time
 */
struct journal_stat {
	counter_t records;
	counter_t commits;
	counter_t bytes;
	counter_t checkpoints;
	counter_t failures;
	counter_t size;
	counter_t waiting;
	counter_t has_failed;
	struct histogram commit_ns;
};

#endif /* DAEMON_JOURNAL_STAT_H */
