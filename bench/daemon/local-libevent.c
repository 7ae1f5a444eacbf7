// SPDX-License-Identifier: LGPL-2.1-or-later
#include <event2/event.h>
#include <event2/event_struct.h>

#include "bench/bench.h"
#include "bench/daemon/local.h"
#include "bench/daemon/driver.h"

static struct event_base *base;
static struct event *events;
static uint64_t wanted;

static void fired(evutil_socket_t fd, short what, void *data)
{
	(void)fd;
	(void)what;
	(void)data;
	if (++local_fired == wanted)
		event_base_loopbreak(base);
}

static uint32_t nr_max(void)
{
	return UINT32_MAX;
}

static void init(uint32_t nr)
{
	uint32_t i;

	base = event_base_new();
	if (!base)
		die("libevent");
	events = driver_map((uint64_t)nr * sizeof(*events));
	for (i = 0; i < nr; i++)
		evtimer_assign(&events[i], base, fired, NULL);
}

static void arm(uint32_t i, uint64_t in_ns)
{
	struct timeval tv = {
		.tv_sec = in_ns / NSEC_PER_SEC,
		.tv_usec = in_ns % NSEC_PER_SEC / 1000,
	};

	evtimer_add(&events[i], &tv);
}

static void cancel(uint32_t i)
{
	evtimer_del(&events[i]);
}

static void run(uint64_t nr)
{
	wanted = nr;
	event_base_dispatch(base);
}

const struct local local = {
	.name = "libevent",
	.nr_max = nr_max,
	.init = init,
	.arm = arm,
	.refresh = arm,
	.cancel = cancel,
	.run = run,
};
