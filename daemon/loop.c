// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/util.h"

#define LOOP_SQ_ENTRIES		4096
#define LOOP_CQ_ENTRIES		16384

/* Completions run in one turn; what is left comes first in the next. */
#define LOOP_COMPLETIONS_MAX	8192

/* The best setup of this kernel comes first: completions posted only on request
 * (6.1), without interrupting the thread (5.19), or the default.
 */
static const uint32_t loop_setups[] = {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG,
	IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	0,
};

static void loop_canceled(struct loop_op *op, int result, uint32_t flags)
{
	struct loop *loop = container_of(op, struct loop, cancel);

	(void)flags;
	/* Too late is no error: the other request completes by itself. */
	if (result && result != -ENOENT && result != -EALREADY)
		loop_fail(loop, "cancel", result);
}

int loop_init(struct loop *loop)
{
	struct io_uring_params params;
	size_t i;
	int r = -EINVAL;

	*loop = (struct loop) {
		.ring.ring_fd = -1,
		.cancel.done = loop_canceled,
	};
	for (i = 0; i < ARRAY_SIZE(loop_setups) && r == -EINVAL; i++) {
		params = (struct io_uring_params) {
			.flags = loop_setups[i] | IORING_SETUP_CQSIZE |
				 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
			.cq_entries = LOOP_CQ_ENTRIES,
		};
		r = io_uring_queue_init_params(LOOP_SQ_ENTRIES, &loop->ring,
					       &params);
	}
	if (r < 0) {
		loop->ring.ring_fd = -1;
		return r;
	}
	loop->setup = params.flags;

	/* Saves a look-up of the ring's file a turn; optional. */
	io_uring_register_ring_fd(&loop->ring);
	return 0;
}

void loop_deinit(struct loop *loop)
{
	if (loop->ring.ring_fd < 0)
		return;
	io_uring_queue_exit(&loop->ring);
	loop->ring.ring_fd = -1;
}

void loop_reserve(struct loop *loop, uint32_t nr)
{
	while (io_uring_sq_space_left(&loop->ring) < nr) {
		int r = io_uring_submit(&loop->ring);

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
		log_err("io_uring: %s: %s", what, strerror(-error));
	loop->error = error;
}

int loop_turn(struct loop *loop, bool wait)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;
	int r;

	if (loop->error)
		return loop->error;
	if (wait && !io_uring_cq_ready(&loop->ring))
		r = io_uring_submit_and_wait(&loop->ring, 1);
	else
		r = io_uring_submit_and_get_events(&loop->ring);
	if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
		return r;

	loop->now_known = 0;
	loop->turns++;
	loop->settled = !io_uring_sq_ready(&loop->ring);
	io_uring_for_each_cqe(&loop->ring, head, cqe) {
		struct loop_op *op = io_uring_cqe_get_data(cqe);

		op->done(op, cqe->res, cqe->flags);
		if (++n == LOOP_COMPLETIONS_MAX)
			break;
	}
	io_uring_cq_advance(&loop->ring, n);
	if (io_uring_cq_ready(&loop->ring) ||
	    io_uring_cq_has_overflow(&loop->ring))
		loop->settled = false;
	return 0;
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
