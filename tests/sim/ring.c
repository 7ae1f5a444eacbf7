// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * io_uring: the queues, the provided buffers, and the functions of liburing that
 * the daemon calls. Requests complete when the seed says so, in any order that the
 * kernel allows.
 */
#include <errno.h>
#include <sanitizer/asan_interface.h>

#include "tests/sim/lives.h"
#include "tests/sim/ring.h"

#define RINGS		8

/* Turns in a row without news, a request or a wait: the thread spins. */
#define IDLE_MOST	32

/* A completion that waits for room in the queue. */
struct completion {
	struct list all;
	struct io_uring_cqe cqe;
};

static struct ring rings[RINGS];

/* Those that are set up. */
#define for_each_ring(r) \
	for (r = rings; r < rings + RINGS; r++) \
		if ((r)->ring)

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

void ring_post(struct ring *r, uint64_t data, int result, uint32_t flags)
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

void op_done(struct ring *r, struct op *op, int result, uint32_t flags)
{
	struct op *limit;

	if (!(op->sqe.flags & IOSQE_CQE_SKIP_SUCCESS) || result < 0)
		ring_post(r, op->sqe.user_data, result, flags);
	for_each_op(limit, r) {
		if (limit->limits != op)
			continue;
		ring_post(r, limit->sqe.user_data, -ECANCELED, 0);
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

bool ring_has_buffer(struct ring *r)
{
	see_buffers(r);
	return r->head != r->seen;
}

const struct io_uring_buf *ring_take_buffer(struct ring *r)
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

/* ----------------------------------------------------------------- progress */

/* Completes what is ready, in an order of the seed's. */
static bool ring_progress(struct ring *r, struct rng *rng, bool all)
{
	uint32_t nr = 0, skip;
	struct op *op;

	for_each_op(op, r)
		nr += op_is_ready(op);
	if (!nr)
		return false;
	do {
		if (!all && !rng_hits(rng, sim.complete))
			continue;
		skip = rng_below(rng, nr);
		for_each_op(op, r) {
			if (!op_is_ready(op) || skip--)
				continue;
			op_complete(r, op);
			break;
		}
	} while (--nr);
	return true;
}

bool rings_progress(struct rng *rng, bool all)
{
	struct ring *r;
	bool some = false;

	for_each_ring(r)
		if (ring_progress(r, rng, all))
			some = true;
	return some;
}

uint64_t rings_next_ns(void)
{
	uint64_t next_ns = EXPIRY_NEVER, left_ns;
	struct ring *r;
	struct op *op;

	for_each_ring(r) {
		for_each_op(op, r) {
			if (!op_is_timeout(op))
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

void rings_write_some(struct rng *rng)
{
	struct ring *r;
	struct op *op;

	for_each_ring(r)
		for_each_op(op, r)
			if (op->sqe.opcode == IORING_OP_WRITE &&
			    rng_hits(rng, 500))
				disk_write_late(op->sqe.fd,
						op->iov[0].iov_base,
						op->iov[0].iov_len,
						op->sqe.off);
}

bool rings_use(int fd, bool sends)
{
	struct ring *r;
	struct op *op;

	for_each_ring(r) {
		for_each_op(op, r) {
			if (op->sqe.fd == fd && !op_is_timeout(op) &&
			    op->sqe.opcode != IORING_OP_POLL_ADD &&
			    (!sends || op->sqe.opcode == IORING_OP_SEND ||
			     op->sqe.opcode == IORING_OP_SENDMSG))
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
		ring_take_buffer(r);
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
		op_issue(r, &r->sqes[r->sq_head & ring->sq.ring_mask]);
		r->sq_head++;
		nr++;
	}
	see_buffers(r);
	flush_overflow(r);
	sim.shield--;
	return nr;
}

/* Checks that a thread without news or a request waits for some. */
static void check_wait(struct io_uring *ring, const struct io_uring *wait)
{
	struct ring *r = ring_of(ring);

	if (wait || ring_has_completion(ring) || r->sq_head != ring->sq.sqe_tail)
		r->nr_idle = 0;
	else if (++r->nr_idle > IDLE_MOST)
		sim_fail("%u turns without news, and the daemon does not wait",
			 r->nr_idle);
}

/* Ends a turn: the world goes on. */
static int enter(struct io_uring *ring, struct io_uring *wait)
{
	int r;

	inside_check(ring);
	check_wait(ring, wait);
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
