// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * io_uring: the functions of liburing that the daemon calls. They interpret its
 * requests on simulated descriptors and complete them when the seed says so, in
 * any order that the kernel allows.
 */
#include <errno.h>
#include <liburing.h>
#include <sanitizer/asan_interface.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/util.h"
#include "tests/sim/sim.h"

#define RINGS		8
#define MULTISHOT_MAX	4	/* completions of one request at a time */

/**
 * struct op - a request under way
 * @limits: a link timeout: what it limits
 * @iov: what is sent, @nr_iov pieces with the sum @sum
 * @due_ns: of a timeout, on @clock_id
 */
struct op {
	struct list all;
	struct io_uring_sqe sqe;
	struct op *limits;
	struct iovec iov[16];
	uint32_t nr_iov;
	uint64_t sum;
	uint64_t due_ns;
	uint32_t clock_id;
};

/* A completion that waits for room in the queue. */
struct completion {
	struct list all;
	struct io_uring_cqe cqe;
};

/**
 * struct ring - the kernel's part of a ring
 * @ops: requests under way; @overflow: completions beyond the queue
 * @bufs: provided buffers, taken up to @head and looked at up to @seen
 * @provided: by number: the kernel has it
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
};

static struct ring rings[RINGS];

static struct ring *ring_of(const struct io_uring *ring)
{
	struct ring *r;

	for (r = rings; r < rings + RINGS; r++)
		if (r->ring == ring)
			return r;
	sim_fail("a ring that is not set up is used");
}

/* -------------------------------------------------------------- completions */

static void flush_overflow(struct ring *r)
{
	struct list *entry;

	while (r->cq_tail - r->cq_head < r->ring->cq.ring_entries &&
	       (entry = list_pop(&r->overflow))) {
		struct completion *c = container_of(entry, struct completion,
						    all);

		r->cqes[r->cq_tail & r->ring->cq.ring_mask] = c->cqe;
		r->cq_tail++;
		sim_free(c);
	}
	r->sq_flags = list_empty(&r->overflow) ? 0 : IORING_SQ_CQ_OVERFLOW;
}

static void post(struct ring *r, uint64_t data, int result, uint32_t flags)
{
	struct completion *c = sim_alloc(sizeof(*c));

	c->cqe = (struct io_uring_cqe) {
		.user_data = data,
		.res = result,
		.flags = flags,
	};
	list_add(&r->overflow, &c->all);
	flush_overflow(r);
}

static void op_free(struct op *op)
{
	list_del(&op->all);
	sim_free(op);
}

/* Ends an operation: its time limit ends with it. */
static void op_done(struct ring *r, struct op *op, int result, uint32_t flags)
{
	struct list *entry;

	if (!(op->sqe.flags & IOSQE_CQE_SKIP_SUCCESS) || result < 0)
		post(r, op->sqe.user_data, result, flags);
	for (entry = r->ops.next; entry != &r->ops; entry = entry->next) {
		struct op *limit = container_of(entry, struct op, all);

		if (limit->limits != op)
			continue;
		post(r, limit->sqe.user_data, -ECANCELED, 0);
		op_free(limit);
		break;
	}
	if (r->last == op)
		r->last = NULL;
	op_free(op);
}

bool ring_has_completion(const struct io_uring *ring)
{
	const struct ring *r = ring_of(ring);

	return r->cq_tail != r->cq_head || !list_empty(&r->overflow);
}

/* ------------------------------------------------------------------ buffers */

/* Notes what was provided: each buffer once, and it is the kernel's now. */
static void see_buffers(struct ring *r)
{
	for (; r->bufs && r->seen != r->bufs->tail; r->seen++) {
		const struct io_uring_buf *buf =
			&r->bufs->bufs[r->seen & (r->nr_bufs - 1)];

		if (buf->bid >= r->nr_bufs)
			sim_fail("buffer %u is provided, of %u", buf->bid,
				 r->nr_bufs);
		if (r->provided[buf->bid])
			sim_fail("buffer %u is provided twice", buf->bid);
		r->provided[buf->bid] = true;
		ASAN_POISON_MEMORY_REGION((void *)(uintptr_t)buf->addr,
					  buf->len);
	}
}

static bool has_buffer(struct ring *r)
{
	see_buffers(r);
	return r->head != r->seen;
}

static const struct io_uring_buf *take_buffer(struct ring *r)
{
	const struct io_uring_buf *buf =
		&r->bufs->bufs[r->head++ & (r->nr_bufs - 1)];

	r->provided[buf->bid] = false;
	ASAN_UNPOISON_MEMORY_REGION((void *)(uintptr_t)buf->addr, buf->len);
	return buf;
}

uint32_t ring_nr_buffers(const struct io_uring *ring)
{
	struct ring *r = ring_of(ring);

	see_buffers(r);
	return (uint16_t)(r->seen - r->head);
}

uint32_t ring_nr_unseen(const struct io_uring *ring)
{
	const struct ring *r = ring_of(ring);
	const struct list *entry;
	uint32_t nr = 0;
	unsigned int i;

	for (i = r->cq_head; i != r->cq_tail; i++)
		if (r->cqes[i & ring->cq.ring_mask].flags & IORING_CQE_F_BUFFER)
			nr++;
	for (entry = r->overflow.next; entry != &r->overflow;
	     entry = entry->next)
		if (container_of(entry, struct completion, all)->cqe.flags &
		    IORING_CQE_F_BUFFER)
			nr++;
	return nr;
}

/* ------------------------------------------------------------------ sockets */

/* An error that has nothing to do with the peer. Some end the connection. */
static int injected(struct stream *stream, bool ends)
{
	static const int harmless[] = { -EINTR, -EAGAIN };
	static const int fatal[] = { -ENOMEM, -EIO, -ECONNRESET, -ENOBUFS };

	if (sim.phase != SIM_RUN || !stream->peer ||
	    !rng_hits(&sim.kernel, sim.error))
		return 0;
	/* A refusal is sent once, and waits for nobody. */
	if (!stream->peer->is_open)
		stream->peer->may_end = true;
	if (!ends || rng_hits(&sim.kernel, 700))
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

	result = injected(stream, true);
	if (result) {
		op_done(r, op, result, 0);
		return false;
	}
	if (!stream->len) {
		result = stream->is_reset ? -ECONNRESET : 0;
		stream->is_reset = false;
		/* Kernels differ in whether the end of a stream uses a buffer. */
		if (!result && selects && has_buffer(r) &&
		    rng_hits(&sim.kernel, 300))
			flags = IORING_CQE_F_BUFFER |
				(uint32_t)take_buffer(r)->bid <<
				IORING_CQE_BUFFER_SHIFT;
		if (sim.phase == SIM_START && !sim.has_multishot)
			return false;
		op_done(r, op, result, flags);
		return false;
	}
	if (selects) {
		if (!has_buffer(r)) {
			op_done(r, op, -ENOBUFS, 0);
			return false;
		}
		buf = take_buffer(r);
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
		post(r, op->sqe.user_data, len, flags | IORING_CQE_F_MORE);
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
	result = injected(stream, true);
	if (result) {
		op_done(r, op, result, 0);
		return true;
	}
	if (!stream->other || stream->other->is_deaf || stream->is_deaf) {
		op_done(r, op, -EPIPE, 0);
		return true;
	}
	len = min_u64(total, stream->other->max - stream->other->len);
	/* An empty socket takes a refusal as a whole. */
	if (len < total || (stream->peer && stream->peer->is_open))
		len = cut(len);
	if (!len && !(op->sqe.msg_flags & MSG_DONTWAIT))
		return false;
	if (!len) {
		op_done(r, op, -EAGAIN, 0);
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
	op_done(r, op, result, 0);
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

static bool is_timeout(const struct op *op)
{
	return op->sqe.opcode == IORING_OP_TIMEOUT ||
	       op->sqe.opcode == IORING_OP_LINK_TIMEOUT;
}

static struct op *op_find(struct ring *r, uint64_t data, bool timeouts)
{
	struct list *entry;

	for (entry = r->ops.next; entry != &r->ops; entry = entry->next) {
		struct op *op = container_of(entry, struct op, all);

		if (op->sqe.user_data == data &&
		    (!timeouts || op->sqe.opcode == IORING_OP_TIMEOUT))
			return op;
	}
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

static void issue(struct ring *r, const struct io_uring_sqe *sqe)
{
	struct op *op = sim_alloc(sizeof(*op)), *last = r->last;
	const struct msghdr *msg;

	op->sqe = *sqe;
	list_add(&r->ops, &op->all);
	r->last = sqe->flags & IOSQE_IO_LINK ? op : NULL;
	switch (sqe->opcode) {
	case IORING_OP_RECV:
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

static bool is_ready(const struct op *op)
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
	default:
		return file_is_readable(op->sqe.fd);
	}
}

static void complete(struct ring *r, struct op *op)
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

/* Completes what is ready, in an order of the seed's. */
static bool ring_progress(struct ring *r, struct rng *rng, bool all)
{
	struct list *entry, ready;
	uint32_t nr = 0, skip;
	struct op *op;

	list_init(&ready);
	for (entry = r->ops.next; entry != &r->ops; entry = entry->next)
		nr += is_ready(container_of(entry, struct op, all));
	if (!nr)
		return false;
	do {
		if (!all && !rng_hits(rng, sim.complete))
			continue;
		skip = rng_below(rng, nr);
		for (entry = r->ops.next; entry != &r->ops;
		     entry = entry->next) {
			op = container_of(entry, struct op, all);
			if (!is_ready(op) || skip--)
				continue;
			complete(r, op);
			break;
		}
	} while (--nr);
	return true;
}

bool rings_progress(struct rng *rng, bool all)
{
	struct ring *r;
	bool some = false;

	for (r = rings; r < rings + RINGS; r++)
		if (r->ring && ring_progress(r, rng, all))
			some = true;
	return some;
}

uint64_t rings_next_ns(void)
{
	uint64_t next_ns = EXPIRY_NEVER, left_ns;
	struct list *entry;
	struct ring *r;

	for (r = rings; r < rings + RINGS; r++) {
		if (!r->ring)
			continue;
		for (entry = r->ops.next; entry != &r->ops;
		     entry = entry->next) {
			struct op *op = container_of(entry, struct op, all);

			if (!is_timeout(op))
				continue;
			left_ns = op->due_ns - sim_now(op->clock_id);
			if ((int64_t)left_ns < 0)
				left_ns = 0;
			if (next_ns > sim.mono_ns + left_ns)
				next_ns = sim.mono_ns + left_ns;
		}
	}
	return next_ns;
}

bool rings_use(int fd)
{
	struct list *entry;
	struct ring *r;

	for (r = rings; r < rings + RINGS; r++) {
		if (!r->ring)
			continue;
		for (entry = r->ops.next; entry != &r->ops;
		     entry = entry->next) {
			struct op *op = container_of(entry, struct op, all);

			if (op->sqe.fd == fd && !is_timeout(op) &&
			    op->sqe.opcode != IORING_OP_POLL_ADD)
				return true;
		}
	}
	return false;
}

/* ----------------------------------------------------------------- liburing */

int io_uring_queue_init_params(unsigned int entries, struct io_uring *ring,
			       struct io_uring_params *p)
{
	struct ring *r = rings;

	if ((sim.age > 0 && p->flags & IORING_SETUP_DEFER_TASKRUN) ||
	    (sim.age > 1 && p->flags & IORING_SETUP_COOP_TASKRUN))
		return -EINVAL;
	while (r->ring)
		r++;
	if (sim.sq_entries)
		entries = sim.sq_entries;
	p->sq_entries = entries;
	if (sim.cq_entries)
		p->cq_entries = sim.cq_entries;
	*r = (struct ring) { .ring = ring };
	r->sqes = sim_alloc(entries * sizeof(*r->sqes));
	r->cqes = sim_alloc(p->cq_entries * sizeof(*r->cqes));
	list_init(&r->ops);
	list_init(&r->overflow);
	*ring = (struct io_uring) {
		.sq = {
			.khead = &r->sq_head,
			.kflags = &r->sq_flags,
			.sqes = r->sqes,
			.ring_mask = entries - 1,
			.ring_entries = entries,
		},
		.cq = {
			.khead = &r->cq_head,
			.ktail = &r->cq_tail,
			.cqes = r->cqes,
			.ring_mask = p->cq_entries - 1,
			.ring_entries = p->cq_entries,
		},
		.ring_fd = 900 + (r - rings),
		.flags = p->flags,
	};
	return 0;
}

int io_uring_register_ring_fd(struct io_uring *ring)
{
	(void)ring;
	return 1;
}

int io_uring_register_buf_ring(struct io_uring *ring,
			       struct io_uring_buf_reg *reg, unsigned int flags)
{
	struct ring *r = ring_of(ring);

	(void)flags;
	r->bufs = (void *)(uintptr_t)reg->ring_addr;
	r->nr_bufs = reg->ring_entries;
	r->provided = sim_alloc(r->nr_bufs * sizeof(*r->provided));
	return 0;
}

void io_uring_queue_exit(struct io_uring *ring)
{
	struct ring *r = ring_of(ring);
	struct list *entry;

	see_buffers(r);
	while (r->bufs && r->head != r->seen)
		take_buffer(r);
	while (!list_empty(&r->ops))
		op_free(container_of(r->ops.next, struct op, all));
	while ((entry = list_pop(&r->overflow)))
		sim_free(container_of(entry, struct completion, all));
	sim_free(r->sqes);
	sim_free(r->cqes);
	sim_free(r->provided);
	r->ring = NULL;
	r->bufs = NULL;
}

int io_uring_submit(struct io_uring *ring)
{
	static const int errors[] = { -EAGAIN, -EBUSY, -EINTR };
	struct ring *r = ring_of(ring);
	int nr = 0;

	sim.shield++;
	while (r->sq_head != ring->sq.sqe_tail) {
		/* Linked requests are submitted together. */
		if (sim.phase == SIM_RUN && !r->last &&
		    rng_hits(&sim.kernel, sim.error)) {
			sim.shield--;
			return nr ? nr : errors[rng_below(&sim.kernel, 3)];
		}
		issue(r, &r->sqes[r->sq_head & ring->sq.ring_mask]);
		r->sq_head++;
		nr++;
	}
	see_buffers(r);
	flush_overflow(r);
	sim.shield--;
	return nr;
}

/* Ends a turn: the world goes on. */
static int enter(struct io_uring *ring, struct io_uring *wait)
{
	int r;

	inside_check(ring);
	sim.turns++;
	r = io_uring_submit(ring);
	if (r >= 0 && wait && sim.phase == SIM_RUN &&
	    rng_hits(&sim.kernel, sim.error))
		return -EINTR;
	/* After a part of what is prepared the kernel does not wait. */
	if (r < 0 || ring_of(ring)->sq_head != ring->sq.sqe_tail)
		return r;
	thread_yield(wait);
	flush_overflow(ring_of(ring));
	return r;
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned int nr)
{
	(void)nr;
	return enter(ring, ring);
}

int io_uring_submit_and_get_events(struct io_uring *ring)
{
	return enter(ring, NULL);
}
