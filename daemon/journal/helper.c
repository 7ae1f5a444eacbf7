// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/journal/helper.h"
#include "daemon/util/util.h"
#include "expiry/wire.h"

static struct helper *helper_of(struct journal_runner *runner)
{
	return container_of(runner, struct helper, runner);
}

static void append(struct journal_job **listp, struct journal_job *job)
{
	while (*listp)
		listp = &(*listp)->next;
	job->next = NULL;
	*listp = job;
}

/* ------------------------------------------------------------------ threads */

static void wake_loop(struct helper *helper)
{
	static const uint64_t one = 1;

	while (write(helper->fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void *thread_main(void *data)
{
	struct helper_thread *thread = data;
	struct helper *helper = thread->helper;
	struct journal_job *job;

	pthread_mutex_lock(&helper->lock);
	for (;;) {
		job = thread->todo;
		if (!job && thread->stop)
			break;
		if (!job) {
			pthread_cond_wait(&thread->work, &helper->lock);
			continue;
		}
		thread->todo = job->next;
		pthread_mutex_unlock(&helper->lock);
		job->run(job);
		pthread_mutex_lock(&helper->lock);
		append(&helper->done, job);
		wake_loop(helper);
	}
	pthread_mutex_unlock(&helper->lock);
	return NULL;
}

static int thread_start(struct helper *helper, struct helper_thread *thread,
			const char *name)
{
	sigset_t all, before;
	int r;

	thread->helper = helper;
	pthread_cond_init(&thread->work, NULL);
	/* Only the first thread of the daemon takes signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&thread->thread, NULL, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	thread->is_running = !r;
	if (!r)
		pthread_setname_np(thread->thread, name);
	return r;
}

static void thread_end(struct helper_thread *thread)
{
	if (!thread->is_running)
		return;
	pthread_mutex_lock(&thread->helper->lock);
	thread->stop = true;
	pthread_cond_signal(&thread->work);
	pthread_mutex_unlock(&thread->helper->lock);
	pthread_join(thread->thread, NULL);
	pthread_cond_destroy(&thread->work);
	thread->is_running = false;
}

static void thread_add(struct helper_thread *thread, struct journal_job *job)
{
	pthread_mutex_lock(&thread->helper->lock);
	append(&thread->todo, job);
	pthread_cond_signal(&thread->work);
	pthread_mutex_unlock(&thread->helper->lock);
}

/* --------------------------------------------------------------------- loop */

static void wait_done(struct helper *helper)
{
	io_uring_prep_read(loop_sqe(helper->loop, &helper->woken), helper->fd,
			   &helper->count, sizeof(helper->count), 0);
}

static void helper_woken(struct loop_op *op, int result, uint32_t flags)
{
	struct helper *helper = container_of(op, struct helper, woken);
	struct journal_job *job, *next;

	(void)flags;
	if (result == -ECANCELED)
		return;
	pthread_mutex_lock(&helper->lock);
	job = helper->done;
	helper->done = NULL;
	pthread_mutex_unlock(&helper->lock);
	for (; job; job = next) {
		next = job->next;
		job->done(job);
	}
	wait_done(helper);
}

static void helper_start(struct journal_runner *runner,
			 struct journal_job *job)
{
	thread_add(&helper_of(runner)->background, job);
}

static void thread_commit(struct journal_runner *runner,
			  struct journal_write *write)
{
	thread_add(&helper_of(runner)->commits, &write->job);
}

static void thread_flush(struct journal_runner *runner,
			 struct journal_write *write)
{
	thread_add(&helper_of(runner)->flushes, &write->job);
}

/* Returns whether one write can flush without a thread: one through the page cache may
 * wait for the disk within the submission.
 */
static bool has_ways(const struct journal_write *write)
{
	return write->sync && write->disk->direct;
}

static void commit_done(struct helper *helper, int result)
{
	struct journal_write *write = helper->commit;

	helper->commit = NULL;
	if (!result && has_ways(write))
		commit_way_took(&helper->way,
				loop_now_exactly(CLOCK_MONOTONIC) -
					helper->begun_ns);
	write->result = result;
	write->job.done(&write->job);
}

/* Sends one write, or a write and a sync in one submission: the second one waits in the
 * kernel. Either of these completes, not both: the write posts no CQE unless it fails or
 * is short, and then the sync posts none. So the loop does not wake up between them.
 */
static void send_commit(struct helper *helper)
{
	struct journal_write *write = helper->commit;
	struct io_uring_sqe *sqe;

	loop_reserve(helper->loop, 2);
	sqe = loop_sqe(helper->loop, &helper->written);
	io_uring_prep_write(sqe, write->fd, write->data, write->len,
			    write->offset);
	if (helper->must_wait)
		sqe->flags |= IOSQE_ASYNC;
	if (!write->sync)
		return;
	if (!helper->is_linked) {
		sqe->rw_flags = RWF_DSYNC;
		return;
	}
	sqe->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
	sqe = loop_sqe(helper->loop, &helper->synced);
	io_uring_prep_fsync(sqe, write->fd, IORING_FSYNC_DATASYNC);
}

/* The kernel tries a write without waiting first, which some devices refuse, as DRBD on
 * Linux 6.1. Nothing is wrong with the disk then. That write and all later ones go to a
 * thread of the kernel's, which may wait.
 */
static void commit_written(struct loop_op *op, int result, uint32_t flags)
{
	struct helper *helper = container_of(op, struct helper, written);

	(void)flags;
	if (result == -EAGAIN && !helper->must_wait) {
		helper->must_wait = true;
		send_commit(helper);
		return;
	}
	if (result >= 0)
		result = (uint32_t)result == helper->commit->len ? 0 : -EIO;
	commit_done(helper, result);
}

static void commit_synced(struct loop_op *op, int result, uint32_t flags)
{
	struct helper *helper = container_of(op, struct helper, synced);

	(void)flags;
	commit_done(helper, result < 0 ? result : 0);
}

static void ring_commit(struct journal_runner *runner,
			struct journal_write *write)
{
	struct helper *helper = helper_of(runner);

	assert(!helper->commit && write->len);
	helper->commit = write;
	helper->is_linked = true;
	if (has_ways(write)) {
		helper->begun_ns = loop_now_exactly(CLOCK_MONOTONIC);
		helper->is_linked = commit_way_is_linked(&helper->way);
	}
	send_commit(helper);
}

/* --------------------------------------------------------------- beginning */

int helper_init(struct helper *helper, struct loop *loop, bool flushes)
{
	bool ring = loop->ops->kind == EXPIRY_LOOP_IO_URING;
	int r = 0;

	*helper = (struct helper) {
		.runner.start = helper_start,
		.runner.commit = ring ? ring_commit : thread_commit,
		.runner.flush = flushes ? thread_flush : NULL,
		.loop = loop,
		.woken.done = helper_woken,
		.written.done = commit_written,
		.synced.done = commit_synced,
	};
	pthread_mutex_init(&helper->lock, NULL);
	helper->fd = eventfd(0, EFD_CLOEXEC);
	if (helper->fd < 0)
		r = -errno;
	if (!r)
		r = thread_start(helper, &helper->background, "expiryd-journal");
	if (!r && !ring)
		r = thread_start(helper, &helper->commits, "expiryd-commit");
	if (!r && flushes)
		r = thread_start(helper, &helper->flushes, "expiryd-flush");
	if (r < 0)
		helper_deinit(helper);
	else
		wait_done(helper);
	return r;
}

void helper_deinit(struct helper *helper)
{
	thread_end(&helper->background);
	thread_end(&helper->commits);
	thread_end(&helper->flushes);
	if (helper->fd >= 0)
		close(helper->fd);
	helper->fd = -1;
	pthread_mutex_destroy(&helper->lock);
}
