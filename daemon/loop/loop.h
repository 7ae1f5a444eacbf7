/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop: requests to the kernel and their completions, in one thread.
 *
 * A struct io_uring_sqe describes a request, and a struct loop_ops carries it
 * out. On io_uring a turn is one io_uring_enter(), and one more for calls of the
 * module, see worker.c.
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/**
 * struct loop_request - what the epoll loop has to know of a request
 * @next: the next that has completed
 * @addr: as of the SQE; likewise @fd, @len, @opcode and @flags
 * @deadline_ns: when it times out, on the clock of number @clock
 * @result: of the completion that has to be run; likewise @cqe_flags
 * @position: in the heap of timeouts, 0 = not there
 * @pending: it will complete
 * @completed: its completion has to be run; if it is @pending as well, another
 *	comes after that
 * @canceled: @pending ends with that completion
 * @multishot: it completes for each buffer
 * @select: it takes the next buffer
 * @watched: its file is probably registered by epoll
 */
struct loop_request {
	struct loop_op *next;
	uint64_t addr;
	uint64_t deadline_ns;
	int32_t fd;
	uint32_t len;
	uint32_t flags;
	int32_t result;
	uint32_t cqe_flags;
	uint32_t position;
	uint8_t opcode;
	uint8_t clock;
	bool pending;
	bool completed;
	bool canceled;
	bool multishot;
	bool select;
	bool watched;
};

/**
 * struct loop_op - a pending completion
 * @done: called once for each completion, in their order
 * @request: for the epoll loop only; zero at first
 *
 * @done should only record the event; the work is done later in the turn.
 * Embedded in its owner, which must stay until the last completion (the one
 * without IORING_CQE_F_MORE in @flags).
 */
struct loop_op {
	void (*done)(struct loop_op *op, int result, uint32_t flags);
	struct loop_request request;
};

struct loop;
struct epoll_loop;

/**
 * struct loop_ops - what carries requests out
 * @name: in the log; @kind: EXPIRY_LOOP_*
 * @needs_probe: kernels differ in what it does, see probe.h
 * @init: sets @loop->ring.sq up, where requests are prepared; -errno
 * @deinit: drops pending requests without a completion
 * @provide: takes the only ring of buffers, @nr of them, for receives with
 *	IOSQE_BUFFER_SELECT; -errno
 * @submit: starts prepared requests, as far as possible; runs no completion.
 *	Returns -EINTR, -EAGAIN or -EBUSY where another try may do more.
 * @turn: submits, waits for a completion if @wait, calls loop_turned(), then
 *	runs at most LOOP_COMPLETIONS_MAX completions; clears @loop->reaped if
 *	some are left. Returns 0 or a fatal -errno.
 */
struct loop_ops {
	const char *name;
	uint32_t kind;
	bool needs_probe;
	int (*init)(struct loop *loop);
	void (*deinit)(struct loop *loop);
	int (*provide)(struct loop *loop, struct io_uring_buf_ring *buffers,
		       uint32_t nr);
	int (*submit)(struct loop *loop);
	int (*turn)(struct loop *loop, bool wait);
};

extern const struct loop_ops loop_uring;	/* where it is allowed */
extern const struct loop_ops loop_epoll;	/* anywhere */

#define LOOP_SQ_ENTRIES		4096

/* Completions run in one turn; what is left comes first in the next. */
#define LOOP_COMPLETIONS_MAX	8192

#define LOOP_BUFFERS	0	/* the group of the only ring of buffers */

#define LOOP_CLOCKS	3	/* REALTIME, MONOTONIC, BOOTTIME */

/**
 * struct loop - the loop
 * @ops: carries requests out; NULL: there is no loop
 * @ring: for loop.c and @ops only
 * @epoll: for epoll.c only
 * @now_ns: time on each clock, if @now_known
 * @now_known: bit n: @now_ns[n] is this turn's
 * @turns: number of turns
 * @reaped: earlier requests are submitted, all completions handled
 * @ahead_ns: each clock's lead, see time-namespace.h (const after start)
 * @real_least_ns: CLOCK_REALTIME is at least so far ahead of CLOCK_BOOTTIME, and at
 *	most @real_most_ns: since the last step that the clock watch has reported
 * @has_offsets: some clock is not the host's (const after start)
 * @cancel: completes all requests that cancel another
 * @error: result of every further loop_turn(), 0 = none
 *
 * Without io_uring only @ring.sq is in use. @reaped is about the requests before
 * this turn. @ahead_ns is the lead over the clock of absolute timeouts.
 */
struct loop {
	const struct loop_ops *ops;
	struct io_uring ring;
	struct epoll_loop *epoll;
	uint64_t now_ns[LOOP_CLOCKS];
	uint32_t now_known;
	uint64_t turns;
	bool reaped;
	bool has_offsets;
	int64_t ahead_ns[LOOP_CLOCKS];
	int64_t real_least_ns;
	int64_t real_most_ns;
	struct loop_op cancel;
	int error;
};

/* Initializes the loop. Returns 0 or -errno. -EPERM, -EACCES, -ENOSYS:
 * io_uring is forbidden or absent; -ENOMEM.
 */
int loop_init(struct loop *loop, const struct loop_ops *ops);
void loop_deinit(struct loop *loop);

/* For a struct loop_ops without io_uring: requests are prepared in plain memory,
 * @nr (a power of two) of them. Those from @loop->ring.sq.sqe_head to sqe_tail
 * are prepared; @submit moves sqe_head. -ENOMEM
 */
int loop_ring_init(struct loop *loop, uint32_t nr);
void loop_ring_deinit(struct loop *loop);

/* Begins the completions of a turn; for a struct loop_ops. */
void loop_turned(struct loop *loop);

/* Returns an entry to be prepared, which is submitted with this turn and
 * completes by @op. Never NULL: a full ring is submitted early.
 */
struct io_uring_sqe *loop_sqe(struct loop *loop, struct loop_op *op);

/* Makes sure that the next @nr entries are submitted together, as linked ones
 * must be.
 */
void loop_reserve(struct loop *loop, uint32_t nr);

/* Starts what is prepared now, ahead of what is prepared later. */
void loop_submit(struct loop *loop);

/* Cancels @op's request; it completes with -ECANCELED, or normally if that is
 * too late.
 */
void loop_cancel(struct loop *loop, struct loop_op *op);

/* Logs that the kernel refuses the indispensable @what with @error, and lets
 * the next loop_turn() return that.
 */
void loop_fail(struct loop *loop, const char *what, int error);

/* Runs one turn: submits, waits for a completion if @wait, runs completions.
 * Blocks nowhere else. Returns 0 or a fatal -errno.
 */
int loop_turn(struct loop *loop, bool wait);

/* Returns now on CLOCK_REALTIME, _MONOTONIC or _BOOTTIME; constant during a
 * turn.
 */
uint64_t loop_now(struct loop *loop, uint32_t clock_id);

/* Returns the present time of any clock. */
uint64_t loop_now_exactly(clockid_t clock_id);

/* Returns @ns as a timeout for the kernel, at least 1: 0 would mean none. */
struct __kernel_timespec loop_timespec(int64_t ns);

/* Returns the number of a clock from 0 to LOOP_CLOCKS - 1, or -1: an unknown
 * clock.
 */
int loop_clock(uint32_t clock_id);

/* Returns the flag that puts a timeout on a clock. */
uint32_t loop_timeout_clock(uint32_t clock_id);

#endif /* DAEMON_LOOP_H */
