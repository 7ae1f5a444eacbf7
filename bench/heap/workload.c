// SPDX-License-Identifier: LGPL-2.1-or-later
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "workload.h"

/* Of every kind of deadline, the mean or the only one. */
#define TTL_NS		PEER_TTL_NS

/* ------------------------------------------------------------------------
 * Chance
 */

/* Returns a number above 0 and below 1. */
static double uniform(struct load *load)
{
	return ((bench_random(&load->random) >> 12) + 0.5) * 0x1p-52;
}

static double normal(struct load *load)
{
	double radius = sqrt(-2 * log(uniform(load)));

	return radius * cos(2 * M_PI * uniform(load));
}

static uint64_t exponential_ns(struct load *load)
{
	return -log(uniform(load)) * TTL_NS;
}

/* Picks a batch of different timers. */
static void pick(struct load *load, uint32_t timers[PEER_BATCH])
{
	uint32_t seen[4 * PEER_BATCH] = { 0 }, i, timer, place;

	for (i = 0; i < PEER_BATCH; ) {
		timer = bench_below(&load->random, load->nr);
		place = timer % (4 * PEER_BATCH);
		while (seen[place] && seen[place] != timer + 1)
			place = (place + 1) % (4 * PEER_BATCH);
		if (seen[place])
			continue;
		seen[place] = timer + 1;
		timers[i++] = timer;
	}
}

/* ------------------------------------------------------------------------
 * Steps common to several workloads: some time passes, and expired timers are
 * armed again
 */

typedef uint64_t deadline_t(struct load *load, uint32_t timer);

static uint32_t expire(struct load *load, uint64_t by_ns, deadline_t *deadline)
{
	uint32_t nr = load_advance(load, by_ns), i, timer;

	for (i = 0; i < nr; i++) {
		timer = load->due[i];
		load_add(load, PEER_ARM, timer, deadline(load, timer));
	}
	load_flush(load, PEER_ARM);
	return nr;
}

static void arm_all(struct load *load, deadline_t *deadline)
{
	uint32_t i;

	for (i = 0; i < load->nr; i++)
		load_add(load, PEER_ARM, i, deadline(load, i));
	load_flush(load, PEER_ARM);
}

/* Returns the time in which a batch of timers expires if @nr do in TTL_NS. */
static uint64_t batch_ns(double nr)
{
	return PEER_BATCH * (TTL_NS / nr);
}

static deadline_t from_now_ttl;
static uint64_t from_now_ttl(struct load *load, uint32_t timer)
{
	(void)timer;
	return load->now_ns + TTL_NS;
}

/* ------------------------------------------------------------------------
 * ttl: a cache, filled evenly; expired entries are fetched again at once
 */

static uint64_t ttl_first(struct load *load, uint32_t timer)
{
	return load->now_ns + TTL_NS / load->nr * (timer + 1);
}

static uint64_t ttl_next(struct load *load, uint32_t timer)
{
	return (load->deadline_ns[timer] & ~LOAD_IDLE) + TTL_NS;
}

static void ttl_fill(struct load *load)
{
	arm_all(load, ttl_first);
}

static uint32_t ttl_step(struct load *load)
{
	return expire(load, batch_ns(load->nr), ttl_next);
}

/* ------------------------------------------------------------------------
 * exponential, and storms among such timers: the remaining times have the same
 * distribution as the whole ones
 */

static uint64_t exponential_next(struct load *load, uint32_t timer)
{
	(void)timer;
	return load->now_ns + exponential_ns(load);
}

static void exponential_fill(struct load *load)
{
	arm_all(load, exponential_next);
}

static uint32_t exponential_step(struct load *load)
{
	return expire(load, batch_ns(load->nr), exponential_next);
}

static uint32_t storm_tenth_step(struct load *load)
{
	return expire(load, -log(0.9) * TTL_NS, exponential_next);
}

static uint32_t storm_all_step(struct load *load)
{
	return expire(load, load->latest_ns - load->now_ns + LOAD_GRAIN_NS,
		      exponential_next);
}

/* ------------------------------------------------------------------------
 * lognormal: most are short, some very long
 */

#define SIGMA		2.0
#define MU		(-SIGMA * SIGMA / 2)	/* so that the mean is 1 */

static uint64_t lognormal_next(struct load *load, uint32_t timer)
{
	(void)timer;
	return load->now_ns + exp(MU + SIGMA * normal(load)) * TTL_NS;
}

/* Returns the first deadline of a timer already running. Long ones are more
 * frequent among these, in proportion to their length, and a part has passed.
 */
static uint64_t lognormal_first(struct load *load, uint32_t timer)
{
	double ttl = exp(MU + SIGMA * SIGMA + SIGMA * normal(load));

	(void)timer;
	return load->now_ns + uniform(load) * ttl * TTL_NS;
}

static void lognormal_fill(struct load *load)
{
	arm_all(load, lognormal_first);
}

static uint32_t lognormal_step(struct load *load)
{
	return expire(load, batch_ns(load->nr), lognormal_next);
}

/* ------------------------------------------------------------------------
 * sessions and timeouts: all have TTL_NS, counted from the last access or from
 * the request. Accesses and answers come at random; one timer in a hundred has
 * none in that time.
 */

#define ONE_IN		100

/* One access in this many shortens the session instead. */
#define EARLIER_ONE_IN	20

/* Returns the number of accesses to a timer within its life. */
static double accesses(void)
{
	return log(ONE_IN);
}

/* Returns the last access, or where a lazy peer last checked the timer. The
 * result for a timer is always the same.
 */
static uint64_t accessed_first(struct load *load, uint32_t timer, bool lazy)
{
	uint64_t random = load->random;
	double age, seen;

	load->random = timer * 0x2545f4914f6cdd1dULL;
	age = -log(1 - uniform(load) * (1 - 1.0 / ONE_IN)) / accesses();
	seen = uniform(load) * (1 - 1 / accesses());
	load->random = random;
	return load->now_ns + (lazy || seen > 1 - age ? seen : 1 - age) *
			      TTL_NS;
}

static uint64_t accessed_lazy(struct load *load, uint32_t timer)
{
	return accessed_first(load, timer, load->peer->lazy);
}

static void accessed_fill(struct load *load)
{
	uint64_t deadline_ns;
	uint32_t i;

	arm_all(load, accessed_lazy);
	if (!load->peer->lazy)
		return;
	for (i = 0; i < load->nr; i++) {
		deadline_ns = accessed_first(load, i, false);
		if (deadline_ns > load->deadline_ns[i] + LOAD_GRAIN_NS)
			load_add(load, PEER_REFRESH, i, deadline_ns);
	}
	load_flush(load, PEER_REFRESH);
}

static uint32_t sessions_step(struct load *load)
{
	uint64_t by_ns = batch_ns(load->nr * accesses()), deadline_ns;
	uint32_t timers[PEER_BATCH], i;

	pick(load, timers);
	for (i = 0; i < PEER_BATCH; i++) {
		deadline_ns = load->now_ns + by_ns * i / PEER_BATCH;
		if (bench_below(&load->random, EARLIER_ONE_IN))
			deadline_ns += TTL_NS;
		else
			deadline_ns += uniform(load) * TTL_NS;
		load_add(load, PEER_REFRESH, timers[i], deadline_ns);
	}
	expire(load, by_ns, from_now_ttl);
	return PEER_BATCH;
}

static uint32_t timeouts_step(struct load *load)
{
	uint64_t by_ns = batch_ns(load->nr * accesses());
	uint32_t timers[PEER_BATCH], i;

	pick(load, timers);
	for (i = 0; i < PEER_BATCH; i++)
		load_add(load, PEER_CANCEL, timers[i], 0);
	for (i = 0; i < PEER_BATCH; i++)
		load_add(load, PEER_ARM, timers[i], load->now_ns + TTL_NS +
						    by_ns * i / PEER_BATCH);
	return PEER_BATCH + expire(load, by_ns, from_now_ttl);
}

/* ------------------------------------------------------------------------
 * descending: each deadline is before all others; the latest are cancelled
 */

static uint64_t descending_next(struct load *load, uint32_t timer)
{
	(void)timer;
	return LOAD_BEGIN_NS + TTL_NS - load->tick++ * LOAD_GRAIN_NS;
}

static void descending_fill(struct load *load)
{
	arm_all(load, descending_next);
}

static uint32_t descending_step(struct load *load)
{
	uint32_t first = load->tick % load->nr, i;

	for (i = 0; i < PEER_BATCH; i++)
		load_add(load, PEER_CANCEL, (first + i) % load->nr, 0);
	for (i = 0; i < PEER_BATCH; i++)
		load_add(load, PEER_ARM, (first + i) % load->nr,
			 descending_next(load, first + i));
	return PEER_BATCH;
}

/* ------------------------------------------------------------------------
 * equal: only a few different deadlines
 */

#define EQUAL_GROUPS	64

static uint64_t equal_first(struct load *load, uint32_t timer)
{
	(void)load;
	return LOAD_BEGIN_NS + TTL_NS / EQUAL_GROUPS *
			       (1 + timer % EQUAL_GROUPS);
}

static void equal_fill(struct load *load)
{
	arm_all(load, equal_first);
}

static uint32_t equal_step(struct load *load)
{
	return expire(load, TTL_NS / EQUAL_GROUPS, ttl_next);
}

/* ------------------------------------------------------------------------
 * sawtooth: each before the last, then one far later, and again
 */

#define TEETH		16

/* Returns a number from 0 to below 1. */
static double tooth(struct load *load)
{
	uint32_t length = load->nr / TEETH;

	return (double)(load->tick++ % length) / length;
}

static uint64_t sawtooth_first(struct load *load, uint32_t timer)
{
	(void)timer;
	return load->now_ns + (1 - sqrt(tooth(load))) * TTL_NS;
}

static uint64_t sawtooth_next(struct load *load, uint32_t timer)
{
	(void)timer;
	return load->now_ns + (1 - tooth(load)) * TTL_NS;
}

static void sawtooth_fill(struct load *load)
{
	arm_all(load, sawtooth_first);
}

/* Takes one step. Timers live half of TTL_NS on average. */
static uint32_t sawtooth_step(struct load *load)
{
	return expire(load, batch_ns(load->nr * 2.0), sawtooth_next);
}

/* ------------------------------------------------------------------------
 * uniform: times to live up to TTL_NS, each as likely; mix: timers at random
 * are refreshed, others cancelled and armed
 */

static uint64_t uniform_next(struct load *load, uint32_t timer)
{
	(void)timer;
	return load->now_ns + 1 + bench_below(&load->random, TTL_NS);
}

static void uniform_fill(struct load *load)
{
	arm_all(load, uniform_next);
}

static void request(struct load *load, enum peer_op op, const uint32_t *timers)
{
	uint32_t i;

	for (i = 0; i < PEER_BATCH; i++)
		load_add(load, op, timers[i], op == PEER_CANCEL ? 0 :
			 uniform_next(load, timers[i]));
}

static uint32_t mix_step(struct load *load)
{
	uint32_t timers[PEER_BATCH];

	pick(load, timers);
	request(load, PEER_REFRESH, timers);
	pick(load, timers);
	request(load, PEER_CANCEL, timers);
	request(load, PEER_ARM, timers);
	return 3 * PEER_BATCH;
}

/* Takes one step. Timers live half of TTL_NS on average. */
static uint32_t uniform_step(struct load *load)
{
	return expire(load, batch_ns(load->nr * 2.0), uniform_next);
}

/* ------------------------------------------------------------------------ */

static const struct workload ttl[] = {
	{ .name = "ttl", .work = "hold", .step = ttl_step },
	{ .name = NULL }
};

static const struct workload exponential[] = {
	{ .name = "exponential", .work = "hold", .step = exponential_step },
	{ .name = "storm-10", .work = "deliver", .delivery = true,
	  .step = storm_tenth_step },
	{ .name = WORKLOAD_STORM, .work = "deliver", .delivery = true,
	  .step = storm_all_step },
	{ .name = NULL }
};

static const struct workload lognormal[] = {
	{ .name = "lognormal", .work = "hold", .step = lognormal_step },
	{ .name = NULL }
};

static const struct workload accessed[] = {
	{ .name = "sessions", .work = "access", .step = sessions_step },
	/* The cycle of a sweep: half as many are cancelled until it begins, and
	 * about a tenth while it lasts.
	 */
	{ .name = "timeouts", .work = "request", .cycle = 6,
	  .step = timeouts_step },
	{ .name = NULL }
};

static const struct workload random_deadlines[] = {
	{ .name = "mix", .work = "request", .cycle = 6, .step = mix_step },
	{ .name = "uniform", .work = "hold", .step = uniform_step },
	{ .name = NULL }
};

static const struct workload descending[] = {
	{ .name = "descending", .work = "hold", .cycle = 6,
	  .step = descending_step },
	{ .name = NULL }
};

static const struct workload equal[] = {
	{ .name = "equal", .work = "hold", .step = equal_step },
	{ .name = NULL }
};

static const struct workload sawtooth[] = {
	{ .name = "sawtooth", .work = "hold", .step = sawtooth_step },
	{ .name = NULL }
};

const struct family families[] = {
	{ .name = "ttl", .fill = ttl_fill, .ttl = true, .workloads = ttl },
	{ .name = "exponential", .fill = exponential_fill,
	  .workloads = exponential },
	{ .name = "lognormal", .fill = lognormal_fill,
	  .workloads = lognormal },
	{ .name = "accessed", .fill = accessed_fill, .workloads = accessed },
	{ .name = "uniform", .fill = uniform_fill,
	  .workloads = random_deadlines },
	{ .name = "descending", .fill = descending_fill,
	  .workloads = descending },
	{ .name = "equal", .fill = equal_fill, .workloads = equal },
	{ .name = "sawtooth", .fill = sawtooth_fill, .workloads = sawtooth },
	{ .name = NULL }
};
