// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by memory_faults.py: counts calls for memory and lets some
 * fail, by numbers in a file that both have mapped, EXPIRY_FAIL_CALLS: how many calls
 * there were, which of them is the first that is refused, 0 = none, how many are, and
 * how many bytes are allocated.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
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
void __libc_free(void *memory);

static struct calls {
	_Atomic uint64_t nr;
	_Atomic uint64_t first;
	_Atomic uint64_t count;
	_Atomic int64_t allocated;
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

/* Returns @memory, which is counted from now on, or NULL. */
static void *counted(void *memory)
{
	if (calls && memory)
		atomic_fetch_add(&calls->allocated, malloc_usable_size(memory));
	return memory;
}

void *malloc(size_t size)
{
	return is_refused() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t nr, size_t size)
{
	return is_refused() ? NULL : counted(__libc_calloc(nr, size));
}

void *realloc(void *memory, size_t size)
{
	size_t before = memory ? malloc_usable_size(memory) : 0;
	void *moved;

	if (is_refused())
		return NULL;
	moved = counted(__libc_realloc(memory, size));
	if (calls && moved)
		atomic_fetch_sub(&calls->allocated, before);
	return moved;
}

void *aligned_alloc(size_t align, size_t size)
{
	return is_refused() ? NULL : counted(__libc_memalign(align, size));
}

void free(void *memory)
{
	if (calls && memory)
		atomic_fetch_sub(&calls->allocated, malloc_usable_size(memory));
	__libc_free(memory);
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
