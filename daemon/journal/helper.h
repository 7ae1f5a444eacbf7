/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's runner: a thread for jobs, which wakes the loop by an eventfd. On
 * io_uring a commit is a write that flushes, or a write with a linked fdatasync, in the
 * loop's ring (commit-way.h); on epoll a thread carries it out, so that the loop never
 * waits for the disk. With an interval between flushes there is a thread for these: what
 * is answered must not wait for longer because a file is made.
 */
#ifndef DAEMON_JOURNAL_HELPER_H
#define DAEMON_JOURNAL_HELPER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/journal/commit-way.h"
#include "daemon/journal/runner.h"
#include "daemon/loop/loop.h"

struct helper;

/**
 * struct helper_thread - a thread and its jobs
 * @todo: jobs to run, in their order; under the helper's lock
 * @stop: end once all are run; likewise
 */
struct helper_thread {
	struct helper *helper;
	pthread_t thread;
	pthread_cond_t work;
	struct journal_job *todo;
	bool is_running;
	bool stop;
};

/**
 * struct helper - the runner of one thread's journal
 * @lock: protects jobs
 * @done: jobs that were run
 * @fd: the eventfd; -1 = none
 * @woken: the read of @count from it
 * @commit: in progress in the ring since @begun_ns: @written completes it, or @synced
 * @is_linked: that commit's way, if it flushes
 * @must_wait: the disk has refused a write that must not wait
 */
struct helper {
	struct journal_runner runner;
	struct loop *loop;
	pthread_mutex_t lock;
	struct helper_thread background;
	struct helper_thread commits;
	struct helper_thread flushes;
	struct journal_job *done;
	int fd;
	struct loop_op woken;
	uint64_t count;
	struct journal_write *commit;
	struct loop_op written;
	struct loop_op synced;
	struct commit_way way;
	uint64_t begun_ns;
	bool is_linked;
	bool must_wait;
};

/* Starts the threads. @flushes: the journal has an interval. Returns 0 or -errno. */
int helper_init(struct helper *helper, struct loop *loop, bool flushes);

/* Ends the threads after their jobs, whose @done is not called. */
void helper_deinit(struct helper *helper);

#endif /* DAEMON_JOURNAL_HELPER_H */
