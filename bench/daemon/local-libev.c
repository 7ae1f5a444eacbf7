// SPDX-License-Identifier: LGPL-2.1-or-later
#include <ev.h>

#include "bench/bench.h"
#include "bench/daemon/local.h"
#include "bench/daemon/driver.h"

static struct ev_loop *loop;
static ev_timer *timers;
static uint64_t wanted;

static void fired(struct ev_loop *of, ev_timer *timer, int what)
{
	(void)timer;
	(void)what;
	if (++local_fired == wanted)
		ev_break(of, EVBREAK_ALL);
}

static uint32_t nr_max(void)
{
	return UINT32_MAX;
}

static void init(uint32_t nr)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	if (!loop)
		die("libev");
	timers = driver_map((uint64_t)nr * sizeof(*timers));
}

static void arm(uint32_t i, uint64_t in_ns)
{
	ev_timer_init(&timers[i], fired, in_ns / 1e9, 0.);
	ev_timer_start(loop, &timers[i]);
}

/* ev_timer_again() takes its time from the period; reset that afterwards. */
static void refresh(uint32_t i, uint64_t in_ns)
{
	timers[i].repeat = in_ns / 1e9;
	ev_timer_again(loop, &timers[i]);
	timers[i].repeat = 0.;
}

static void cancel(uint32_t i)
{
	ev_timer_stop(loop, &timers[i]);
}

static void run(uint64_t nr)
{
	wanted = nr;
	ev_run(loop, 0);
}

const struct local local = {
	.name = "libev",
	.nr_max = nr_max,
	.init = init,
	.arm = arm,
	.refresh = refresh,
	.cancel = cancel,
	.run = run,
};
