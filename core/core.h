/* SPDX-License-Identifier: (GPL-2.0-only OR LGPL-2.1-or-later) */
/*
 * The seam between core/ and its environment: the only file here that tests for
 * the kernel.
 *
 * core/ takes no lock, allocates nothing, reads no clock and does no I/O. Its
 * callers serialize all calls on one object, supply pages (pages.h), and pass
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
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/page.h>

/* Pages of the machine's, which may be of 16 or 64 KiB. */
#ifndef CORE_PAGE_SHIFT
#define CORE_PAGE_SHIFT	PAGE_SHIFT
#endif

/*
 * Returns @index, which was found below @size; in speculation past that check,
 * too. For every index that a caller names. A test has one of its own.
 */
#ifndef core_nospec
#define core_nospec(index, size)	array_index_nospec(index, size)
#endif

/* True when the invariant is broken: warns once, never fatal. */
#define core_broken(x)	WARN_ON_ONCE(!(x))

#else

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The kernel's types, so that one printf format serves both. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
/* GCC drops calls to a function that only prefetches; the empty asm keeps them.
 */
#define prefetch_at(p, write) \
	do { __builtin_prefetch(p, write); __asm__ volatile(""); } while (0)
#define prefetch(p)	prefetch_at(p, 0)
#define prefetchw(p)	prefetch_at(p, 1)
#define static_assert	_Static_assert
/* The kernel may zero what is on its stack, but not what has this. */
#define __uninitialized
#define fallthrough	__attribute__((__fallthrough__))

/* Returns the most significant bit set, counted from 1; 0 if none is set. */
static inline int fls64(u64 x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

/* Returns the least significant bit set, counted from 0; one must be set. */
static inline unsigned long __ffs64(u64 x)
{
	return __builtin_ctzll(x);
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

/* Nothing: a library's caller can read its memory anyway. */
#ifndef core_nospec
#define core_nospec(index, size)	((void)(size), (index))
#endif

static inline bool core_broken_at(bool broken)
{
	assert(!broken);
	return broken;
}
#define core_broken(x)	core_broken_at(!(x))

#endif /* __KERNEL__ */

/* Tests build a second copy with 64-byte pages: a hundred timers then cross
 * many pages. A -D for it must reach every object linked together.
 */
#ifndef CORE_PAGE_SHIFT
#define CORE_PAGE_SHIFT	12
#endif
#define CORE_PAGE_SIZE	(1U << CORE_PAGE_SHIFT)

#endif /* CORE_CORE_H */
