// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each of the two loops, io_uring and epoll, against one model, by requests by
 * chance: receives of both kinds, sends, timeouts on each clock, moved, limited and
 * canceled. Each completes once, bytes come in order, and no timeout is early or
 * lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/loop/loop.h"
#include "daemon/util/log.h"
#include "daemon/util/util.h"

#define SEEDS		20U
#define STEPS		2000U
#define PAIRS		6U
#define TIMEOUTS	9U
#define BUFFERS		8U	/* a power of two */
#define BUFFER_SIZE	64U
#define SEND_SIZE	4096U
#define NEAR_NS		3000000U
#define FAR_NS		3600000000000U
#define LATE_S		5U	/* a loop waits for what does not come: a hundred times a seed */

/**
 * struct request - a request, and how it ends
 * @limit: of its link
 * @pending: it will complete
 * @canceled: it may complete with -ECANCELED; by a time limit, too
 * @multishot: it completes for each buffer
 * @finals: how often it ended since it began
 */
struct request {
	struct loop_op op;
	struct loop_op helper;
	struct __kernel_timespec time, limit;
	bool pending;
	bool canceled;
	bool multishot;
	unsigned int finals;
};

/**
 * struct pair - a socket of the loop's and its peer
 * @received: number of the next byte from the peer; @written: to be written
 * @sent: likewise of what the loop sent; @read: of what the peer read
 */
struct pair {
	struct request receive, send;
	int fd, peer;
	uint64_t received, written, sent, read;
	char data[SEND_SIZE];
};

/**
 * struct timeout - a timeout
 * @earliest_ns: it must not fire before that, on its clock
 * @near: it fires soon
 * @may_fire: it is near, or may have come before it was moved
 */
struct timeout {
	struct request request;
	clockid_t clock_id;
	uint64_t earliest_ns;
	bool absolute;
	bool near;
	bool may_fire;
};

static struct state {
	struct loop loop;
	struct io_uring_buf_ring *ring;
	char buffers[BUFFERS][BUFFER_SIZE];
	struct pair pairs[PAIRS];
	struct timeout timeouts[TIMEOUTS];
	unsigned int nr_returned;
	unsigned int nr_fired, nr_received, nr_sent, nr_canceled, nr_limited, nr_moved;
} state;

static uint32_t random_bits;

/* The loops log what the kernel refuses, which none of this is. */
_Atomic enum log_level log_max = LOG_LEVEL_ERR;

void log_write(enum log_level level, const struct log_about *about, const char *format, ...)
{
	(void)level;
	(void)about;
	fail_msg("%s", format);
}

static uint32_t below(uint32_t limit)
{
	random_bits = random_bits * 1103515245 + 12345;
	return (uint64_t)(random_bits >> 8) * limit >> 24;
}

/* ------------------------------------------------------------------ requests */

static void helped(struct loop_op *op, int result, uint32_t flags)
{
	(void)op;
	(void)flags;
	/* Its request has ended, or a limit has done what it is for. */
	assert_true(!result || result == -ENOENT || result == -EALREADY ||
		    result == -ETIME || result == -ECANCELED);
}

static struct io_uring_sqe *begin(struct request *request,
				  void (*done)(struct loop_op *, int, uint32_t))
{
	assert_false(request->pending);
	request->op.done = done;
	request->helper.done = helped;
	request->pending = true;
	request->canceled = false;
	request->multishot = false;
	request->finals = 0;
	return loop_sqe(&state.loop, &request->op);
}

static void ended(struct request *request, int result, uint32_t flags)
{
	assert_true(request->pending);
	if (flags & IORING_CQE_F_MORE) {
		assert_true(request->multishot && result > 0);
		return;
	}
	assert_int_equal(++request->finals, 1);
	request->pending = false;
	if (result != -ECANCELED)
		return;
	assert_true(request->canceled);
	state.nr_canceled++;
}

static void cancel(struct request *request)
{
	if (!request->pending)
		return;
	request->canceled = true;
	loop_cancel(&state.loop, &request->op);
}

/* ------------------------------------------------------------------- sockets */

static void received(struct loop_op *op, int result, uint32_t flags)
{
	struct pair *pair = container_of(op, struct pair, receive.op);
	unsigned int number = flags >> IORING_CQE_BUFFER_SHIFT;
	int i;

	ended(&pair->receive, result, flags);
	if (result <= 0) {
		assert_true(result == -ECANCELED || result == -ENOBUFS);
		return;
	}
	assert_true(flags & IORING_CQE_F_BUFFER && number < BUFFERS);
	for (i = 0; i < result; i++)
		assert_int_equal((uint8_t)state.buffers[number][i],
				 (uint8_t)pair->received++);
	assert_true(pair->received <= pair->written);
	io_uring_buf_ring_add(state.ring, state.buffers[number], BUFFER_SIZE, number,
			      io_uring_buf_ring_mask(BUFFERS), state.nr_returned++);
	state.nr_received++;
}

static void receive(struct pair *pair)
{
	struct request *request = &pair->receive;
	struct io_uring_sqe *sqe;
	bool limited = !below(4);

	if (request->pending)
		return;
	if (limited)
		loop_reserve(&state.loop, 2);
	sqe = begin(request, received);
	request->multishot = !limited && below(2);
	if (request->multishot)
		io_uring_prep_recv_multishot(sqe, pair->fd, NULL, 0, 0);
	else
		io_uring_prep_recv(sqe, pair->fd, NULL, BUFFER_SIZE, 0);
	if (below(2))
		sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = LOOP_BUFFERS;
	if (!limited)
		return;
	request->canceled = true;
	state.nr_limited++;
	sqe->flags |= IOSQE_IO_LINK;
	request->limit = loop_timespec(below(NEAR_NS));
	io_uring_prep_link_timeout(loop_sqe(&state.loop, &request->helper),
				   &request->limit, 0);
}

static void write_some(struct pair *pair)
{
	char data[2 * BUFFER_SIZE];
	ssize_t i, len = 1 + below(sizeof(data));

	for (i = 0; i < len; i++)
		data[i] = pair->written + i;
	len = send(pair->peer, data, len, MSG_DONTWAIT);
	if (len > 0)
		pair->written += len;
}

static void sent(struct loop_op *op, int result, uint32_t flags)
{
	struct pair *pair = container_of(op, struct pair, send.op);

	ended(&pair->send, result, flags);
	if (result < 0) {
		assert_int_equal(result, -ECANCELED);
		return;
	}
	assert_true(result <= (int)SEND_SIZE);
	pair->sent += result;
	state.nr_sent++;
}

static void send_some(struct pair *pair)
{
	uint32_t i, len = 1 + below(SEND_SIZE);

	if (pair->send.pending)
		return;
	for (i = 0; i < len; i++)
		pair->data[i] = pair->sent + i;
	io_uring_prep_send(begin(&pair->send, sent), pair->fd, pair->data, len, 0);
}

static void read_some(struct pair *pair)
{
	char data[4 * SEND_SIZE];
	ssize_t i, len = recv(pair->peer, data, 1 + below(sizeof(data) - 1),
			      MSG_DONTWAIT);

	for (i = 0; i < len; i++)
		assert_int_equal((uint8_t)data[i], (uint8_t)pair->read++);
}

/* ------------------------------------------------------------------ timeouts */

static void fired(struct loop_op *op, int result, uint32_t flags)
{
	struct timeout *timeout = container_of(op, struct timeout, request.op);

	ended(&timeout->request, result, flags);
	if (result == -ECANCELED)
		return;
	assert_int_equal(result, -ETIME);
	assert_true(timeout->may_fire);
	assert_true(loop_now_exactly(timeout->clock_id) >= timeout->earliest_ns);
	state.nr_fired++;
}

static void set_timeout(struct timeout *timeout)
{
	bool near = below(2);
	uint64_t ns = near ? below(NEAR_NS) : FAR_NS;
	struct request *request = &timeout->request;
	uint64_t at_ns = loop_now_exactly(timeout->clock_id) + ns;
	struct io_uring_sqe *sqe;

	if (request->pending) {
		/* The absolute ones are moved, as the daemon's alarms are. */
		if (!timeout->absolute || request->canceled)
			return;
		if (!timeout->may_fire || at_ns < timeout->earliest_ns)
			timeout->earliest_ns = at_ns;
		timeout->near = near;
		timeout->may_fire |= near;
		state.nr_moved++;
		request->time = loop_timespec(at_ns);
		sqe = loop_sqe(&state.loop, &request->helper);
		io_uring_prep_timeout_update(sqe, &request->time,
					     (uintptr_t)&request->op,
					     IORING_TIMEOUT_ABS);
		/* It refers to the time until it is submitted. */
		loop_submit(&state.loop);
		return;
	}
	timeout->absolute = below(2);
	timeout->near = timeout->may_fire = near;
	timeout->earliest_ns = at_ns;
	sqe = begin(request, fired);
	request->time = loop_timespec(timeout->absolute ? at_ns : ns);
	io_uring_prep_timeout(sqe, &request->time, 0,
			      loop_timeout_clock(timeout->clock_id) |
			      (timeout->absolute ? IORING_TIMEOUT_ABS : 0));
	loop_submit(&state.loop);
}

/* -------------------------------------------------------------------- a turn */

static void turn(bool wait)
{
	assert_int_equal(loop_turn(&state.loop, wait), 0);
	io_uring_buf_ring_advance(state.ring, state.nr_returned);
	state.nr_returned = 0;
}

static bool any_near(void)
{
	unsigned int i;

	for (i = 0; i < TIMEOUTS; i++)
		if (state.timeouts[i].request.pending && state.timeouts[i].near)
			return true;
	return false;
}

static bool any_pending(void)
{
	unsigned int i;

	for (i = 0; i < PAIRS; i++)
		if (state.pairs[i].receive.pending || state.pairs[i].send.pending)
			return true;
	for (i = 0; i < TIMEOUTS; i++)
		if (state.timeouts[i].request.pending)
			return true;
	return false;
}

static void cancel_all(void)
{
	unsigned int i;

	for (i = 0; i < PAIRS; i++) {
		cancel(&state.pairs[i].receive);
		cancel(&state.pairs[i].send);
	}
	for (i = 0; i < TIMEOUTS; i++)
		cancel(&state.timeouts[i].request);
	while (any_pending())
		turn(true);
}

static void step(void)
{
	struct pair *pair = &state.pairs[below(PAIRS)];
	struct timeout *timeout = &state.timeouts[below(TIMEOUTS)];

	switch (below(10)) {
	case 0:
	case 1:
		receive(pair);
		break;
	case 2:
	case 3:
		write_some(pair);
		break;
	case 4:
		send_some(pair);
		break;
	case 5:
		read_some(pair);
		break;
	case 6:
		set_timeout(timeout);
		break;
	case 7:
		cancel(below(2) ? &timeout->request :
		       below(2) ? &pair->receive : &pair->send);
		break;
	default:
		turn(any_near() && below(2));
		break;
	}
}

/* ------------------------------------------------------------------- fixture */

static int set_up(void **with)
{
	static const clockid_t clocks[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME,
	};
	int sockets[2], little = 1;
	unsigned int i;
	int r;

	memset(&state, 0, sizeof(state));
	r = loop_init(&state.loop, *with);
	if (*with == &loop_uring && (r == -EPERM || r == -EACCES || r == -ENOSYS))
		return 0;	/* it is forbidden here */
	assert_int_equal(r, 0);
	state.ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(state.ring != MAP_FAILED);
	assert_int_equal(state.loop.ops->provide(&state.loop, state.ring, BUFFERS), 0);
	io_uring_buf_ring_init(state.ring);
	for (i = 0; i < BUFFERS; i++)
		io_uring_buf_ring_add(state.ring, state.buffers[i], BUFFER_SIZE, i,
				      io_uring_buf_ring_mask(BUFFERS), i);
	io_uring_buf_ring_advance(state.ring, BUFFERS);
	for (i = 0; i < PAIRS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
					    sockets), 0);
		state.pairs[i].fd = sockets[0];
		state.pairs[i].peer = sockets[1];
		setsockopt(sockets[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
	}
	for (i = 0; i < TIMEOUTS; i++)
		state.timeouts[i].clock_id = clocks[i % ARRAY_SIZE(clocks)];
	alarm(LATE_S);
	return 0;
}

static int tear_down(void **with)
{
	unsigned int i;

	(void)with;
	alarm(0);
	if (!state.loop.ops)
		return 0;
	for (i = 0; i < PAIRS; i++) {
		close(state.pairs[i].fd);
		close(state.pairs[i].peer);
	}
	loop_deinit(&state.loop);
	munmap(state.ring, 4096);
	return 0;
}

static void needs_loop(void)
{
	if (!state.loop.ops)
		skip();
}

/* --------------------------------------------------------------------- tests */

static void each_request_completes_once(void **with)
{
	unsigned int seed, i;

	(void)with;
	needs_loop();
	for (seed = 1; seed <= SEEDS; seed++) {
		random_bits = seed;
		alarm(LATE_S);
		for (i = 0; i < STEPS; i++)
			step();
		/* Each that is near fires, and wakes the loop. */
		while (any_near())
			turn(true);
		cancel_all();
	}
	for (i = 0; i < PAIRS; i++) {
		struct pair *pair = &state.pairs[i];

		while (pair->received < pair->written) {
			receive(pair);
			turn(true);
		}
		while (pair->read < pair->sent)
			read_some(pair);
		assert_int_equal(recv(pair->peer, pair->data, 1, MSG_DONTWAIT), -1);
	}
	cancel_all();
	assert_true(state.nr_fired && state.nr_received && state.nr_sent &&
		    state.nr_canceled && state.nr_limited && state.nr_moved);
}

static struct loop_op plenty[LOOP_COMPLETIONS_MAX + 100];
static unsigned int nr_refused;

static void refused(struct loop_op *op, int result, uint32_t flags)
{
	(void)op;
	(void)flags;
	assert_int_equal(result, -EBADF);
	nr_refused++;
}

/* Bytes that wait for the next turn come before the end by a cancellation. */
static void bytes_come_before_the_cancellation(void **with)
{
	struct pair *pair = &state.pairs[0];
	struct request *request = &pair->receive;
	unsigned int i, turns = 0;
	struct io_uring_sqe *sqe;
	static char byte;

	(void)with;
	needs_loop();
	random_bits = 1;
	sqe = begin(request, received);
	io_uring_prep_recv_multishot(sqe, pair->fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = LOOP_BUFFERS;
	request->multishot = true;
	turn(false);
	nr_refused = 0;
	memset(plenty, 0, sizeof(plenty));
	for (i = 0; i < ARRAY_SIZE(plenty); i++) {
		plenty[i].done = refused;
		sqe = loop_sqe(&state.loop, &plenty[i]);
		io_uring_prep_read(sqe, -1, &byte, 1, 0);
		sqe->rw_flags = RWF_NOWAIT;
	}
	write_some(pair);
	turn(false);
	/* The rest waits, and says so. */
	assert_int_equal(nr_refused, LOOP_COMPLETIONS_MAX);
	assert_false(state.loop.reaped);
	cancel(request);
	while (request->pending || nr_refused < ARRAY_SIZE(plenty)) {
		turn(false);
		assert_true(++turns < 10);
	}
	assert_int_equal(pair->received, pair->written);
	turn(false);
	assert_true(state.loop.reaped);
	assert_int_equal(request->finals, 1);
}

#define on(loop, test) \
	{ #test " on " #loop, test, set_up, tear_down, (void *)&loop_ ## loop }

int main(void)
{
	const struct CMUnitTest tests[] = {
		on(uring, each_request_completes_once),
		on(epoll, each_request_completes_once),
		on(uring, bytes_come_before_the_cancellation),
		on(epoll, bytes_come_before_the_cancellation),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
