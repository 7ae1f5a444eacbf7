// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Driver: a library of timers in this process. No socket, no batch, no other
 * client: the least cost for a program that keeps its own timers.
 */
#include <string.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "bench/daemon/local.h"
#include "bench/daemon/driver.h"

#define REQUESTS_MAX	1000000U
#define FAR_NS		(3600 * NSEC_PER_SEC)

uint64_t local_fired;

static uint32_t *armed;		/* [0] to [@nr_armed - 1]: the armed ones */
static uint32_t nr_armed, nr_all;
static uint64_t random_state = 1;

static uint64_t far_ns(void)
{
	return FAR_NS + bench_below(&random_state, FAR_NS);
}

static void arm_some(uint32_t nr)
{
	while (nr--)
		local.arm(armed[nr_armed++], far_ns());
}

static void refresh_some(uint32_t nr)
{
	while (nr--)
		local.refresh(armed[bench_below(&random_state, nr_armed)],
			      far_ns());
}

static void cancel_some(uint32_t nr)
{
	while (nr--) {
		uint32_t i = bench_below(&random_state, nr_armed);
		uint32_t timer = armed[i];

		local.cancel(timer);
		armed[i] = armed[--nr_armed];
		armed[nr_armed] = timer;
	}
}

static void fire_some(uint32_t nr)
{
	uint64_t wanted = local_fired + nr;
	uint32_t i;

	for (i = 0; i < nr; i++)
		local.arm(armed[nr_armed + i], 1);
	local.run(wanted);
}

static void fill(const char *path, uint32_t timers)
{
	struct rlimit files;
	uint32_t i;

	(void)path;
	/* Allow as many descriptors as timers, if possible. */
	files.rlim_cur = timers + REQUESTS_MAX + 64;
	files.rlim_max = files.rlim_cur;
	setrlimit(RLIMIT_NOFILE, &files);

	nr_all = local.nr_max();
	if (nr_all > timers + REQUESTS_MAX)
		nr_all = timers + REQUESTS_MAX;
	if (nr_all <= timers)
		die("%s can have no more than %u timers here", local.name,
		    nr_all);
	armed = driver_map((uint64_t)nr_all * sizeof(*armed));
	for (i = 0; i < nr_all; i++)
		armed[i] = i;
	local.init(nr_all);
	arm_some(timers);
}

static bool measure(const struct order *order, struct traffic_cost *cost)
{
	uint64_t took_ns = bench_now();
	void (*some)(uint32_t nr);

	if (!strcmp(order->op, "arm"))
		some = arm_some;
	else if (!strcmp(order->op, "refresh"))
		some = refresh_some;
	else if (!strcmp(order->op, "cancel"))
		some = cancel_some;
	else if (!strcmp(order->op, "fire"))
		some = fire_some;
	else
		return false;
	if (some != refresh_some && some != cancel_some &&
	    nr_armed + order->requests > nr_all)
		return false;
	some(order->requests);
	cost->took_ns = bench_now() - took_ns;
	return true;
}

int main(int argc, char **argv)
{
	struct driver driver = {
		.name = local.name,
		.fill = fill,
		.measure = measure,
	};

	return driver_main(&driver, argc, argv);
}
