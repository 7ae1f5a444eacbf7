/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Engines: where queues are. The kernel engine has them in /dev/expiry
 * (kernel.c), the embedded one runs the same core in this process
 * (embedded.c). The rest of the daemon uses this table alone.
 *
 * Each thread has an engine of its own. A call that may wait has a struct
 * engine_io, and goes through the loop's ring with the turn's submission. An
 * engine that need not wait answers at once.
 */
#ifndef DAEMON_ENGINE_H
#define DAEMON_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <expiry/wire.h>
#include <linux/expiry.h>

#include "daemon/loop/loop.h"

struct budget;

/**
 * struct engine - an open engine; embedded in the engine's own
 * @ops: its functions
 * @loop: its time and its ring
 * @submit_pending: a request is pending that most likely completes when
 *	submitted; the daemon clears it
 */
struct engine {
	const struct engine_ops *ops;
	struct loop *loop;
	bool submit_pending;
};

/**
 * struct engine_queue - a queue; embedded in the engine's own
 * @engine: the queue's engine
 * @owner: the daemon's pointer
 * @due: the daemon's; called once after wait()
 * @taken_ns: since when the consumer takes due timers; the daemon's, and of an engine
 *	that sees a step of the clock before it
 * @timers: number of timers; never too low
 *
 * @due should only record the event: collect() may have expirations then.
 * @taken_ns is on the queue's clock. @timers is exact after recount().
 */
struct engine_queue {
	struct engine *engine;
	void *owner;
	void (*due)(struct engine_queue *queue);
	uint64_t taken_ns;
	uint64_t timers;
};

/**
 * struct engine_io - records in transit through an engine
 * @records: read and written until @done is called
 * @count: number of records
 * @queue: their queue
 * @late_ns: out, of collect(): the most lateness of them
 * @done: called with the result after -EINPROGRESS
 * @op: the engine's
 * @progress: of a failed submit() or submit_now(): records that have their statuses
 *
 * @late_ns leaves out timers held until @taken_ns, and timers armed with a
 * passed deadline. @done should only record the event. After success @progress
 * is the engine's.
 */
struct engine_io {
	struct expiry_record *records;
	uint32_t count;
	uint32_t progress;
	uint64_t late_ns;
	struct engine_queue *queue;
	void (*done)(struct engine_io *io, int result);
	struct loop_op op;
};

/**
 * struct engine_ops - functions of an engine
 * @name: "kernel" or "embedded"
 * @kind: EXPIRY_ENGINE_*
 *
 * Functions return 0, a count, or -errno.
 *
 * @open: opens an engine. @device: path of the device (kernel); @memory: most
 *	memory for timers, shared with other threads' engines (embedded).
 * @close: closes it; NULL is allowed; no queue may be left.
 * @turn: called once a turn after all work is done, before the submission.
 *	Returns true if it needs another turn at once. NULL: nothing to do.
 *
 * @queue_new: makes a queue with the heap layout @layout, EXPIRY_LAYOUT_*; 0 = the
 *	engine's own.
 *	-EINVAL, -ENOMEM, -EMFILE, ... Sets @config->limit to the one in force.
 * @queue_adopt: makes a queue of @fd, a queue of this engine whose maker has
 *	ended, and describes it in @stat. Takes @fd unless it fails.
 *	-ENOTTY, -ENODEV: @fd is no such queue. NULL: queues end with their
 *	maker.
 * @queue_fd: the descriptor by which a queue outlives the daemon. NULL: no
 *	queue does.
 * @queue_free: removes a queue with its timers, bounded work; NULL is allowed.
 *	No io may be in transit.
 * @submit: processes all records of @io in place, each gets its status. Returns
 *	0, -EINPROGRESS (@io->done comes later) or, where the whole queue is
 *	unusable, another error; see @io->progress, 0 before the call.
 * @submit_now: the same without the ring; may block. @io->done is not called.
 * @reserve: prepares an empty queue for @timers, which come by submit_now(); 0: there
 *	are no more. A failure changes nothing. NULL: nothing to do.
 * @collect: returns up to @io->count due expirations, in order: their number,
 *	0 = none are available now, -EINPROGRESS, or an error.
 * @stop: ends a collect() in progress soon; its done() still comes.
 *	NULL: there never is one.
 * @wait: calls @queue->due once when a timer is due. Returns 0, or 1 if one is
 *	due now (and @due will not be called).
 * @unwait: cancels @wait.
 * @rewind: makes unacknowledged deliveries due again, marked. Bounded work:
 *	1 = call again, 0 = done.
 * @scan: as EXPIRY_IOC_SCAN; returns the number of records. May block.
 * @stat: as EXPIRY_IOC_STAT.
 * @recount: makes @queue->timers exact.
 */
struct engine_ops {
	const char *name;
	uint32_t kind;

	int (*open)(struct engine **enginep, struct loop *loop,
		    const char *device, struct budget *memory);
	void (*close)(struct engine *engine);
	bool (*turn)(struct engine *engine);

	int (*queue_new)(struct engine *engine, struct expiry_config *config,
			 uint32_t layout, struct engine_queue **queuep);
	int (*queue_adopt)(struct engine *engine, int fd,
			   struct expiry_stat *stat,
			   struct engine_queue **queuep);
	int (*queue_fd)(struct engine_queue *queue);
	void (*queue_free)(struct engine_queue *queue);

	int (*submit)(struct engine_queue *queue, struct engine_io *io);
	int (*submit_now)(struct engine_queue *queue, struct engine_io *io);
	int (*reserve)(struct engine_queue *queue, uint64_t timers);
	int (*collect)(struct engine_queue *queue, struct engine_io *io);
	void (*stop)(struct engine_queue *queue, struct engine_io *io);
	int (*wait)(struct engine_queue *queue);
	void (*unwait)(struct engine_queue *queue);
	int (*rewind)(struct engine_queue *queue);
	int (*scan)(struct engine_queue *queue, struct expiry_record *records,
		    uint32_t count, uint64_t *cursor);
	int (*stat)(struct engine_queue *queue, struct expiry_stat *stat);
	int (*recount)(struct engine_queue *queue);
};

extern const struct engine_ops engine_kernel;
extern const struct engine_ops engine_embedded;

#endif /* DAEMON_ENGINE_H */
