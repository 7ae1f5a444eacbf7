// SPDX-License-Identifier: LGPL-2.1-or-later
/* The loop on io_uring: one ring, one thread, one io_uring_enter() a turn. */
#include <errno.h>

#include "daemon/loop/loop.h"
#include "daemon/util/util.h"
#include "expiry/wire.h"

#define LOOP_CQ_ENTRIES		16384

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

static int uring_init(struct loop *loop)
{
	struct io_uring_params params;
	size_t i;
	int r = -EINVAL;

	for (i = 0; i < ARRAY_SIZE(loop_setups) && r == -EINVAL; i++) {
		params = (struct io_uring_params) {
			.flags = loop_setups[i] | IORING_SETUP_CQSIZE |
				 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
			.cq_entries = LOOP_CQ_ENTRIES,
		};
		r = io_uring_queue_init_params(LOOP_SQ_ENTRIES, &loop->ring,
					       &params);
	}
	if (r < 0)
		return r;

	/* Saves a look-up of the ring's file a turn; optional. */
	io_uring_register_ring_fd(&loop->ring);
	return 0;
}

static void uring_deinit(struct loop *loop)
{
	io_uring_queue_exit(&loop->ring);
}

static int uring_provide(struct loop *loop, struct io_uring_buf_ring *buffers,
			 uint32_t nr)
{
	struct io_uring_buf_reg reg = {
		.ring_addr = (uintptr_t)buffers,
		.ring_entries = nr,
		.bgid = LOOP_BUFFERS,
	};

	return io_uring_register_buf_ring(&loop->ring, &reg, 0);
}

static int uring_submit(struct loop *loop)
{
	return io_uring_submit(&loop->ring);
}

static int uring_turn(struct loop *loop, bool wait)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;
	int r;

	if (wait && !io_uring_cq_ready(&loop->ring))
		r = io_uring_submit_and_wait(&loop->ring, 1);
	else
		r = io_uring_submit_and_get_events(&loop->ring);
	if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
		return r;

	loop_turned(loop);
	io_uring_for_each_cqe(&loop->ring, head, cqe) {
		struct loop_op *op = io_uring_cqe_get_data(cqe);

		op->done(op, cqe->res, cqe->flags);
		if (++n == LOOP_COMPLETIONS_MAX)
			break;
	}
	io_uring_cq_advance(&loop->ring, n);
	if (io_uring_cq_ready(&loop->ring) ||
	    io_uring_cq_has_overflow(&loop->ring))
		loop->reaped = false;
	return 0;
}

const struct loop_ops loop_uring = {
	.name = "io_uring",
	.kind = EXPIRY_LOOP_IO_URING,
	.needs_probe = true,
	.init = uring_init,
	.deinit = uring_deinit,
	.provide = uring_provide,
	.submit = uring_submit,
	.turn = uring_turn,
};
