// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The loop on epoll, where io_uring is refused: carries requests out by calls that
 * do not wait, and waits for the rest of them by epoll.
 *
 * A request is kept in its struct loop_op, so that none takes memory. What is
 * registered by epoll belongs to a request that is pending: EPOLLONESHOT for one
 * completion, level-triggered for multishot, which is removed at its end. A file
 * may be registered twice, for a receive and for a send, so there are two epoll
 * files, and the first one has the second.
 *
 * Only failure of cancels, of updates of a timeout and of time limits of other
 * requests would be of use to the callers, and they cannot fail here: they
 * complete without a completion.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/loop/attempt.h"
#include "daemon/loop/loop.h"
#include "daemon/loop/timeouts.h"
#include "expiry/wire.h"

/* Events of a turn; others come in the next. */
#define EVENTS_MAX	1024

/* Data of an event that is no request's: a clock's number, or this. */
#define EVENT_WRITABLE	LOOP_CLOCKS

static const clockid_t clocks[LOOP_CLOCKS] = {
	CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
};

/**
 * struct epoll_loop - the loop
 * @readable: waits for all but sends; @writable: for those
 * @linked: the request before, if it is pending and the next is its time limit
 * @completed: requests whose completion has to be run, in their order
 * @last: of them
 */
struct epoll_loop {
	int readable;
	int writable;
	struct provided provided;
	struct timeouts timeouts[LOOP_CLOCKS];
	struct loop_op *linked;
	struct loop_op *completed;
	struct loop_op *last;
	struct epoll_event events[EVENTS_MAX];
};

/* -------------------------------------------------------------- completions */

static void complete(struct epoll_loop *epoll, struct loop_op *op, int result,
		     uint32_t flags)
{
	struct loop_request *request = &op->request;

	request->result = result;
	request->cqe_flags = flags;
	request->pending = flags & IORING_CQE_F_MORE;
	request->completed = true;
	request->next = NULL;
	if (epoll->completed)
		epoll->last->request.next = op;
	else
		epoll->completed = op;
	epoll->last = op;
}

static struct timeouts *timeouts_of(struct epoll_loop *epoll,
				    const struct loop_op *op)
{
	return &epoll->timeouts[op->request.clock];
}

static int *epoll_of(struct epoll_loop *epoll, const struct loop_op *op)
{
	return op->request.opcode == IORING_OP_SEND ||
	       op->request.opcode == IORING_OP_SENDMSG ?
	       &epoll->writable : &epoll->readable;
}

/* Registers a request's file. If @watched is wrong, which is rare, this takes a
 * second call.
 */
static void watch(struct epoll_loop *epoll, struct loop_op *op)
{
	struct loop_request *request = &op->request;
	int file = *epoll_of(epoll, op);
	struct epoll_event event = {
		.events = (file == epoll->writable ? EPOLLOUT : EPOLLIN) |
			  (request->multishot ? 0 : EPOLLONESHOT),
		.data.ptr = op,
	};
	int r;

	request->pending = true;
	r = epoll_ctl(file, request->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      request->fd, &event);
	if (r < 0 && errno == EEXIST)
		r = epoll_ctl(file, EPOLL_CTL_MOD, request->fd, &event);
	else if (r < 0 && errno == ENOENT && request->watched)
		r = epoll_ctl(file, EPOLL_CTL_ADD, request->fd, &event);
	request->watched = !r;
	if (r < 0)
		complete(epoll, op, -errno, 0);
}

static void unwatch(struct epoll_loop *epoll, struct loop_op *op)
{
	if (op->request.opcode == IORING_OP_TIMEOUT)
		return;
	epoll_ctl(*epoll_of(epoll, op), EPOLL_CTL_DEL, op->request.fd, NULL);
	op->request.watched = false;
}

/* Ends a pending request that epoll has not just disarmed. */
static void end(struct epoll_loop *epoll, struct loop_op *op, int result)
{
	assert(op->request.pending);
	unwatch(epoll, op);
	timeouts_remove(timeouts_of(epoll, op), op);
	complete(epoll, op, result, 0);
}

static void cancel(struct epoll_loop *epoll, struct loop_op *op)
{
	if (!op->request.pending)
		return;
	/* Report the received bytes first. */
	if (op->request.completed)
		op->request.canceled = true;
	else
		end(epoll, op, -ECANCELED);
}

static void run_completions(struct loop *loop)
{
	struct epoll_loop *epoll = loop->epoll;
	uint32_t n;

	for (n = 0; epoll->completed && n < LOOP_COMPLETIONS_MAX; n++) {
		struct loop_op *op = epoll->completed;
		struct loop_request *request = &op->request;
		int result = request->result;
		uint32_t flags = request->cqe_flags;

		epoll->completed = request->next;
		request->completed = false;
		if (request->canceled) {
			request->canceled = false;
			end(epoll, op, -ECANCELED);
		}
		op->done(op, result, flags);
	}
	if (epoll->completed)
		loop->reaped = false;
}

/* ----------------------------------------------------------------- requests */

/* Handles that the file of a request is ready. */
static void ready(struct epoll_loop *epoll, struct loop_op *op)
{
	struct loop_request *request = &op->request;
	uint32_t flags;
	int r;

	/* A multishot's completion of an earlier turn has still to be run. */
	if (request->completed)
		return;
	r = attempt(&epoll->provided, &op->request, &flags);
	if (r == -EAGAIN || r == -EINTR) {
		if (!request->multishot)
			watch(epoll, op);
		return;
	}
	if (request->multishot && r > 0) {
		complete(epoll, op, r, flags | IORING_CQE_F_MORE);
		return;
	}
	if (request->multishot)
		unwatch(epoll, op);
	timeouts_remove(timeouts_of(epoll, op), op);
	complete(epoll, op, r, flags);
}

static void start_receive(struct epoll_loop *epoll, struct loop_op *op,
			  const struct io_uring_sqe *sqe)
{
	uint32_t flags;
	int r = -EAGAIN;

	op->request.multishot = sqe->ioprio & IORING_RECV_MULTISHOT;
	op->request.select = sqe->flags & IOSQE_BUFFER_SELECT;
	if (!op->request.multishot &&
	    !(sqe->ioprio & IORING_RECVSEND_POLL_FIRST))
		r = attempt(&epoll->provided, &op->request, &flags);
	if (r == -EAGAIN)
		watch(epoll, op);
	else
		complete(epoll, op, r, flags);
}

/* Success is skipped as the kernel does: not if MSG_WAITALL got only a part. */
static void start_send(struct epoll_loop *epoll, struct loop_op *op,
		       const struct io_uring_sqe *sqe)
{
	uint32_t flags;
	int r = attempt(&epoll->provided, &op->request, &flags);

	if (r == -EAGAIN && !(sqe->msg_flags & MSG_DONTWAIT)) {
		watch(epoll, op);
		return;
	}
	if (sqe->flags & IOSQE_CQE_SKIP_SUCCESS && r >= 0 &&
	    (!(sqe->msg_flags & MSG_WAITALL) ||
	     (size_t)r == attempt_send_len(&op->request)))
		return;
	complete(epoll, op, r, 0);
}

/* Reads a queue's file now if it must not wait. From others, it waits until they
 * are readable, and must not wait then in the call.
 */
static void start_read(struct epoll_loop *epoll, struct loop_op *op,
		       const struct io_uring_sqe *sqe)
{
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)sqe->addr,
		.iov_len = sqe->len,
	};
	ssize_t r;

	if (sqe->rw_flags & RWF_NOWAIT) {
		r = preadv2(sqe->fd, &iov, 1, sqe->off, sqe->rw_flags);
		complete(epoll, op, r < 0 ? -errno : r, 0);
		return;
	}
	if (!op->request.watched)
		fcntl(sqe->fd, F_SETFL,
		      fcntl(sqe->fd, F_GETFL) | O_NONBLOCK);
	watch(epoll, op);
}

static void start_command(struct epoll_loop *epoll, struct loop_op *op,
			  const struct io_uring_sqe *sqe)
{
	int r = ioctl(sqe->fd, sqe->cmd_op, sqe->cmd);

	complete(epoll, op, r < 0 ? -errno : r, 0);
}

/* ----------------------------------------------------------------- timeouts */

static uint64_t timespec_ns(uint64_t addr)
{
	const struct __kernel_timespec *time = (void *)(uintptr_t)addr;

	return time->tv_sec * 1000000000ULL + time->tv_nsec;
}

/* Sets the time of @op's request, on its clock. @many: each client may have one,
 * and there may be no memory for it.
 */
static int set_deadline(struct epoll_loop *epoll, struct loop_op *op,
			uint64_t addr, uint32_t flags, bool many)
{
	struct loop_request *request = &op->request;

	request->deadline_ns = timespec_ns(addr);
	if (!(flags & IORING_TIMEOUT_ABS))
		request->deadline_ns += loop_now_exactly(clocks[request->clock]);
	return timeouts_add(timeouts_of(epoll, op), op, many);
}

static void start_timeout(struct epoll_loop *epoll, struct loop_op *op,
			  const struct io_uring_sqe *sqe)
{
	clockid_t clock_id = CLOCK_MONOTONIC;
	int r;

	if (sqe->timeout_flags & IORING_TIMEOUT_REALTIME)
		clock_id = CLOCK_REALTIME;
	else if (sqe->timeout_flags & IORING_TIMEOUT_BOOTTIME)
		clock_id = CLOCK_BOOTTIME;
	op->request.clock = loop_clock(clock_id);
	op->request.pending = true;
	r = set_deadline(epoll, op, sqe->addr, sqe->timeout_flags, false);
	if (r < 0)
		complete(epoll, op, r, 0);
}

static void move_timeout(struct epoll_loop *epoll,
			 const struct io_uring_sqe *sqe)
{
	struct loop_op *op = (void *)(uintptr_t)sqe->addr;

	if (!op->request.pending)
		return;
	timeouts_remove(timeouts_of(epoll, op), op);
	set_deadline(epoll, op, sqe->addr2, sqe->timeout_flags, false);
}

static void limit_time(struct epoll_loop *epoll, const struct io_uring_sqe *sqe)
{
	struct loop_op *op = epoll->linked;
	int r;

	if (!op)
		return;
	op->request.clock = loop_clock(CLOCK_MONOTONIC);
	r = set_deadline(epoll, op, sqe->addr, sqe->timeout_flags, true);
	if (r < 0)
		end(epoll, op, r);
}

/* Ends the requests whose time has come. */
static void expire(struct epoll_loop *epoll, uint32_t clock)
{
	struct timeouts *timeouts = &epoll->timeouts[clock];
	uint64_t now_ns = loop_now_exactly(clocks[clock]);
	struct loop_op *op;

	while ((op = timeouts_take(timeouts, now_ns)))
		end(epoll, op, op->request.opcode == IORING_OP_TIMEOUT ?
			       -ETIME : -ECANCELED);
}

/* --------------------------------------------------------------------- turn */

static void start(struct epoll_loop *epoll, const struct io_uring_sqe *sqe)
{
	struct loop_op *op = (void *)(uintptr_t)sqe->user_data;

	switch (sqe->opcode) {
	case IORING_OP_ASYNC_CANCEL:
		cancel(epoll, (void *)(uintptr_t)sqe->addr);
		return;
	case IORING_OP_TIMEOUT_REMOVE:
		move_timeout(epoll, sqe);
		return;
	case IORING_OP_LINK_TIMEOUT:
		limit_time(epoll, sqe);
		return;
	}
	op->request = (struct loop_request) {
		.opcode = sqe->opcode,
		.fd = sqe->fd,
		.addr = sqe->addr,
		.len = sqe->len,
		.flags = sqe->msg_flags,
		.watched = op->request.watched,
	};
	switch (sqe->opcode) {
	case IORING_OP_RECV:
		start_receive(epoll, op, sqe);
		break;
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
		start_send(epoll, op, sqe);
		break;
	case IORING_OP_ACCEPT:
	case IORING_OP_POLL_ADD:
		watch(epoll, op);
		break;
	case IORING_OP_READ:
		start_read(epoll, op, sqe);
		break;
	case IORING_OP_URING_CMD:
		start_command(epoll, op, sqe);
		break;
	case IORING_OP_TIMEOUT:
		start_timeout(epoll, op, sqe);
		break;
	default:
		complete(epoll, op, -EINVAL, 0);
		break;
	}
	epoll->linked = sqe->flags & IOSQE_IO_LINK && op->request.pending ?
			op : NULL;
}

static int epoll_submit(struct loop *loop)
{
	struct io_uring_sq *sq = &loop->ring.sq;

	while (sq->sqe_head != sq->sqe_tail) {
		start(loop->epoll, &sq->sqes[sq->sqe_head & sq->ring_mask]);
		sq->sqe_head++;
	}
	return 0;
}

static void handle_writable(struct epoll_loop *epoll)
{
	int i, n = epoll_wait(epoll->writable, epoll->events, EVENTS_MAX, 0);

	for (i = 0; i < n; i++)
		ready(epoll, epoll->events[i].data.ptr);
}

static void handle(struct epoll_loop *epoll, int nr)
{
	bool writable = false;
	int i;

	for (i = 0; i < nr; i++) {
		const struct epoll_event *event = &epoll->events[i];

		if (event->data.u64 < LOOP_CLOCKS)
			epoll->timeouts[event->data.u64].fired = true;
		else if (event->data.u64 == EVENT_WRITABLE)
			writable = true;
		else
			ready(epoll, event->data.ptr);
	}
	/* Time limits after what has come in time. */
	for (i = 0; i < LOOP_CLOCKS; i++)
		if (epoll->timeouts[i].fired)
			expire(epoll, i);
	if (writable)
		handle_writable(epoll);
}

static int epoll_turn(struct loop *loop, bool wait)
{
	struct epoll_loop *epoll = loop->epoll;
	int i, n, r;

	epoll_submit(loop);
	for (i = 0; i < LOOP_CLOCKS; i++) {
		r = timeouts_arm(&epoll->timeouts[i]);
		if (r < 0)
			return r;
	}
	n = epoll_wait(epoll->readable, epoll->events, EVENTS_MAX,
		       wait && !epoll->completed ? -1 : 0);
	if (n < 0 && errno != EINTR)
		return -errno;
	loop_turned(loop);
	handle(epoll, n);
	run_completions(loop);
	return 0;
}

/* --------------------------------------------------------------------- loop */

static int watch_own(struct epoll_loop *epoll, int fd, uint64_t what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = what };

	return epoll_ctl(epoll->readable, EPOLL_CTL_ADD, fd, &event) < 0 ?
	       -errno : 0;
}

static int epoll_files(struct epoll_loop *epoll)
{
	int i, r = 0;

	epoll->readable = epoll_create1(EPOLL_CLOEXEC);
	epoll->writable = epoll_create1(EPOLL_CLOEXEC);
	if (epoll->readable < 0 || epoll->writable < 0)
		return -errno;
	r = watch_own(epoll, epoll->writable, EVENT_WRITABLE);
	for (i = 0; !r && i < LOOP_CLOCKS; i++) {
		r = timeouts_init(&epoll->timeouts[i], clocks[i]);
		if (!r)
			r = watch_own(epoll, epoll->timeouts[i].fd, i);
	}
	return r;
}

static void epoll_deinit(struct loop *loop)
{
	struct epoll_loop *epoll = loop->epoll;
	int i;

	if (epoll->readable >= 0)
		close(epoll->readable);
	if (epoll->writable >= 0)
		close(epoll->writable);
	for (i = 0; i < LOOP_CLOCKS; i++)
		timeouts_deinit(&epoll->timeouts[i]);
	loop_ring_deinit(loop);
	free(epoll);
	loop->epoll = NULL;
}

static int epoll_init(struct loop *loop)
{
	struct epoll_loop *epoll = calloc(1, sizeof(*epoll));
	int i, r;

	if (!epoll)
		return -ENOMEM;
	loop->epoll = epoll;
	for (i = 0; i < LOOP_CLOCKS; i++)
		epoll->timeouts[i].fd = -1;
	r = epoll_files(epoll);
	if (!r)
		r = loop_ring_init(loop, LOOP_SQ_ENTRIES);
	if (r < 0)
		epoll_deinit(loop);
	return r;
}

static int epoll_provide(struct loop *loop, struct io_uring_buf_ring *buffers,
			 uint32_t nr)
{
	loop->epoll->provided.ring = buffers;
	loop->epoll->provided.nr = nr;
	return 0;
}

const struct loop_ops loop_epoll = {
	.name = "epoll",
	.kind = EXPIRY_LOOP_EPOLL,
	.init = epoll_init,
	.deinit = epoll_deinit,
	.provide = epoll_provide,
	.submit = epoll_submit,
	.turn = epoll_turn,
};
