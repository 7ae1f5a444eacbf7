/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers for every file of the daemon. */
#ifndef DAEMON_UTIL_H
#define DAEMON_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef NDEBUG
#error "the assertions stay in the daemon"
#endif

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_MSEC	1000000ULL

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif /* DAEMON_UTIL_H */
