/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loop: one io_uring, one thread, one io_uring_enter() a turn; one more for
 * calls of the module, see server.c.
 */
#ifndef DAEMON_LOOP_H
#define DAEMON_LOOP_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/**
 * struct loop_op - a pending completion
 * @done: called once for each completion, in their order
 *
 * @done should only record the event; the work is done later in the turn.
 * Embedded in its owner, which must stay until the last completion (the one
 * without IORING_CQE_F_MORE in @flags).
 */
struct loop_op {
	void (*done)(struct loop_op *op, int result, uint32_t flags);
};

#define LOOP_CLOCKS	3	/* REALTIME, MONOTONIC, BOOTTIME */

/**
 * struct loop - the loop
 * @ring: for the use of loop_sqe() and buffers.c only
 * @now_ns: time on each clock, if @now_known
 * @now_known: bit n: @now_ns[n] is this turn's
 * @turns: number of turns
 * @settled: earlier requests are submitted, all completions handled
 * @setup: IORING_SETUP_* flags that this kernel took
 * @ahead_ns: each clock's lead, see time-namespace.h (const after start)
 * @has_offsets: some clock is not the host's (const after start)
 * @cancel: completes all requests that cancel another
 * @error: result of every further loop_turn(), 0 = none
 *
 * @settled is about the requests before this turn. @ahead_ns is the lead over
 * the clock of absolute timeouts.
 */
struct loop {
	struct io_uring ring;
	uint64_t now_ns[LOOP_CLOCKS];
	uint32_t now_known;
	uint32_t setup;
	uint64_t turns;
	bool settled;
	bool has_offsets;
	int64_t ahead_ns[LOOP_CLOCKS];
	struct loop_op cancel;
	int error;
};

/* Initializes the loop. Returns 0 or -errno. -EPERM, -ENOSYS: io_uring is
 * forbidden or absent; -ENOMEM.
 */
int loop_init(struct loop *loop);
void loop_deinit(struct loop *loop);

/* Returns an entry to be prepared, which is submitted with this turn and
 * completes by @op. Never NULL: a full ring is submitted early.
 */
struct io_uring_sqe *loop_sqe(struct loop *loop, struct loop_op *op);

/* Makes sure that the next @nr entries are submitted together, as linked ones
 * must be.
 */
void loop_reserve(struct loop *loop, uint32_t nr);

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
