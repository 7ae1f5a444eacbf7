/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runners: what carries out a journal's calls that block, beside its thread. The
 * daemon's is helper.h; the simulated disk of the tests has its own.
 */
#ifndef DAEMON_JOURNAL_RUNNER_H
#define DAEMON_JOURNAL_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/journal/disk.h"

/**
 * struct journal_job - a call that blocks; embedded in its owner
 * @run: blocks; called in any thread
 * @done: called afterwards in the journal's thread; should only record the event
 * @next: the runner's
 */
struct journal_job {
	void (*run)(struct journal_job *job);
	void (*done)(struct journal_job *job);
	struct journal_job *next;
};

/**
 * struct journal_write - a commit: a write, and perhaps a sync behind it
 * @job: its @done is called when both are complete
 * @result: 0 or -errno, then
 */
struct journal_write {
	struct journal_job job;
	struct disk *disk;
	int fd;
	bool sync;
	const void *data;
	uint32_t len;
	uint64_t offset;
	int result;
};

/* Carries out a commit by calls that block: a @job.run. */
void journal_write_run(struct journal_job *job);

/**
 * struct journal_runner - what carries jobs out
 * @start: starts @job. Jobs run in their order, one at a time.
 * @commit: starts a commit, beside jobs; one at a time
 * @flush: likewise a sync alone, beside both; NULL: the journal has no interval
 */
struct journal_runner {
	void (*start)(struct journal_runner *runner, struct journal_job *job);
	void (*commit)(struct journal_runner *runner,
		       struct journal_write *write);
	void (*flush)(struct journal_runner *runner,
		      struct journal_write *write);
};

#endif /* DAEMON_JOURNAL_RUNNER_H */
