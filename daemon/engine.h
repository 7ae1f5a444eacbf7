/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Engines: where the queues are. The kernel engine has them in /dev/expiry
 * (engine-kernel.c), the embedded one runs the same core in this process
 * (engine-embedded.c). The daemon knows them by this table alone.
 *
 * Each thread has an engine of its own. What may have to wait is handed over with a
 * struct engine_io and goes through the loop's ring with everything else of
 * the turn; an engine that need not wait answers at once.
 */
#ifndef DAEMON_ENGINE_H
#define DAEMON_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <expiry/wire.h>
#include <linux/expiry.h>

#include "daemon/loop.h"

struct budget;

/**
 * struct engine - an engine that is open; each has its own around this
 * @ops: its functions
 * @loop: its time and its ring
 * @asked: what the kernel can most likely do as soon as it is submitted waits
 *	for that; the daemon's to clear
 */
struct engine {
	const struct engine_ops *ops;
	struct loop *loop;
	bool asked;
};

/**
 * struct engine_queue - a queue; each engine has its own around this
 * @engine: whose it is
 * @owner: the daemon's
 * @due: set by the daemon; called once after wait(), when collect() may have
 *	something. It should only note that.
 * @taken_ns: since when the consumer takes what is due, on the queue's clock (the
 *	daemon's)
 * @timers: how many timers it holds; at least as many as there are, and the
 *	truth after recount()
 */
struct engine_queue {
	struct engine *engine;
	void *owner;
	void (*due)(struct engine_queue *queue);
	uint64_t taken_ns;
	uint64_t timers;
};

/**
 * struct engine_io - records on their way through an engine
 * @records: read and written until @done is called
 * @count: how many
 * @queue: where
 * @late_ns: out, of collect(): most that one of them is late by, without what
 *	was held until @taken_ns and what was given a deadline that had passed
 * @done: called with the result if the engine answered -EINPROGRESS. It should
 *	only note that.
 * @op: the engine's
 * @progress: where submit() fails, how many records were done before that and
 *	have their statuses; else the engine's
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
 * struct engine_ops - what an engine can do
 * @name: "kernel" or "embedded"
 * @kind: EXPIRY_ENGINE_*
 *
 * Functions return 0, a count, or -errno.
 *
 * @open: get ready. @device: path of the device (kernel); @memory: what of it
 *	timers may take, shared with the engines of other threads (embedded).
 * @close: NULL is allowed; no queue may be left.
 * @turn: called once a turn after all work is done, before it is submitted.
 *	Returns true if it wants another turn at once. NULL: nothing to do.
 *
 * @queue_new: make a queue with its heap laid out as @layout says,
 *	EXPIRY_LAYOUT_*. -EINVAL, -ENOMEM, -EMFILE, ... @config->limit comes
 *	back as what is in force.
 * @queue_adopt: make a queue of @fd, a queue of this engine whose maker is gone,
 *	and say how it is in @stat. Takes @fd unless it fails. -ENOTTY, -ENODEV:
 *	that is no such queue. NULL: queues end with their maker.
 * @queue_fd: the descriptor by which a queue outlives us. NULL: none does.
 * @queue_free: remove it with its timers, bounded work; NULL is allowed. No io
 *	may be on its way.
 * @submit: process all records of @io in place, each gets its status. Returns
 *	0, -EINPROGRESS (@io->done comes later) or, where the queue as a whole
 *	is beyond use, another error; see @io->progress, 0 before the call.
 * @submit_now: the same without the ring; may block. Where it fails, the status
 *	of a record does not tell whether it was done.
 * @collect: up to @io->count expirations that are due, in order. Returns how
 *	many, 0 = none are available now, -EINPROGRESS, or an error.
 * @stop: end a collect() that is on its way soon; its done() still comes.
 *	NULL: there never is one.
 * @wait: call @queue->due once when something is due. Returns 0, or 1 if that
 *	is now (and @due will not be called).
 * @unwait: forget about it.
 * @rewind: what was delivered and not acknowledged is due again, marked.
 *	Bounded work: 1 = call again, 0 = done.
 * @scan: as EXPIRY_IOC_SCAN; returns the number of records. May block.
 * @stat: as EXPIRY_IOC_STAT.
 * @recount: make @queue->timers the truth.
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
	int (*submit_now)(struct engine_queue *queue,
			  struct expiry_record *records, uint32_t count);
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
