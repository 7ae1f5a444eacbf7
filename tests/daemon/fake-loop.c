// SPDX-License-Identifier: LGPL-2.1-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "daemon/loop/loop.h"
#include "tests/daemon/fake-loop.h"

uint64_t fake_now_ns;

uint64_t loop_now(struct loop *loop, uint32_t clock_id)
{
	(void)loop;
	(void)clock_id;
	return fake_now_ns;
}

struct io_uring_sqe *loop_sqe(struct loop *loop, struct loop_op *op)
{
	static struct io_uring_sqe sqe;

	(void)loop;
	(void)op;
	return &sqe;
}

void loop_fail(struct loop *loop, const char *what, int result)
{
	(void)loop;
	(void)what;
	(void)result;
	fail();
}

int loop_clock(uint32_t clock_id)
{
	return clock_id == CLOCK_MONOTONIC ? 1 : clock_id == CLOCK_BOOTTIME ? 2 : 0;
}

uint32_t loop_timeout_clock(uint32_t clock_id)
{
	(void)clock_id;
	return 0;
}

struct __kernel_timespec loop_timespec(int64_t ns)
{
	return (struct __kernel_timespec) { .tv_nsec = ns };
}
