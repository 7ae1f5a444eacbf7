// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: a library of timers in this process, one of bench/heap/peer.h
 * (LOCAL_PEER), with the real clock. No socket, no other client: the least cost
 * for a program that keeps its own timers.
 */
#include <string.h>

#include "bench/bench.h"
#include "bench/daemon/driver.h"
#include "bench/heap/clock.h"
#include "bench/heap/peer.h"

#define REQUESTS_MAX	1000000U
#define FAR_NS		(3600 * NSEC_PER_SEC)

static const struct peer *const peer = &LOCAL_PEER;
static void *state;
static uint64_t now_ns = NSEC_PER_SEC;	/* of the last delivery */
static uint32_t *armed;		/* [0] to [@nr_armed - 1]: the armed ones */
static uint32_t *due;
static uint32_t nr_armed, nr_all;
static uint64_t random_state = 1;

/* The libraries read the real time. */
void clock_set(uint64_t unused)
{
	(void)unused;
}

static uint64_t far_ns(void)
{
	return now_ns + FAR_NS + bench_below(&random_state, FAR_NS);
}

static uint32_t any_armed(void)
{
	return bench_below(&random_state, nr_armed);
}

static struct peer_request arm(void)
{
	return (struct peer_request) { far_ns(), armed[nr_armed++] };
}

static struct peer_request refresh(void)
{
	return (struct peer_request) { far_ns(), armed[any_armed()] };
}

static struct peer_request cancel(void)
{
	uint32_t i = any_armed(), timer = armed[i];

	armed[i] = armed[--nr_armed];
	armed[nr_armed] = timer;
	return (struct peer_request) { .timer = timer };
}

/* Makes a timer due that is not among the armed ones. */
static struct peer_request arm_due(void)
{
	static uint32_t turn;

	return (struct peer_request) {
		now_ns, armed[nr_armed + turn++ % (nr_all - nr_armed)]
	};
}

/* Makes requests before the clock runs. Returns the time the peer took. */
static uint64_t work(enum peer_op op, struct peer_request (*make)(void),
		     uint32_t nr)
{
	struct peer_request requests[PEER_BATCH];
	uint64_t took_ns = 0;
	uint32_t i, count;

	for (; nr; nr -= count) {
		count = nr < PEER_BATCH ? nr : PEER_BATCH;
		for (i = 0; i < count; i++)
			requests[i] = make();
		took_ns -= bench_now();
		peer->process(state, op, requests, count);
		took_ns += bench_now();
	}
	return took_ns;
}

static void fill(const char *path, uint32_t timers)
{
	uint32_t i;

	(void)path;
	nr_all = timers + REQUESTS_MAX;
	armed = driver_map((uint64_t)nr_all * sizeof(*armed));
	due = driver_map((uint64_t)nr_all * sizeof(*due));
	for (i = 0; i < nr_all; i++)
		armed[i] = i;
	state = peer->init(peer, nr_all);
	peer->deliver(state, now_ns, due);
	work(PEER_ARM, arm, timers);
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	uint32_t nr = order->requests, fired = 0;

	if (nr > nr_all - nr_armed && strcmp(order->op, "refresh") &&
	    strcmp(order->op, "cancel"))
		return false;
	if (!strcmp(order->op, "arm")) {
		cost->took_ns = work(PEER_ARM, arm, nr);
	} else if (!strcmp(order->op, "refresh")) {
		cost->took_ns = work(PEER_REFRESH, refresh, nr);
	} else if (!strcmp(order->op, "cancel")) {
		cost->took_ns = work(PEER_CANCEL, cancel, nr);
	} else if (!strcmp(order->op, "fire")) {
		cost->took_ns = work(PEER_ARM, arm_due, nr) - bench_now();
		while (fired < nr)
			fired += peer->deliver(state, now_ns, due);
		cost->took_ns += bench_now();
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct driver driver = {
		.fill = fill,
		.measure = measure,
	};

	driver.name = peer->name;
	return driver_main(&driver, argc, argv);
}
