/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The simulated kernel's part of io_uring, shared by ring.c and opcode.c. */
#ifndef TESTS_SIM_RING_H
#define TESTS_SIM_RING_H

#include <liburing.h>

#include "daemon/util/list.h"
#include "daemon/util/util.h"
#include "tests/sim/sim.h"

/**
 * struct op - a request under way
 * @limits: a link timeout: what it limits
 * @after: a sync: the write before it
 * @is_written: a write that flushes has no more to do than that
 * @iov: what is sent, @nr_iov pieces with the sum @sum
 * @due_ns: of a timeout, on @clock_id
 */
struct op {
	struct list all;
	struct io_uring_sqe sqe;
	struct op *limits;
	struct op *after;
	bool is_written;
	struct iovec iov[16];
	uint32_t nr_iov;
	uint64_t sum;
	uint64_t due_ns;
	uint32_t clock_id;
};

/**
 * struct ring - the kernel's part of a ring
 * @ops: requests under way; @overflow: completions beyond the queue
 * @bufs: provided buffers, taken up to @head and looked at up to @seen
 * @provided: by number: the kernel has it
 * @nr_idle: turns in a row that neither waited nor asked for anything
 */
struct ring {
	struct io_uring *ring;
	unsigned int sq_head;
	unsigned int sq_flags;
	unsigned int cq_head;
	unsigned int cq_tail;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	struct list ops;
	struct list overflow;
	struct op *last;
	struct io_uring_buf_ring *bufs;
	uint32_t nr_bufs;
	uint16_t head;
	uint16_t seen;
	bool *provided;
	uint32_t nr_idle;
};

#define for_each_op(pos, r) \
	for (pos = container_of((r)->ops.next, struct op, all); \
	     &(pos)->all != &(r)->ops; \
	     pos = container_of((pos)->all.next, struct op, all))

/* ------------------------------------------------------------------- ring.c */

void ring_post(struct ring *r, uint64_t data, int result, uint32_t flags);
/* Ends an operation: its time limit ends with it. */
void op_done(struct ring *r, struct op *op, int result, uint32_t flags);

bool ring_has_buffer(struct ring *r);
const struct io_uring_buf *ring_take_buffer(struct ring *r);

/* ----------------------------------------------------------------- opcode.c */

/* Starts a request, which may complete at once. */
void op_issue(struct ring *r, const struct io_uring_sqe *sqe);
bool op_is_ready(const struct op *op);
bool op_is_timeout(const struct op *op);
/* Completes what is ready; a multishot or a send may go on. */
void op_complete(struct ring *r, struct op *op);

#endif /* TESTS_SIM_RING_H */
