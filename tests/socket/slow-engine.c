// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The embedded engine as if its memory were in swap: submitting and collecting
 * are done, but return after EXPIRY_SLOW_MS. Of a batch with more than
 * EXPIRY_FAIL_AFTER records only that many are done, then it fails. It replaces
 * the embedded engine in a daemon; that one is compiled as engine_fast.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/engine/engine.h"
#include "daemon/util/util.h"

#define SLOW_MS	300

extern const struct engine_ops engine_fast;

static struct __kernel_timespec delay;
static uint32_t fail_after = UINT32_MAX;
static struct engine_ops slow_ops;

/* @io's result waits in its progress. */
static void slow_done(struct loop_op *op, int result, uint32_t flags)
{
	struct engine_io *io = container_of(op, struct engine_io, op);

	(void)result;
	(void)flags;
	io->done(io, io->progress);
}

static int slow_down(struct engine_queue *queue, struct engine_io *io,
		     int result)
{
	struct io_uring_sqe *sqe;

	if (result < 0)
		return result;
	io->op.done = slow_done;
	io->progress = result;
	sqe = loop_sqe(queue->engine->loop, &io->op);
	io_uring_prep_timeout(sqe, &delay, 0, 0);
	return -EINPROGRESS;
}

static void slow_submitted(struct loop_op *op, int result, uint32_t flags)
{
	struct engine_io *io = container_of(op, struct engine_io, op);

	(void)result;
	(void)flags;
	io->done(io, io->progress < io->count ? -EIO : 0);
}

static int slow_submit(struct engine_queue *queue, struct engine_io *io)
{
	uint32_t count = io->count;
	int r;

	if (io->count > fail_after)
		io->count = fail_after;
	r = slow_down(queue, io, engine_fast.submit(queue, io));
	io->op.done = slow_submitted;
	io->progress = io->count;
	io->count = count;
	return r;
}

static int slow_collect(struct engine_queue *queue, struct engine_io *io)
{
	int r = engine_fast.collect(queue, io);

	return r ? slow_down(queue, io, r) : 0;
}

static int slow_open(struct engine **enginep, struct loop *loop,
		     const char *device, struct budget *memory)
{
	const char *text = getenv("EXPIRY_SLOW_MS");
	uint64_t ms = text ? strtoull(text, NULL, 10) : SLOW_MS;
	int r;

	r = engine_fast.open(enginep, loop, device, memory);
	if (r < 0)
		return r;
	text = getenv("EXPIRY_FAIL_AFTER");
	if (text)
		fail_after = strtoul(text, NULL, 10);
	delay.tv_sec = ms / 1000;
	delay.tv_nsec = ms % 1000 * 1000000;
	slow_ops = engine_fast;
	/* The other threads open it by these. */
	slow_ops.open = slow_open;
	slow_ops.submit = slow_submit;
	slow_ops.collect = slow_collect;
	(*enginep)->ops = &slow_ops;
	return 0;
}

const struct engine_ops engine_embedded = {
	.name = "embedded",
	.kind = EXPIRY_ENGINE_EMBEDDED,
	.open = slow_open,
};
