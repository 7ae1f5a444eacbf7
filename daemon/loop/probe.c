// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/loop/probe.h"
#include "daemon/util/util.h"

/* Turns in which the socket's content must be reported. */
#define PROBE_TURNS	4

/* More bytes than a socket with a small buffer takes at once. */
#define PROBE_SEND	(64 * 1024)

/**
 * struct probe - multishot receive of a byte and the end
 * @got_byte: the byte was reported; likewise @got_end
 * @over: no further completion comes
 */
struct probe {
	struct buffers *buffers;
	struct loop_op op;
	bool got_byte;
	bool got_end;
	bool over;
};

static void probe_done(struct loop_op *op, int result, uint32_t flags)
{
	struct probe *probe = container_of(op, struct probe, op);

	if (result > 0)
		probe->got_byte = true;
	if (!result)
		probe->got_end = true;
	if (!(flags & IORING_CQE_F_MORE))
		probe->over = true;
	if (flags & IORING_CQE_F_BUFFER)
		buffer_put(probe->buffers,
			   buffer_received(probe->buffers, flags, 0));
}

static void probe_arm(struct loop *loop, struct probe *probe, int fd)
{
	struct io_uring_sqe *sqe = loop_sqe(loop, &probe->op);

	io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = LOOP_BUFFERS;
	loop_submit(loop);
}

/* Returns whether the end is reported. @early: the peer leaves before the
 * receive is armed, not while it is.
 */
static bool probe_end(struct loop *loop, struct buffers *buffers, bool early)
{
	struct probe probe = { .buffers = buffers, .op.done = probe_done };
	int i, pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	if (!early)
		probe_arm(loop, &probe, pair[0]);
	/* Write and end before the next io_uring_enter(), for one wake-up. */
	if (write(pair[1], "", 1) == 1)
		shutdown(pair[1], SHUT_WR);
	if (early)
		probe_arm(loop, &probe, pair[0]);
	for (i = 0; i < PROBE_TURNS && !probe.over; i++)
		if (loop_turn(loop, false) < 0)
			return false;
	if (!probe.over)
		loop_cancel(loop, &probe.op);
	while (!probe.over)
		if (loop_turn(loop, true) < 0)
			return false;
	close(pair[0]);
	close(pair[1]);
	buffers_turn(buffers);
	return probe.got_byte && probe.got_end;
}

/**
 * struct probe_send - sends to a peer that does not read
 * @heard: number of completions; @result: of the last one
 */
struct probe_send {
	struct loop_op op;
	uint32_t heard;
	int result;
};

static void probe_sent(struct loop_op *op, int result, uint32_t flags)
{
	struct probe_send *probe = container_of(op, struct probe_send, op);

	(void)flags;
	probe->heard++;
	probe->result = result;
}

/* Returns false if the loop is broken. */
static bool probe_send(struct loop *loop, struct probe_send *probe, int fd,
		       const char *data, size_t len)
{
	struct io_uring_sqe *sqe = loop_sqe(loop, &probe->op);

	io_uring_prep_send(sqe, fd, data, len,
			   MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	return !loop_turn(loop, false) && loop->reaped;
}

bool probe_skip_success(struct loop *loop)
{
	static const char data[PROBE_SEND];
	/* Static: an unexpected completion may come after the return. Each
	 * thread has its own count.
	 */
	static _Thread_local struct probe_send probe;
	int pair[2], small = 1;
	bool good;

	probe = (struct probe_send) { .op.done = probe_sent };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	/* The sends are taken whole, in part, and not at all. */
	good = probe_send(loop, &probe, pair[0], data, 1) && !probe.heard &&
	       probe_send(loop, &probe, pair[0], data, sizeof(data)) &&
	       probe.heard == 1 && probe.result > 0 &&
	       (size_t)probe.result < sizeof(data) &&
	       probe_send(loop, &probe, pair[0], data, sizeof(data)) &&
	       probe.heard == 2 && probe.result == -EAGAIN;
	close(pair[0]);
	close(pair[1]);
	return good;
}

bool probe_multishot(struct loop *loop, struct buffers *buffers)
{
	return probe_end(loop, buffers, false) && probe_end(loop, buffers, true);
}
