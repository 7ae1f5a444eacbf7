/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Implementations of timers behind one small table of functions. Each peer
 * keeps the timers 0 to nr - 1; the benchmark knows their deadlines.
 *
 * Deadlines are even numbers of microseconds, because libevent has no finer
 * unit. The current time is an odd one, so that "due at" and "due before" are
 * the same.
 */
#ifndef BENCH_HEAP_PEER_H
#define BENCH_HEAP_PEER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEER_BATCH	512U

enum peer_op { PEER_ARM, PEER_REFRESH, PEER_CANCEL, PEER_OPS };

/* A request for one timer: to @deadline_ns, unless cancelled. */
struct peer_request {
	uint64_t deadline_ns;
	uint32_t timer;
};

/**
 * struct peer - one implementation of timers
 * @name: in reports
 * @version: of the library, NULL if it is none
 * @most: timers it runs with unless named: all would take an hour
 * @lazy: cancelled and refreshed timers cost something later
 * @ttl_ns: not 0: the only time to live it supports
 * @init: make room for @nr timers, none armed
 * @prepare: prepare a batch for @process; untimed; may be NULL
 * @process: up to PEER_BATCH requests of one kind
 * @learn: store the results; untimed; may be NULL
 * @deliver: write the timers due at @now_ns to @due
 * @bytes: of memory in use; NULL: what it has from malloc()
 *
 * Every function ends the program on failure. @process gets timers that are not
 * armed (PEER_ARM) or that are (the others), each once. @deliver writes in
 * order of deadline, returns how many, and sets the time for later calls.
 */
struct peer {
	const char *name;
	const char *(*version)(void);
	uint32_t most;
	bool lazy;
	uint64_t ttl_ns;
	void *(*init)(const struct peer *peer, uint32_t nr);
	void (*deinit)(void *self);
	void (*prepare)(void *self, enum peer_op op,
			const struct peer_request *requests, uint32_t count);
	void (*process)(void *self, enum peer_op op,
			const struct peer_request *requests, uint32_t count);
	void (*learn)(void *self, enum peer_op op,
		      const struct peer_request *requests, uint32_t count);
	uint32_t (*deliver)(void *self, uint64_t now_ns, uint32_t *due);
	uint64_t (*bytes)(const void *self);
};

/* For @most: beyond, all together take too long; that is too much memory. */
#define PEER_LARGE	1000000U
#define PEER_HUGE	10000000U
#define PEER_ANY	UINT32_MAX

/* The time to live of the workloads with a constant one. */
#define PEER_TTL_NS	(3600 * 1000000000ULL)

extern const struct peer peer_sorted_plain, peer_sorted_keyed;
extern const struct peer peer_radix_plain, peer_radix_keyed;
extern const struct peer peer_subtree_plain, peer_subtree_keyed;
extern const struct peer peer_libev;
extern const struct peer peer_libevent, peer_libevent_common;
extern const struct peer peer_rbtree;
extern const struct peer peer_binary;
extern const struct peer peer_queue;
extern const struct peer peer_wheel, peer_wheel_ids;
extern const struct peer peer_timerfd;	/* bench/daemon/peer-timerfd.c */

/* Those of the program, in the order of reports; ends with NULL: all of them
 * (peers.c), or those of core/ (peers-core.c), which need no library.
 */
extern const struct peer *const peers[];

#ifdef __cplusplus
}
#endif

#endif /* BENCH_HEAP_PEER_H */
