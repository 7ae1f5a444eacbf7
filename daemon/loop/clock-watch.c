// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/loop/clock-watch.h"
#include "daemon/util/util.h"

/* Later than any clock (the year 2262), yet a time the kernel can store. */
#define CLOCK_FAR	(INT64_MAX / 1000000000 - 1)

/* Measures how far CLOCK_REALTIME is ahead of CLOCK_BOOTTIME. Only a step changes it: a
 * slew moves both, and both count suspend. The clocks are not read at once, so that it
 * lies between two bounds.
 */
static void measure(int64_t *least_ns, int64_t *most_ns)
{
	uint64_t before_ns = loop_now_exactly(CLOCK_BOOTTIME);
	uint64_t real_ns = loop_now_exactly(CLOCK_REALTIME);

	*most_ns = real_ns - before_ns;
	*least_ns = real_ns - loop_now_exactly(CLOCK_BOOTTIME);
}

bool clock_is_ahead_of_watch(const struct loop *loop)
{
	int64_t least_ns, most_ns;

	measure(&least_ns, &most_ns);
	return least_ns > loop->real_most_ns || most_ns < loop->real_least_ns;
}

static int clock_watch(struct clock_watch *clock)
{
	struct itimerspec far = { .it_value.tv_sec = CLOCK_FAR };
	struct io_uring_sqe *sqe;

	/* Before the watch: what is set behind it is reported. */
	measure(&clock->loop->real_least_ns, &clock->loop->real_most_ns);
	/* -ECANCELED: the clock was set again meanwhile; the watch is active.
	 */
	if (timerfd_settime(clock->fd,
			    TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far,
			    NULL) < 0 &&
	    errno != ECANCELED)
		return -errno;
	sqe = loop_sqe(clock->loop, &clock->op);
	io_uring_prep_poll_add(sqe, clock->fd, POLLIN);
	return 0;
}

static void clock_was_set(struct loop_op *op, int result, uint32_t flags)
{
	struct clock_watch *clock = container_of(op, struct clock_watch, op);

	(void)flags;
	if (result == -ECANCELED)
		return;
	clock_watch(clock);
	clock->was_set(clock->data);
}

int clock_init(struct clock_watch *clock, struct loop *loop,
	       void (*was_set)(void *data), void *data)
{
	*clock = (struct clock_watch) {
		.loop = loop,
		.was_set = was_set,
		.data = data,
		.op.done = clock_was_set,
	};
	clock->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (clock->fd < 0)
		return -errno;
	return clock_watch(clock);
}

void clock_deinit(struct clock_watch *clock)
{
	if (clock->fd > 0)
		close(clock->fd);
	clock->fd = -1;
}
