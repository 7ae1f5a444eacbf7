// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libevent's timers: a binary heap of pointers, each event with its position.
 * Its common timeouts, one list for each time to live, have only their first
 * event in the heap. The clock is this program's (clock.h); each run of the
 * loop polls its descriptors once.
 */
#include <stdlib.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "bench/bench.h"
#include "clock.h"
#include "peer.h"

/**
 * struct libevent - an event base
 * @ttl: libevent's name for the time to live; NULL: by request
 */
struct libevent {
	struct event_base *base;
	const struct timeval *ttl;
	uint64_t now_ns;
	uint32_t *due;		/* where the next callback writes */
	struct event timers[];
};

/* The base of the running loop. */
static struct libevent *running;

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
	struct event *timer = arg;

	(void)fd;
	(void)events;
	*running->due++ = timer - running->timers;
}

static void *init(const struct peer *peer, uint32_t nr)
{
	struct libevent *libevent = malloc(sizeof(*libevent) +
					   nr * sizeof(*libevent->timers));
	struct timeval ttl = { .tv_sec = peer->ttl_ns / NSEC_PER_SEC };
	struct event_config *config = event_config_new();
	uint32_t i;

	if (!libevent || !config)
		die("no memory");
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	libevent->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!libevent->base)
		die("event_base_new_with_config() failed");
	libevent->ttl = NULL;
	if (peer->ttl_ns) {
		libevent->ttl = event_base_init_common_timeout(libevent->base,
							       &ttl);
		if (!libevent->ttl)
			die("event_base_init_common_timeout() failed");
	}
	libevent->now_ns = 0;
	for (i = 0; i < nr; i++)
		if (evtimer_assign(&libevent->timers[i], libevent->base,
				   on_timer, &libevent->timers[i]))
			die("evtimer_assign() failed");
	return libevent;
}

static void deinit(void *self)
{
	struct libevent *libevent = self;

	event_base_free(libevent->base);
	free(libevent);
}

/* Moves a pending timer by adding it again. */
static void add(struct libevent *libevent, struct event *timer,
		uint64_t deadline_ns)
{
	int64_t after_us = (int64_t)(deadline_ns - libevent->now_ns) / 1000;
	struct timeval after;
	int err;

	if (libevent->ttl) {
		/* Arm it when exactly that time to live is left. */
		clock_set(deadline_ns - PEER_TTL_NS);
		err = evtimer_add(timer, libevent->ttl);
	} else {
		after.tv_sec = after_us / 1000000;
		after.tv_usec = after_us % 1000000;
		err = evtimer_add(timer, &after);
	}
	if (err)
		die("evtimer_add() failed");
}

static void process(void *self, enum peer_op op,
		    const struct peer_request *requests, uint32_t count)
{
	struct libevent *libevent = self;
	struct event *timer;
	uint32_t i;

	clock_set(libevent->now_ns);
	for (i = 0; i < count; i++) {
		timer = &libevent->timers[requests[i].timer];
		if (op == PEER_CANCEL)
			evtimer_del(timer);
		else
			add(libevent, timer, requests[i].deadline_ns);
	}
}

static uint32_t deliver(void *self, uint64_t now_ns, uint32_t *due)
{
	struct libevent *libevent = self;

	libevent->now_ns = now_ns;
	libevent->due = due;
	running = libevent;
	clock_set(now_ns);
	event_base_loop(libevent->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	return libevent->due - due;
}

const struct peer peer_libevent = {
	.name = "libevent",
	.most = PEER_HUGE,
	.version = event_get_version,
	.init = init,
	.deinit = deinit,
	.process = process,
	.deliver = deliver,
};

const struct peer peer_libevent_common = {
	.name = "libevent-common",
	.most = PEER_HUGE,
	.version = event_get_version,
	.ttl_ns = PEER_TTL_NS,
	.init = init,
	.deinit = deinit,
	.process = process,
	.deliver = deliver,
};
