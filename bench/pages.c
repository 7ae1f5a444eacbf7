// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/pages.h"

/*
 * Maps a little more and unmaps the excess, so that the memory begins on a huge
 * page's boundary.
 */
void *bench_map(size_t size)
{
	size_t more = BENCH_ALIGN, before;
	unsigned char *memory;

	memory = mmap(NULL, size + more, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		die("no memory");
	before = -(uintptr_t)memory & (BENCH_ALIGN - 1);
	size = (size + sysconf(_SC_PAGESIZE) - 1) & -sysconf(_SC_PAGESIZE);
	if (before)
		munmap(memory, before);
	if (before < more)
		munmap(memory + before + size, more - before);
	madvise(memory + before, size, MADV_HUGEPAGE);
	return memory + before;
}

void bench_unmap(void *memory, size_t size)
{
	munmap(memory, size);
}

void bench_populate(void *memory, size_t size)
{
	volatile unsigned char *byte = memory;
	size_t i;

	for (i = 0; i < size; i += CORE_PAGE_SIZE)
		byte[i] = 0;
}

static void *page_in(struct core_pages *pages, u32 index)
{
	struct run *run = (struct run *)pages;
	void ***tablep = &pages->dir[index >> CORE_DIR_SHIFT];
	void *page = run->memory + (size_t)index * CORE_PAGE_SIZE;

	if (!*tablep)
		*tablep = calloc(CORE_DIR_SIZE, sizeof(**tablep));
	if (!*tablep)
		die("no memory");
	(*tablep)[index & (CORE_DIR_SIZE - 1)] = page;
	return page;
}

static u32 tables(const struct run *run)
{
	return (run->pages.nr_max >> CORE_DIR_SHIFT) + 1;
}

void run_init(struct run *run, void *memory, u32 nr_max)
{
	memset(run, 0, sizeof(*run));
	run->memory = memory;
	run->pages.nr_max = nr_max;
	run->pages.page_in = page_in;
	run->pages.dir = calloc(tables(run), sizeof(*run->pages.dir));
	if (!run->pages.dir)
		die("no memory");
}

void run_deinit(struct run *run)
{
	u32 i;

	for (i = 0; i < tables(run); i++)
		free(run->pages.dir[i]);
	free(run->pages.dir);
}
