// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The basis of bench/heap/timers' figures: every peer delivers exactly the due
 * timers, each once and in order, in every workload and in a mix of everything.
 * A plain list of the timers is the reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "bench/heap/workload.h"

#define TIMERS		4000U
#define STEPS		40U

static uint32_t due[TIMERS];

/* ------------------------------------------------------------------------
 * The plain list: it is asked for due timers before the peer is, and again by
 * checking each timer.
 */

struct plain {
	uint64_t deadline_ns[TIMERS];
	uint64_t now_ns;
};

static void plain_copy(struct plain *plain, const struct load *load)
{
	memcpy(plain->deadline_ns, load->deadline_ns,
	       sizeof(plain->deadline_ns));
	plain->now_ns = load->now_ns;
}

static bool plain_is_due(const struct plain *plain, uint32_t timer,
			 uint64_t now_ns)
{
	uint64_t deadline_ns = plain->deadline_ns[timer];

	return !(deadline_ns & LOAD_IDLE) && deadline_ns <= now_ns;
}

/* due[] has exactly the timers that were armed before and are due now. */
static void assert_all_due(const struct plain *before, const struct load *load,
			   uint32_t nr)
{
	static bool delivered[TIMERS];
	uint32_t i;

	memset(delivered, 0, sizeof(delivered));
	for (i = 0; i < nr; i++) {
		assert_false(delivered[due[i]]);
		delivered[due[i]] = true;
		if (i)
			assert_true(before->deadline_ns[due[i - 1]] <=
				    before->deadline_ns[due[i]]);
	}
	for (i = 0; i < TIMERS; i++)
		assert_int_equal(delivered[i],
				 plain_is_due(before, i, load->now_ns));
}

/* ------------------------------------------------------------------------ */

/* A workload's own step, without checks between its deliveries: all of its
 * timers are armed after it, and none is overdue.
 */
static void assert_steady(const struct load *load)
{
	uint32_t i;

	for (i = 0; i < TIMERS; i++) {
		assert_false(load->deadline_ns[i] & LOAD_IDLE);
		assert_true(load->deadline_ns[i] > load->now_ns);
	}
}

static void drain(struct load *load)
{
	static struct plain before;

	plain_copy(&before, load);
	assert_all_due(&before, load,
		       load_advance(load, load->latest_ns - load->now_ns +
					  LOAD_GRAIN_NS));
}

/* Returns a checksum of the deliveries and their order. */
static uint64_t run_family(const struct family *family, const struct peer *peer)
{
	const struct workload *workload;
	struct load load;
	uint32_t step;

	load_init(&load, peer, TIMERS, due);
	family->fill(&load);
	assert_steady(&load);
	for (workload = family->workloads; workload->name; workload++) {
		load_reset(&load);
		for (step = 0; step < STEPS; step++) {
			assert_true(workload->step(&load) > 0);
			assert_steady(&load);
		}
		/* Each workload has done its purpose. */
		if (workload->delivery)
			assert_true(load.costs[LOAD_DELIVER].nr >=
				    STEPS * TIMERS / 20);
		else
			assert_true(load.costs[PEER_ARM].nr +
				    load.costs[PEER_REFRESH].nr >=
				    STEPS * (TIMERS / 64));
	}
	drain(&load);
	load_deinit(&load);
	return load.sum;
}

static void all_peers_deliver_the_same(void **state)
{
	const struct peer *const *peer;
	const struct family *family;
	uint64_t sum;

	(void)state;
	for (family = families; family->name; family++) {
		sum = run_family(family, peers[0]);
		for (peer = peers + 1; *peer; peer++)
			if (!(*peer)->ttl_ns || family->ttl)
				assert_int_equal(run_family(family, *peer),
						 sum);
	}
}

/* ------------------------------------------------------------------------ */

static void request_at_random(struct load *load, enum peer_op op)
{
	uint32_t count = bench_below(&load->random, PEER_BATCH), i, timer;
	static bool asked[TIMERS];
	bool idle;

	memset(asked, 0, sizeof(asked));
	for (i = 0; i < count; i++) {
		timer = bench_below(&load->random, TIMERS);
		idle = load->deadline_ns[timer] & LOAD_IDLE;
		if (asked[timer] || idle != (op == PEER_ARM))
			continue;
		asked[timer] = true;
		/* Often the same as another's. */
		load_add(load, op, timer, load->now_ns + LOAD_GRAIN_NS *
			 bench_below(&load->random, 2000));
	}
	load_flush(load, op);
}

static void a_mix_of_everything_is_as_a_plain_list_has_it(void **state)
{
	static struct plain before;
	const struct peer *const *peer;
	uint32_t step, nr, delivered;
	struct load load;

	(void)state;
	for (peer = peers; *peer; peer++) {
		if ((*peer)->ttl_ns)
			continue;
		load_init(&load, *peer, TIMERS, due);
		delivered = 0;
		for (step = 0; step < 2000; step++) {
			request_at_random(&load,
					  bench_below(&load.random, PEER_OPS));
			plain_copy(&before, &load);
			nr = load_advance(&load, LOAD_GRAIN_NS *
					  bench_below(&load.random, 30));
			assert_all_due(&before, &load, nr);
			delivered += nr;
		}
		assert_true(delivered > 2 * TIMERS);
		drain(&load);
		load_deinit(&load);
	}
}

static void memory_is_counted(void **state)
{
	const struct peer *const *peer;
	struct load load;
	uint64_t bytes;

	(void)state;
	for (peer = peers; *peer; peer++) {
		load_init(&load, *peer, TIMERS, due);
		load_enter(&load);
		families[0].fill(&load);
		load_leave(&load);
		bytes = load_bytes(&load);
		assert_in_range(bytes, TIMERS * 32, TIMERS * 300);
		load_deinit(&load);
	}
}

/* libev has functions of libevent's names, too; the first in the linker's order
 * wins.
 */
static void libevent_is_libevent(void **state)
{
	(void)state;
	assert_string_not_equal(peer_libev.version(), peer_libevent.version());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_peers_deliver_the_same),
		cmocka_unit_test(a_mix_of_everything_is_as_a_plain_list_has_it),
		cmocka_unit_test(memory_is_counted),
		cmocka_unit_test(libevent_is_libevent),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
