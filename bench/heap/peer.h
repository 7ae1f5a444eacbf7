/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What people use for timers, behind one small table of functions: each peer
 * keeps the timers 0 to nr - 1, of which the benchmark knows the deadlines.
 *
 * Deadlines are even numbers of microseconds, for libevent knows nothing
 * shorter, and what time it is odd ones, so that "due at" and "due before" are
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

/* Ask for something to be done to one timer: @deadline_ns unless cancelled. */
struct peer_request {
	uint64_t deadline_ns;
	uint32_t timer;
};

/**
 * struct peer - one way to keep timers
 * @name: as reports have it
 * @version: of the library, NULL if it is none
 * @lazy: cancelled and refreshed timers leave something behind that costs later
 * @ttl_ns: not 0: knows only deadlines so long after arming
 * @init: room for @nr timers, none armed. Ends the program on failure, as
 *	every function does.
 * @prepare: make ready what @process needs of a batch; not timed; may be NULL
 * @process: up to PEER_BATCH requests of one kind, for timers that are not
 *	armed (PEER_ARM) or that are (the others), each once
 * @learn: take note of what came of it; not timed; may be NULL
 * @deliver: write what is due at @now_ns to @due, in order of deadline; returns
 *	how many. Sets the time for what follows.
 * @bytes: of memory in use; NULL: what it has from malloc()
 */
struct peer {
	const char *name;
	const char *(*version)(void);
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

/* The time to live of the workloads where it is the same for all. */
#define PEER_TTL_NS	(3600 * 1000000000ULL)

extern const struct peer peer_sorted_plain, peer_sorted_keyed;
extern const struct peer peer_subtree_plain, peer_subtree_keyed;
extern const struct peer peer_libev;
extern const struct peer peer_libevent, peer_libevent_common;
extern const struct peer peer_rbtree;
extern const struct peer peer_binary;
extern const struct peer peer_queue;
extern const struct peer peer_wheel;

/* All of them, in the order of reports; ends with NULL. */
extern const struct peer *const peers[];

#ifdef __cplusplus
}
#endif

#endif /* BENCH_HEAP_PEER_H */
