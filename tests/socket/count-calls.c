// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon by test-steady-state.py: counts its calls for memory in
 * a file that both have mapped, EXPIRY_COUNT_CALLS, so that the daemon itself
 * need not know of it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/socket/shared-map.h"

enum call {
	CALL_MALLOC, CALL_CALLOC, CALL_REALLOC, CALL_FREE, CALL_ALIGNED,
	CALL_MMAP, CALL_MUNMAP, CALL_MADVISE, CALLS,
};

/* The C library's own names for its allocator: dlsym() would be needed for the
 * others, and it allocates.
 */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);
void *__libc_memalign(size_t align, size_t size);

static _Atomic uint64_t *counts;

static void count(enum call call)
{
	if (counts)
		atomic_fetch_add_explicit(&counts[call], 1,
					  memory_order_relaxed);
}

void *malloc(size_t size)
{
	count(CALL_MALLOC);
	return __libc_malloc(size);
}

void *calloc(size_t nr, size_t size)
{
	count(CALL_CALLOC);
	return __libc_calloc(nr, size);
}

void *realloc(void *memory, size_t size)
{
	count(CALL_REALLOC);
	return __libc_realloc(memory, size);
}

void free(void *memory)
{
	count(CALL_FREE);
	__libc_free(memory);
}

void *aligned_alloc(size_t align, size_t size)
{
	count(CALL_ALIGNED);
	return __libc_memalign(align, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd,
	   off_t offset)
{
	static void *(*next)(void *, size_t, int, int, int, off_t);

	if (!next)
		next = dlsym(RTLD_NEXT, "mmap");
	count(CALL_MMAP);
	return next(address, size, protection, flags, fd, offset);
}

int munmap(void *address, size_t size)
{
	static int (*next)(void *, size_t);

	if (!next)
		next = dlsym(RTLD_NEXT, "munmap");
	count(CALL_MUNMAP);
	return next(address, size);
}

int madvise(void *address, size_t size, int advice)
{
	static int (*next)(void *, size_t, int);

	if (!next)
		next = dlsym(RTLD_NEXT, "madvise");
	count(CALL_MADVISE);
	return next(address, size, advice);
}

__attribute__((constructor))
static void count_from_now(void)
{
	counts = shared_map("EXPIRY_COUNT_CALLS", CALLS * sizeof(*counts));
}
