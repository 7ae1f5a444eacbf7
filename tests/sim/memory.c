// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory: each allocation of the daemon may be the one that fails. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/sim/sim.h"
#include "tests/sim/wrap.h"

/* Returns whether this allocation fails. */
static bool fails(void)
{
	if (!sim.steal_in || sim.shield || sim.phase != SIM_RUN ||
	    !thread_is_daemon() || --sim.steal_in)
		return false;
	trace("an allocation fails");
	sim.has_failed = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(align, size);
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd,
		  off_t offset)
{
	return fails() ? MAP_FAILED :
			 __real_mmap(addr, len, prot, flags, fd, offset);
}

int __wrap_malloc_trim(size_t pad)
{
	(void)pad;
	return 0;
}

void *sim_alloc(size_t size)
{
	void *memory = __real_calloc(1, size);

	if (!memory)
		sim_fail("the simulator has no memory");
	return memory;
}

void *sim_realloc(void *memory, size_t size)
{
	memory = __real_realloc(memory, size);
	if (!memory)
		sim_fail("the simulator has no memory");
	return memory;
}

void sim_free(void *memory)
{
	free(memory);
}

/* A huge page for a few timers costs more than the rest of a run. */
int __wrap_madvise(void *addr, size_t len, int advice)
{
	(void)addr;
	(void)len;
	(void)advice;
	return 0;
}
