/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One peer under load: sends it batches, measures their cost, and compares its
 * deliveries with the deadlines.
 */
#ifndef BENCH_HEAP_LOAD_H
#define BENCH_HEAP_LOAD_H

#include "peer.h"

/* Index of the cost of deliveries, after those of enum peer_op. */
#define LOAD_DELIVER	PEER_OPS
#define LOAD_OPS	(PEER_OPS + 1)

/* Cost of all operations of one kind. */
struct load_cost {
	uint64_t nr;
	uint64_t ns;
};

/**
 * struct load - a peer and its timers
 * @nr: timers; all are armed between the steps of a workload
 * @deadline_ns: by timer; odd: not armed (LOAD_IDLE)
 * @latest_ns: no deadline is later
 * @random: state of the random numbers
 * @tick: a workload's own; 0 at first
 * @due: the due timers of load_advance(), by deadline, then number
 * @sum: checksum of all deliveries and their order
 * @costs: since load_reset(), without filling
 * @heap_bytes: what it has from malloc()
 * @batch: for load_request(), filled by load_add()
 *
 * A timer that is not armed keeps the rest of its former @deadline_ns.
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

/* When time begins, and the grain of all deadlines. */
#define LOAD_BEGIN_NS	(10000 * 1000000000ULL)
#define LOAD_GRAIN_NS	2000ULL

/* Initializes a load. @due: room for @nr, may be shared by interleaved loads.
 */
void load_init(struct load *load, const struct peer *peer, uint32_t nr,
	       uint32_t *due);
void load_deinit(struct load *load);
void load_reset(struct load *load);

/* Adds a request; a full batch is processed at once. Rounds the deadline up to
 * the grain of all peers.
 */
void load_add(struct load *load, enum peer_op op, uint32_t timer,
	      uint64_t deadline_ns);
void load_flush(struct load *load, enum peer_op op);

/* Advances the time; returns the number of due timers, which are in @due. Ends
 * the program if one is missing, repeated or out of order.
 */
uint32_t load_advance(struct load *load, uint64_t by_ns);

/* Accounts memory to the peer: the difference in malloc()'s memory between the
 * two calls.
 */
void load_enter(struct load *load);
void load_leave(struct load *load);
uint64_t load_bytes(const struct load *load);

#endif /* BENCH_HEAP_LOAD_H */
