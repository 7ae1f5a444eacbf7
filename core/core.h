/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The seam between core/ and the world it is compiled into: the only file here
 * that knows whether this is the kernel.
 *
 * core/ takes no lock, allocates nothing, reads no clock and does no I/O. Its
 * callers serialize all calls on one object, supply pages (pages.h) and pass
 * limits and the time in.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include <linux/expiry.h>

#ifdef __KERNEL__

#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/prefetch.h>
#include <linux/string.h>
#include <linux/types.h>

/* True when the invariant is broken: said once, then refused, never fatal. */
#define core_broken(x)	WARN_ON_ONCE(!(x))

#else

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* As the kernel has them, so that one printf format serves both. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
/* The compiler takes a function that does nothing but send for memory for one
 * without effect, and leaves out its calls. An empty statement that it must keep
 * tells it otherwise.
 */
#define prefetch_at(p, write) \
	do { __builtin_prefetch(p, write); __asm__ volatile(""); } while (0)
#define prefetch(p)	prefetch_at(p, 0)
#define prefetchw(p)	prefetch_at(p, 1)
#define static_assert	_Static_assert
#define fallthrough	__attribute__((__fallthrough__))

/* Position of the most significant bit set, from 1; 0 if none is. */
static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

static inline bool core_broken_at(bool broken)
{
	assert(!broken);
	return broken;
}
#define core_broken(x)	core_broken_at(!(x))

#endif /* __KERNEL__ */

/* Tests build a second copy with 64-byte pages, where a hundred timers cross
 * many of them. A -D for it must reach every object linked together.
 */
#ifndef CORE_PAGE_SHIFT
#define CORE_PAGE_SHIFT	12
#endif
#define CORE_PAGE_SIZE	(1U << CORE_PAGE_SHIFT)

#endif /* CORE_CORE_H */
