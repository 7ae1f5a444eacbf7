// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/loop/loop.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

static void loop_canceled(struct loop_op *op, int result, uint32_t flags)
{
	struct loop *loop = container_of(op, struct loop, cancel);

	(void)flags;
	/* Too late is no error: the other request completes by itself. */
	if (result && result != -ENOENT && result != -EALREADY)
		loop_fail(loop, "cancel", result);
}

int loop_init(struct loop *loop, const struct loop_ops *ops)
{
	int r;

	*loop = (struct loop) { .cancel.done = loop_canceled };
	r = ops->init(loop);
	if (r < 0)
		return r;
	loop->ops = ops;
	return 0;
}

void loop_deinit(struct loop *loop)
{
	if (!loop->ops)
		return;
	loop->ops->deinit(loop);
	loop->ops = NULL;
}

int loop_ring_init(struct loop *loop, uint32_t nr)
{
	struct io_uring_sq *sq = &loop->ring.sq;

	sq->sqes = calloc(nr, sizeof(*sq->sqes));
	if (!sq->sqes)
		return -ENOMEM;
	sq->khead = &sq->sqe_head;
	sq->ring_entries = nr;
	sq->ring_mask = nr - 1;
	return 0;
}

void loop_ring_deinit(struct loop *loop)
{
	free(loop->ring.sq.sqes);
	loop->ring.sq.sqes = NULL;
}

void loop_reserve(struct loop *loop, uint32_t nr)
{
	while (io_uring_sq_space_left(&loop->ring) < nr) {
		int r = loop->ops->submit(loop);

		/* The ring is unusable, and the daemon cannot work without it.
		 */
		if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
			abort();
	}
}

struct io_uring_sqe *loop_sqe(struct loop *loop, struct loop_op *op)
{
	struct io_uring_sqe *sqe;

	loop_reserve(loop, 1);
	sqe = io_uring_get_sqe(&loop->ring);
	io_uring_sqe_set_data(sqe, op);
	return sqe;
}

void loop_cancel(struct loop *loop, struct loop_op *op)
{
	struct io_uring_sqe *sqe = loop_sqe(loop, &loop->cancel);

	io_uring_prep_cancel(sqe, op, 0);
}

void loop_fail(struct loop *loop, const char *what, int error)
{
	if (error >= 0)
		error = -EPROTO;
	if (!loop->error)
		log_err("%s: %s: %s", loop->ops->name, what,
			strerror(-error));
	loop->error = error;
}

void loop_submit(struct loop *loop)
{
	loop->ops->submit(loop);
}

void loop_turned(struct loop *loop)
{
	loop->now_known = 0;
	loop->turns++;
	loop->reaped = !io_uring_sq_ready(&loop->ring);
}

int loop_turn(struct loop *loop, bool wait)
{
	if (loop->error)
		return loop->error;
	return loop->ops->turn(loop, wait);
}

int loop_clock(uint32_t clock_id)
{
	switch (clock_id) {
	case CLOCK_REALTIME:
		return 0;
	case CLOCK_MONOTONIC:
		return 1;
	case CLOCK_BOOTTIME:
		return 2;
	default:
		return -1;
	}
}

uint32_t loop_timeout_clock(uint32_t clock_id)
{
	switch (clock_id) {
	case CLOCK_REALTIME:
		return IORING_TIMEOUT_REALTIME;
	case CLOCK_BOOTTIME:
		return IORING_TIMEOUT_BOOTTIME;
	default:
		return 0;
	}
}

uint64_t loop_now_exactly(clockid_t clock_id)
{
	struct timespec ts;

	clock_gettime(clock_id, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

struct __kernel_timespec loop_timespec(int64_t ns)
{
	if (ns < 1)
		ns = 1;
	return (struct __kernel_timespec) {
		.tv_sec = ns / 1000000000,
		.tv_nsec = ns % 1000000000,
	};
}

uint64_t loop_now(struct loop *loop, uint32_t clock_id)
{
	int i = loop_clock(clock_id);

	if (i < 0)
		return 0;
	if (!(loop->now_known & 1U << i)) {
		loop->now_ns[i] = loop_now_exactly(clock_id);
		loop->now_known |= 1U << i;
	}
	return loop->now_ns[i];
}
