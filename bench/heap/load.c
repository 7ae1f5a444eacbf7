// SPDX-License-Identifier: LGPL-2.1-or-later
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/pages.h"
#include "clock.h"
#include "load.h"

/* ------------------------------------------------------------------------
 * Two functions of their own contain the timed code, so that a profiler can be
 * limited to them (bench/heap/instructions). So each must return by itself, not
 * by a tail call.
 */

#define returns_here()	__asm__ volatile ("")

__attribute__((noinline))
static void timed_process(struct load *load, enum peer_op op)
{
	load->peer->process(load->state, op, load->batch, load->count);
	returns_here();
}

__attribute__((noinline))
static uint32_t timed_deliver(struct load *load)
{
	uint32_t nr = load->peer->deliver(load->state, load->now_ns, load->due);

	returns_here();
	return nr;
}

static void count(struct load_cost *cost, uint64_t from_ns, uint32_t nr)
{
	cost->ns += clock_cpu() - from_ns;
	cost->nr += nr;
}

/* ------------------------------------------------------------------------ */

void load_init(struct load *load, const struct peer *peer, uint32_t nr,
	       uint32_t *due)
{
	uint32_t i;

	memset(load, 0, sizeof(*load));
	load->peer = peer;
	load->nr = nr;
	load->due = due;
	load->deadline_ns = bench_map(nr * sizeof(*load->deadline_ns));
	for (i = 0; i < nr; i++)
		load->deadline_ns[i] = LOAD_IDLE;
	load->random = 1;
	load->now_ns = LOAD_BEGIN_NS + LOAD_GRAIN_NS / 2;
	load->latest_ns = load->now_ns;
	clock_set(load->now_ns);
	load_enter(load);
	load->state = peer->init(peer, nr);
	if (timed_deliver(load))
		die("%s: something is due at once", peer->name);
	load_leave(load);
}

void load_deinit(struct load *load)
{
	load->peer->deinit(load->state);
	bench_unmap(load->deadline_ns, load->nr * sizeof(*load->deadline_ns));
}

void load_reset(struct load *load)
{
	memset(load->costs, 0, sizeof(load->costs));
}

static int64_t malloc_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

void load_enter(struct load *load)
{
	load->heap_bytes -= malloc_bytes();
}

void load_leave(struct load *load)
{
	load->heap_bytes += malloc_bytes();
}

uint64_t load_bytes(const struct load *load)
{
	return load->peer->bytes ? load->peer->bytes(load->state) :
				   (uint64_t)load->heap_bytes;
}

void load_flush(struct load *load, enum peer_op op)
{
	const struct peer *peer = load->peer;
	uint64_t from_ns;

	if (!load->count)
		return;
	if (peer->prepare)
		peer->prepare(load->state, op, load->batch, load->count);
	from_ns = clock_cpu();
	timed_process(load, op);
	count(&load->costs[op], from_ns, load->count);
	if (peer->learn)
		peer->learn(load->state, op, load->batch, load->count);
	load->count = 0;
}

void load_add(struct load *load, enum peer_op op, uint32_t timer,
	      uint64_t deadline_ns)
{
	uint64_t *deadlinep = &load->deadline_ns[timer];

	if (!(*deadlinep & LOAD_IDLE) != (op != PEER_ARM))
		die("the workload has lost track of timer %u", timer);
	if (op == PEER_CANCEL) {
		*deadlinep |= LOAD_IDLE;
	} else {
		deadline_ns += LOAD_GRAIN_NS - 1;
		deadline_ns -= deadline_ns % LOAD_GRAIN_NS;
		*deadlinep = deadline_ns;
		if (deadline_ns > load->latest_ns)
			load->latest_ns = deadline_ns;
	}
	load->batch[load->count++] = (struct peer_request) {
		.deadline_ns = deadline_ns,
		.timer = timer,
	};
	if (load->count == PEER_BATCH)
		load_flush(load, op);
}

static int compare_timers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sorts timers with equal deadlines: their order is unspecified, and must be
 * the same for all peers.
 */
static void order_equals(struct load *load, uint32_t nr)
{
	const uint64_t *deadline_ns = load->deadline_ns;
	uint32_t *due = load->due, i, from;

	for (from = 0; from < nr; from = i) {
		for (i = from + 1; i < nr && deadline_ns[due[i]] ==
					     deadline_ns[due[from]]; i++)
			;
		if (i > from + 1)
			qsort(due + from, i - from, sizeof(*due),
			      compare_timers);
	}
}

static void check(struct load *load, uint32_t nr)
{
	const char *name = load->peer->name;
	uint64_t last = 0, deadline;
	uint32_t i, timer;

	for (i = 0; i < nr; i++) {
		timer = load->due[i];
		if (timer >= load->nr)
			die("%s: timer %u never was", name, timer);
		deadline = load->deadline_ns[timer];
		if (deadline & LOAD_IDLE)
			die("%s: timer %u is not armed", name, timer);
		if (deadline > load->now_ns)
			die("%s: timer %u is not due", name, timer);
		if (deadline < last)
			die("%s: timer %u is out of order", name, timer);
		last = deadline;
	}
	order_equals(load, nr);
	for (i = 0; i < nr; i++) {
		timer = load->due[i];
		if (load->deadline_ns[timer] & LOAD_IDLE)
			die("%s: timer %u came twice", name, timer);
		load->sum = (load->sum ^ load->deadline_ns[timer]) *
			    0x9e3779b97f4a7c15 + timer;
		load->deadline_ns[timer] |= LOAD_IDLE;
	}
}

uint32_t load_advance(struct load *load, uint64_t by_ns)
{
	uint64_t from_ns;
	uint32_t nr;

	load->now_ns += by_ns - by_ns % LOAD_GRAIN_NS;
	from_ns = clock_cpu();
	nr = timed_deliver(load);
	count(&load->costs[LOAD_DELIVER], from_ns, nr);
	check(load, nr);
	return nr;
}
