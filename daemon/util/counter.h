/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counters that several threads read. Relaxed atomics: each value is valid
 * alone; no ordering.
 */
#ifndef DAEMON_COUNTER_H
#define DAEMON_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A counter with one writing thread: counting costs no more than in a plain
 * variable.
 */
typedef _Atomic uint64_t counter_t;

static inline uint64_t counter_read(const counter_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static inline void counter_set(counter_t *counter, uint64_t value)
{
	atomic_store_explicit(counter, value, memory_order_relaxed);
}

static inline void counter_add(counter_t *counter, uint64_t value)
{
	counter_set(counter, counter_read(counter) + value);
}

/* A sum of all threads that must not exceed a limit. */
typedef _Atomic uint64_t share_t;

static inline uint64_t share_read(const share_t *share)
{
	return atomic_load_explicit(share, memory_order_relaxed);
}

/* Adds @nr, whatever the limit; a negative number subtracts. */
static inline void share_add(share_t *share, uint64_t nr)
{
	atomic_fetch_add_explicit(share, nr, memory_order_relaxed);
}

static inline void share_put(share_t *share, uint64_t nr)
{
	atomic_fetch_sub_explicit(share, nr, memory_order_relaxed);
}

/* Adds @nr unless that exceeds @max: not even for a moment. */
static inline bool share_take(share_t *share, uint64_t nr, uint64_t max)
{
	uint64_t now = share_read(share);

	do {
		if (now > max || nr > max - now)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(share, &now, now + nr,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

#endif /* DAEMON_COUNTER_H */
