// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by test-no-memory.py: lets one call for memory fail, by
 * two numbers in a file that both have mapped, EXPIRY_FAIL_CALLS: how many calls
 * there were, and which of them is refused, 0 = none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/socket/shared-map.h"

/* The C library's own names for its allocator: dlsym() allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);

static struct calls {
	_Atomic uint64_t nr;
	_Atomic uint64_t refused;
} *calls;

static bool is_refused(void)
{
	if (!calls || atomic_fetch_add(&calls->nr, 1) + 1 !=
		      atomic_load(&calls->refused))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(nr, size);
}

void *realloc(void *memory, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(memory, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return is_refused() ? NULL : __libc_memalign(align, size);
}

__attribute__((constructor))
static void refuse_from_now(void)
{
	calls = shared_map("EXPIRY_FAIL_CALLS", sizeof(*calls));
}
