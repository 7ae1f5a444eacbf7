// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * io_uring's opcodes, on simulated descriptors and clocks: what a request does, and
 * with which result it completes.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/sim/lives.h"
#include "tests/sim/ring.h"

#define MULTISHOT_MAX	4	/* completions of one request at a time */

/* ------------------------------------------------------------------ sockets */

/* An error that has nothing to do with the peer. Some end the connection. */
static int injected(struct stream *stream)
{
	static const int harmless[] = { -EINTR, -EAGAIN };
	static const int fatal[] = { -ENOMEM, -EIO, -ECONNRESET };

	if (sim.phase != SIM_RUN || !stream->peer ||
	    !rng_hits(&sim.kernel, sim.error))
		return 0;
	/* A refusal is sent once, and waits for nobody. */
	if (!stream->peer->is_open)
		stream->peer->may_end = true;
	if (rng_hits(&sim.kernel, 700))
		return harmless[rng_below(&sim.kernel, 2)];
	stream->peer->may_end = true;
	return fatal[rng_below(&sim.kernel, 3)];
}

static size_t cut(size_t len)
{
	if (sim.phase == SIM_START || len < 2 ||
	    !rng_hits(&sim.kernel, sim.partial))
		return len;
	return 1 + rng_below(&sim.kernel, len - 1);
}

static bool recv_is_ready(const struct op *op)
{
	return file_is_readable(op->sqe.fd);
}

/* Receives once; returns whether a multishot goes on. */
static bool recv_once(struct ring *r, struct op *op)
{
	bool multishot = op->sqe.ioprio & IORING_RECV_MULTISHOT;
	bool selects = op->sqe.flags & IOSQE_BUFFER_SELECT;
	struct stream *stream = stream_of(op->sqe.fd);
	const struct io_uring_buf *buf = NULL;
	uint32_t flags = 0;
	void *to = (void *)(uintptr_t)op->sqe.addr;
	size_t len = op->sqe.len;
	int result;

	result = injected(stream);
	if (result) {
		stream->has_starved = false;
		stream->was_in_vain = false;
		op_done(r, op, result, 0);
		return false;
	}
	if (!stream->len) {
		result = stream->is_reset ? -ECONNRESET : 0;
		stream->is_reset = false;
		/* Kernels differ in whether the end of a stream uses a buffer. */
		if (!result && selects && ring_has_buffer(r) &&
		    rng_hits(&sim.kernel, 300))
			flags = IORING_CQE_F_BUFFER |
				(uint32_t)ring_take_buffer(r)->bid <<
				IORING_CQE_BUFFER_SHIFT;
		if (sim.phase == SIM_START && !sim.has_multishot)
			return false;
		op_done(r, op, result, flags);
		return false;
	}
	if (selects) {
		if (!ring_has_buffer(r)) {
			stream->has_starved = true;
			op_done(r, op, -ENOBUFS, 0);
			return false;
		}
		stream->has_starved = false;
		stream->was_in_vain = false;
		buf = ring_take_buffer(r);
		to = (void *)(uintptr_t)buf->addr;
		if (!len || len > buf->len)
			len = buf->len;
		flags = IORING_CQE_F_BUFFER |
			(uint32_t)buf->bid << IORING_CQE_BUFFER_SHIFT;
	}
	len = stream_read(stream, to, cut(min_u64(len, stream->len)));
	/* The kernel may end a multishot at any time. */
	if (multishot && (sim.phase == SIM_START ||
			  !rng_hits(&sim.kernel, 20))) {
		ring_post(r, op->sqe.user_data, len, flags | IORING_CQE_F_MORE);
		return true;
	}
	op_done(r, op, len, flags);
	return false;
}

static void do_recv(struct ring *r, struct op *op)
{
	int nr = 1 + rng_below(&sim.kernel, MULTISHOT_MAX);

	while (nr-- && recv_is_ready(op))
		if (!recv_once(r, op))
			break;
}

static uint64_t sum_of(const struct op *op)
{
	uint64_t sum = 14695981039346656037ULL;
	uint32_t i;
	size_t j;

	for (i = 0; i < op->nr_iov; i++)
		for (j = 0; j < op->iov[i].iov_len; j++)
			sum = (sum ^ ((unsigned char *)op->iov[i].iov_base)[j]) *
			      1099511628211ULL;
	return sum;
}

/* Ends a send of @total bytes. */
static void send_done(struct ring *r, struct op *op, int result, size_t total)
{
	struct stream *stream = stream_of(op->sqe.fd);
	static uint64_t moves;
	bool blocked = stream->was_short && inside_is_blocked(stream->peer);

	if (blocked ? result > 0 : result < (int)total)
		stream->moved = ++moves;
	if (result < (int)total)
		stream->was_short = true;
	op_done(r, op, result, 0);
}

/* Sends; returns false if it has to wait. */
static bool do_send(struct ring *r, struct op *op)
{
	struct stream *stream = stream_of(op->sqe.fd);
	size_t total = 0, len, n;
	uint32_t i;
	int result;

	for (i = 0; i < op->nr_iov; i++)
		total += op->iov[i].iov_len;
	if (sum_of(op) != op->sum)
		sim_fail("memory changed while it is being sent on %d",
			 op->sqe.fd);
	result = injected(stream);
	if (result) {
		send_done(r, op, result, total);
		return true;
	}
	if (!stream->other || stream->other->is_deaf || stream->is_deaf) {
		send_done(r, op, -EPIPE, total);
		return true;
	}
	len = min_u64(total, stream->other->max - stream->other->len);
	/* An empty socket takes a refusal as a whole. */
	if (len < total || (stream->peer && stream->peer->is_open))
		len = cut(len);
	if (!len && !(op->sqe.msg_flags & MSG_DONTWAIT))
		return false;
	if (!len) {
		send_done(r, op, -EAGAIN, total);
		return true;
	}
	result = len;
	for (i = 0; len; i++) {
		n = min_u64(len, op->iov[i].iov_len);
		stream_write(stream, op->iov[i].iov_base, n);
		len -= n;
	}
	/* A short send is no success, where all was wanted. */
	if ((size_t)result < total || (sim.phase == SIM_START &&
				       !sim.has_quiet))
		op->sqe.flags &= ~IOSQE_CQE_SKIP_SUCCESS;
	send_done(r, op, result, total);
	return true;
}

static void do_accept(struct ring *r, struct op *op)
{
	static const int errors[] = { -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM,
				      -EINTR, -ECONNABORTED };
	int result;

	if (sim.phase == SIM_RUN && rng_hits(&sim.kernel, sim.error))
		result = errors[rng_below(&sim.kernel, ARRAY_SIZE(errors))];
	else
		result = file_accept();
	op_done(r, op, result, 0);
}

static void do_read(struct ring *r, struct op *op)
{
	int result;

	result = file_read(op->sqe.fd, (void *)(uintptr_t)op->sqe.addr,
			   op->sqe.len);
	op_done(r, op, result, 0);
}

/* ------------------------------------------------------------------- the disk */

static struct op *op_after(struct ring *r, const struct op *write)
{
	struct op *op;

	for_each_op(op, r)
		if (op->after == write)
			return op;
	return NULL;
}

/* Writes. A failed or partial write cancels the sync behind it. If it would have been
 * silent otherwise, the sync is now. One that flushes by itself does so in a step of its
 * own: the daemon goes on between the two.
 */
static void do_write(struct ring *r, struct op *op)
{
	struct op *sync = op_after(r, op);
	int result;

	if (op->is_written) {
		result = disk_sync(op->sqe.fd);
		op_done(r, op, result ? result : (int)op->iov[0].iov_len, 0);
		return;
	}
	if (sum_of(op) != op->sum)
		sim_fail("memory changed while it is being written");
	result = disk_write(op->sqe.fd, op->iov[0].iov_base,
			    op->iov[0].iov_len, op->sqe.off);
	op->is_written = op->sqe.rw_flags == RWF_DSYNC &&
			 result == (int)op->iov[0].iov_len;
	if (op->is_written)
		return;
	if (sync)
		sync->after = NULL;
	if (sync && result < (int)op->iov[0].iov_len) {
		sync->sqe.flags |= op->sqe.flags & IOSQE_CQE_SKIP_SUCCESS;
		op->sqe.flags &= ~IOSQE_CQE_SKIP_SUCCESS;
		op_done(r, op, result, 0);
		op_done(r, sync, sync->sqe.flags & IOSQE_CQE_SKIP_SUCCESS ?
				 0 : -ECANCELED, 0);
	} else {
		op_done(r, op, result, 0);
	}
}

/* ------------------------------------------------------------------- timeouts */

static uint32_t clock_of(uint32_t flags)
{
	return flags & IORING_TIMEOUT_REALTIME ? CLOCK_REALTIME :
	       flags & IORING_TIMEOUT_BOOTTIME ? CLOCK_BOOTTIME :
						 CLOCK_MONOTONIC;
}

static void set_due(struct op *op, uint64_t addr, uint32_t flags)
{
	const struct __kernel_timespec *ts = (void *)(uintptr_t)addr;

	op->due_ns = ts->tv_sec * SIM_S + ts->tv_nsec;
	if (!(flags & IORING_TIMEOUT_ABS))
		op->due_ns += sim_now(op->clock_id);
}

bool op_is_timeout(const struct op *op)
{
	return op->sqe.opcode == IORING_OP_TIMEOUT ||
	       op->sqe.opcode == IORING_OP_LINK_TIMEOUT;
}

static struct op *op_find(struct ring *r, uint64_t data, bool timeouts)
{
	struct op *op;

	for_each_op(op, r)
		if (op->sqe.user_data == data &&
		    (!timeouts || op->sqe.opcode == IORING_OP_TIMEOUT))
			return op;
	return NULL;
}

/* Moves a timeout. One that is about to fire may not be found any more. */
static int update_timeout(struct ring *r, const struct io_uring_sqe *sqe)
{
	struct op *op = op_find(r, sqe->addr, true);

	if (!(sqe->timeout_flags & IORING_TIMEOUT_UPDATE) ||
	    sqe->timeout_flags & IORING_TIMEOUT_CLOCK_MASK)
		return -EINVAL;
	if (!op)
		return -ENOENT;
	if (op->due_ns <= sim_now(op->clock_id) && rng_hits(&sim.kernel, 500))
		return -EALREADY;
	set_due(op, sqe->off, sqe->timeout_flags);
	return 0;
}

static int cancel(struct ring *r, const struct io_uring_sqe *sqe)
{
	struct op *op = op_find(r, sqe->addr, false);

	if (!op)
		return -ENOENT;
	op->sqe.flags &= ~IOSQE_CQE_SKIP_SUCCESS;
	op_done(r, op, -ECANCELED, 0);
	return 0;
}

/* ------------------------------------------------------------------- requests */

/* Checks that a receive waits until there is a buffer. Completions between its
 * preparation and its submission may take the one that it was for; but not twice.
 */
static void check_starved(struct ring *r, struct stream *stream, int fd)
{
	bool is_in_vain = stream->has_starved && !inside_has_buffer(r->ring);

	if (is_in_vain && stream->was_in_vain)
		sim_fail("descriptor %d is received from again, and there is no buffer",
			 fd);
	stream->was_in_vain = is_in_vain;
}

void op_issue(struct ring *r, const struct io_uring_sqe *sqe)
{
	struct op *op = sim_alloc(sizeof(*op)), *last = r->last;
	const struct msghdr *msg;

	op->sqe = *sqe;
	list_add(&r->ops, &op->all);
	r->last = sqe->flags & IOSQE_IO_LINK ? op : NULL;
	switch (sqe->opcode) {
	case IORING_OP_RECV:
		if (sqe->flags & IOSQE_BUFFER_SELECT)
			check_starved(r, stream_of(sqe->fd), sqe->fd);
		/* A link is whole before anything of it completes. */
		if (!(sqe->ioprio & IORING_RECVSEND_POLL_FIRST) &&
		    !r->last && recv_is_ready(op))
			do_recv(r, op);
		break;
	case IORING_OP_SEND:
		op->iov[0].iov_base = (void *)(uintptr_t)sqe->addr;
		op->iov[0].iov_len = sqe->len;
		op->nr_iov = 1;
		op->sum = sum_of(op);
		do_send(r, op);
		break;
	case IORING_OP_SENDMSG:
		msg = (void *)(uintptr_t)sqe->addr;
		if (msg->msg_iovlen > ARRAY_SIZE(op->iov))
			sim_fail("sendmsg() of %zu pieces", msg->msg_iovlen);
		memcpy(op->iov, msg->msg_iov,
		       msg->msg_iovlen * sizeof(*op->iov));
		op->nr_iov = msg->msg_iovlen;
		op->sum = sum_of(op);
		do_send(r, op);
		break;
	case IORING_OP_WRITE:
		if (sqe->rw_flags == RWF_DSYNC && !disk_is_direct())
			sim_fail("the submission waits for the disk");
		op->iov[0].iov_base = (void *)(uintptr_t)sqe->addr;
		op->iov[0].iov_len = sqe->len;
		op->nr_iov = 1;
		op->sum = sum_of(op);
		break;
	case IORING_OP_FSYNC:
		op->after = last;
		break;
	case IORING_OP_ACCEPT:
	case IORING_OP_POLL_ADD:
	case IORING_OP_READ:
		break;
	case IORING_OP_LINK_TIMEOUT:
		if (!last)
			sim_fail("a link timeout without a link");
		op->limits = last;
		/* fall through */
	case IORING_OP_TIMEOUT:
		op->clock_id = clock_of(sqe->timeout_flags);
		set_due(op, sqe->addr, sqe->timeout_flags);
		break;
	case IORING_OP_TIMEOUT_REMOVE:
		op_done(r, op, update_timeout(r, sqe), 0);
		break;
	case IORING_OP_ASYNC_CANCEL:
		/* The order of the two completions is the kernel's. */
		op_done(r, op, cancel(r, sqe), 0);
		break;
	default:
		sim_fail("opcode %u is unknown to the simulator", sqe->opcode);
	}
}

bool op_is_ready(const struct op *op)
{
	const struct stream *stream;

	switch (op->sqe.opcode) {
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
		stream = stream_of(op->sqe.fd);
		return !stream->other || stream->is_deaf ||
		       stream->other->is_deaf ||
		       stream->other->max > stream->other->len;
	case IORING_OP_TIMEOUT:
	case IORING_OP_LINK_TIMEOUT:
		return op->due_ns <= sim_now(op->clock_id);
	case IORING_OP_WRITE:
		return true;
	case IORING_OP_FSYNC:
		return !op->after;
	default:
		return file_is_readable(op->sqe.fd);
	}
}

void op_complete(struct ring *r, struct op *op)
{
	struct op *limited;

	switch (op->sqe.opcode) {
	case IORING_OP_RECV:
		do_recv(r, op);
		break;
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
		do_send(r, op);
		break;
	case IORING_OP_ACCEPT:
		do_accept(r, op);
		break;
	case IORING_OP_READ:
		do_read(r, op);
		break;
	case IORING_OP_WRITE:
		do_write(r, op);
		break;
	case IORING_OP_FSYNC:
		op_done(r, op, disk_sync(op->sqe.fd), 0);
		break;
	case IORING_OP_POLL_ADD:
		op_done(r, op, 1, 0);
		break;
	case IORING_OP_LINK_TIMEOUT:
		limited = op->limits;
		op->limits = NULL;
		op_done(r, op, -ETIME, 0);
		op_done(r, limited, -ECANCELED, 0);
		break;
	default:
		op_done(r, op, -ETIME, 0);
		break;
	}
}
