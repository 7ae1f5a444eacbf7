/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One peer under load: asks it for things in batches, takes what they cost, and
 * holds what is delivered against the deadlines it has asked for.
 */
#ifndef BENCH_HEAP_LOAD_H
#define BENCH_HEAP_LOAD_H

#include "counters.h"
#include "peer.h"

/* Where the cost of deliveries stands, after those of enum peer_op. */
#define LOAD_DELIVER	PEER_OPS
#define LOAD_OPS	(PEER_OPS + 1)

/**
 * struct load_cost - what operations of one kind took together
 * @counters: in the order of counters_names[]
 */
struct load_cost {
	uint64_t nr;
	uint64_t ns;
	uint64_t counters[COUNTERS_NR];
};

/**
 * struct load - a peer and its timers
 * @nr: timers; all of them are armed between the steps of a workload
 * @deadline_ns: by timer; odd: not armed (LOAD_IDLE), the rest is what it was
 * @latest_ns: no deadline is later
 * @random: state of chance
 * @tick: a workload's own; 0 to begin with
 * @due: what load_advance() found, in order of deadline and then of number
 * @sum: of all that was delivered, and in what order
 * @costs: since load_reset(); filling is another matter
 * @heap_bytes: that it has from malloc()
 * @batch: for load_request(), filled by load_add()
 */
struct load {
	const struct peer *peer;
	void *state;
	uint32_t nr;
	uint64_t *deadline_ns;
	uint64_t now_ns;
	uint64_t latest_ns;
	uint64_t random;
	uint64_t tick;
	uint32_t *due;
	uint64_t sum;
	struct load_cost costs[LOAD_OPS];
	int64_t heap_bytes;
	struct peer_request batch[PEER_BATCH];
	uint32_t count;
};

#define LOAD_IDLE	1ULL

/* When time begins, and what all deadlines are multiples of. */
#define LOAD_BEGIN_NS	(10000 * 1000000000ULL)
#define LOAD_GRAIN_NS	2000ULL

/* @due: room for @nr, may be shared by loads that take turns. */
void load_init(struct load *load, const struct peer *peer, uint32_t nr,
	       uint32_t *due);
void load_deinit(struct load *load);
void load_reset(struct load *load);

/* Have the batch of load_add() done as soon as it is full, or now. The deadline
 * is rounded up to what all peers can keep.
 */
void load_add(struct load *load, enum peer_op op, uint32_t timer,
	      uint64_t deadline_ns);
void load_flush(struct load *load, enum peer_op op);

/* Let time pass: the number of timers that came due, in @due. Ends the program
 * when one was not, twice, or out of order.
 */
uint32_t load_advance(struct load *load, uint64_t by_ns);

/* Memory of the peer. Around whatever it does, the difference that this makes
 * to what malloc() gave out is put down to it.
 */
void load_enter(struct load *load);
void load_leave(struct load *load);
uint64_t load_bytes(const struct load *load);

/* Counters are read, too, if there are any. */
extern bool load_counting;

#endif /* BENCH_HEAP_LOAD_H */
