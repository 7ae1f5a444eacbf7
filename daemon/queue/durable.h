/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Durable queues: the thread's journal and its queues. What they answer is
 * logged, their replies wait for it, and after a start they are made anew.
 *
 * With the kernel engine the module's queue is the working set. A queue that the
 * service manager kept is ahead of the journal; it is not filled again, and a
 * checkpoint begins at once. After a reboot it is made anew.
 */
#ifndef DAEMON_DURABLE_H
#define DAEMON_DURABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/expiry.h>

#include "daemon/journal/checkpoint.h"
#include "daemon/journal/directory.h"
#include "daemon/journal/helper.h"
#include "daemon/journal/journal.h"
#include "daemon/queue/pace.h"
#include "daemon/queue/rows.h"
#include "daemon/util/list.h"

struct buffer;
struct context;
struct queue;

/**
 * struct durable - a thread's durable queues
 * @next_number: of the next queue in the journal: that of no other, ever
 * @nr: durable queues
 * @dropped: entries of the directory whose queues' ends are not durable
 * @advanced: more replies may be sent; likewise @failed, with @error
 * @is_failing: it failed, and is not mended
 * @is_ahead: the module kept a queue that may have more than the journal: nothing is
 *	answered until a checkpoint stands
 * @is_stopping: the daemon stops
 * @wants_checkpoint: as soon as possible, but not before @retry_ns; @retry_after_ns:
 *	how long the next failure is waited after
 * @wants_clock: expirations were sent, or the last CLOCK is old
 * @recounted_ns: when the timers were last counted because there was no room
 * @rows: of the last checkpoint, or timers at the start
 * @scan: how far the one in progress is
 * @pace: how fast it goes on
 * @tick: wakes the loop, while @ticking, at @tick_ns; 0: it is being canceled
 *
 * @retry_ns, @recounted_ns and @tick_ns are on CLOCK_MONOTONIC.
 */
struct durable {
	struct context *context;
	struct helper helper;
	struct journal journal;
	struct checkpoint checkpoint;
	uint64_t next_number;
	uint64_t nr;
	struct list dropped;
	bool advanced;
	bool failed;
	bool is_failing;
	bool is_ahead;
	bool is_stopping;
	int error;
	bool wants_checkpoint;
	bool wants_clock;
	uint64_t recounted_ns;
	uint64_t rows;
	uint64_t retry_ns;
	uint64_t retry_after_ns;
	struct rows scan;
	struct pace pace;
	struct loop_op tick;
	bool ticking;
	uint64_t tick_ns;
	struct __kernel_timespec tick_time;
};

/* Opens the directory of @path for all threads. Returns 0 or -errno, after a line
 * in the log.
 */
int durable_open(struct journal_directory *directory, const char *path);

/* Checks that the journal has no queues of threads from @nr on, and is no part of an
 * import. Returns 0 or -errno, after a line in the log.
 */
int durable_check_threads(struct journal_directory *directory, uint32_t nr);

/* Reads the thread's journal and makes its queues. Returns 0 or -errno, after a
 * line in the log.
 */
int durable_init(struct durable *durable, struct context *context);

/* At the daemon's end: makes durable what has gathered, with the time. Returns
 * whether it has to be called again after another turn.
 */
bool durable_is_stopping(struct durable *durable);
void durable_deinit(struct durable *durable);

/* Returns whether a queue can be made durable: 0; -EOPNOTSUPP: there is no
 * journal; -EAGAIN: not in this turn, and not if durable_has_room(); -EIO, -ENOSPC,
 * ...: it takes none now.
 */
int durable_may_make(const struct context *context);

/* Makes the queue durable: its creation is logged. It may be made. */
void durable_make(struct queue *queue);

/* Returns whether a client may attach to the durable queue: 0, or the error, if its
 * creation is not durable and waits for the journal to be mended.
 */
int durable_may_attach(const struct queue *queue);

/* Notes the queue's new owner. What cannot be logged now is in the next checkpoint. */
void durable_give(struct queue *queue);

/* Returns whether the queue's end can be logged: 0, or the same errors. */
int durable_may_drop(const struct queue *queue);

/* Ends the queue in the journal. It may be dropped. */
void durable_drop(struct queue *queue);

/* Returns how many of the first @count requests for a durable queue may be carried
 * out now. 0: with *@errorp 0 none until something completes, else the first
 * @refusedp are to be refused with it.
 */
uint32_t durable_admit(struct queue *queue, const struct expiry_record *records,
		       uint32_t count, uint32_t *refusedp, int *errorp);

/* Returns whether there is room for a HELLO that makes a queue, and for a DROP that makes
 * it anew.
 */
bool durable_has_room(const struct durable *durable);

/* Returns whether there is, and durable_admit() may take requests that it could not, or
 * refuse them.
 */
bool durable_goes_on(const struct durable *durable);

/* Logs the replies to @count requests. */
void durable_log(struct queue *queue, const struct expiry_record *records,
		 uint32_t count);

/* Marks expirations of a durable queue that were due before the start. */
void durable_mark(const struct queue *queue, struct expiry_record *records,
		  uint32_t count);

/* Lets a buffer for a durable queue's client wait for what is logged so far: it may
 * show that. Expirations do not wait, nor does any buffer while the journal fails:
 * replies and rows that are not durable get its error. @queue: the client's, or NULL
 */
void durable_hold(const struct context *context, const struct queue *queue,
		  struct buffer *buffer);

/* Answers with @error what a buffer of replies promises, but for a HELLO, or the SCAN
 * whose rows it has. Other buffers promise nothing, and stay as they are.
 */
void durable_refuse(const struct context *context, const struct queue *queue,
		    struct buffer *buffer, int error);

/* Returns the block up to which replies may be sent. */
uint64_t durable_acked(const struct context *context);

/* Begins commits and the steps of a checkpoint: at the end of a turn. @awaited: clients
 * wait until durable_goes_on(). Returns true if it needs another turn at once.
 */
bool durable_turn(struct durable *durable, bool awaited);

#endif /* DAEMON_DURABLE_H */
