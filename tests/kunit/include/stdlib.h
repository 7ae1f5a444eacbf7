/* SPDX-License-Identifier: GPL-2.0-only */
/* The C library's functions that the tests of core/ use, by the kernel's. */
#ifndef TESTS_KUNIT_STDLIB_H
#define TESTS_KUNIT_STDLIB_H

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include <cmocka.h>

#define malloc(size)		kvmalloc(size, GFP_KERNEL)
#define calloc(nr, size)	kvcalloc(nr, size, GFP_KERNEL)
#define realloc(old, size)	krealloc(old, size, GFP_KERNEL)
#define free(memory)		kvfree(memory)

/* Slabs of a power of two are aligned to it. */
static inline void *aligned_alloc(size_t alignment, size_t size)
{
	return alignment == size ? kmalloc(size, GFP_KERNEL) : NULL;
}

#define qsort(base, nr, size, compare)	sort(base, nr, size, compare, NULL)
#define strtoull			simple_strtoull
#define abort()				fail_msg("abort()")

#endif /* TESTS_KUNIT_STDLIB_H */
