// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by test-no-memory.py: lets calls for memory fail, by
 * numbers in a file that both have mapped, EXPIRY_FAIL_CALLS: how many calls there were,
 * which of them is the first that is refused, 0 = none, and how many are.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/socket/shared-map.h"

/* The C library's own names for its allocator: dlsym() allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);

static struct calls {
	_Atomic uint64_t nr;
	_Atomic uint64_t first;
	_Atomic uint64_t count;
} *calls;

static bool is_refused(void)
{
	uint64_t number, first;

	if (!calls)
		return false;
	number = atomic_fetch_add(&calls->nr, 1) + 1;
	first = atomic_load(&calls->first);
	if (!first || number < first ||
	    number - first >= atomic_load(&calls->count))
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

/* The C library's own calls do not come here, nor those of liburing. */
void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (flags & MAP_ANONYMOUS && is_refused())
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, addr, size, prot, flags, fd, offset);
}

__attribute__((constructor))
static void refuse_from_now(void)
{
	calls = shared_map("EXPIRY_FAIL_CALLS", sizeof(*calls));
}
