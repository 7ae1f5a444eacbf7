// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libev's timers: a 4-ary heap of {deadline, watcher}, each watcher with its
 * position. The clock is this program's (clock.h); each ev_run() polls its
 * descriptors once.
 */
#include <stdlib.h>
#include <ev.h>

#include "bench/bench.h"
#include "clock.h"
#include "peer.h"

struct libev {
	struct ev_loop *loop;
	uint64_t now_ns;
	uint32_t *due;		/* where the next callback writes */
	ev_timer timers[];
};

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct libev *libev = ev_userdata(loop);

	(void)events;
	*libev->due++ = timer - libev->timers;
}

static void *init(const struct peer *peer, uint32_t nr)
{
	struct libev *libev = malloc(sizeof(*libev) +
				     nr * sizeof(*libev->timers));
	uint32_t i;

	(void)peer;
	if (!libev)
		die("no memory");
	libev->now_ns = 0;
	libev->loop = ev_loop_new(EVFLAG_AUTO);
	if (!libev->loop)
		die("ev_loop_new() failed");
	ev_set_userdata(libev->loop, libev);
	for (i = 0; i < nr; i++)
		ev_timer_init(&libev->timers[i], on_timer, 0, 0);
	return libev;
}

static void deinit(void *self)
{
	struct libev *libev = self;

	ev_loop_destroy(libev->loop);
	free(libev);
}

static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	struct libev *libev = self;
	ev_timer *timer;
	double after;
	uint32_t i;

	for (i = 0; i < count; i++) {
		timer = &libev->timers[requests[i].timer];
		after = (int64_t)(requests[i].deadline_ns - libev->now_ns) *
			1e-9;
		switch (op) {
		case PEER_ARM:
			ev_timer_set(timer, after, 0);
			ev_timer_start(libev->loop, timer);
			break;
		case PEER_REFRESH:
			/* Moves an active timer. It needs a repeat for that,
			 * which would start it again when due.
			 */
			timer->repeat = after;
			ev_timer_again(libev->loop, timer);
			timer->repeat = 0;
			break;
		default:
			ev_timer_stop(libev->loop, timer);
			break;
		}
	}
}

static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct libev *libev = self;

	libev->now_ns = now_ns;
	libev->due = due;
	clock_set(now_ns);
	/* Without a timer it neither runs nor reads the time. */
	ev_now_update(libev->loop);
	ev_run(libev->loop, EVRUN_NOWAIT);
	return libev->due - due;
}

static const char *version(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d.%d", ev_version_major(),
		 ev_version_minor());
	return text;
}

const struct peer peer_libev = {
	.name = "libev",
	.most = PEER_ANY,
	.version = version,
	.init = init,
	.deinit = deinit,
	.process = process,
	.deliver = deliver,
};
