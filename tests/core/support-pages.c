// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An owner of pages that does the worst that core/pages.h allows. Pages leave
 * memory and return elsewhere, new ones are full of garbage, and bringing one
 * in fails on request.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

/* Large pages are aligned to less: twice their size is more than AddressSanitizer gives
 * without a call of mmap() for each.
 */
#define ALIGNMENT	(CORE_PAGE_SIZE < 4096 ? CORE_PAGE_SIZE : 4096)

static void *page_new(void)
{
	void *page = aligned_alloc(ALIGNMENT, CORE_PAGE_SIZE);

	if (!page)
		abort();
	return page;
}

static void **entry(struct test_pages *run, u32 index)
{
	void **table = run->pages.dir[index >> CORE_DIR_SHIFT];

	return table ? &table[index & (CORE_DIR_SIZE - 1)] : NULL;
}

/* Fills a new page with random bytes or worse: zeroes and ones look like valid
 * data.
 */
static void fill(struct test_pages *run, void *page)
{
	u64 kind = test_below(&run->random, 4);
	u64 *word = page;
	u32 i;

	if (kind < 2) {
		memset(page, kind ? 0xff : 0, CORE_PAGE_SIZE);
		return;
	}
	for (i = 0; i < CORE_PAGE_SIZE / sizeof(*word); i++)
		word[i] = kind == 2 ? test_random(&run->random) :
				      1 + test_below(&run->random, 8);
}

static void *page_in(struct core_pages *pages, u32 index)
{
	struct test_pages *run = (struct test_pages *)pages;
	struct test_faults *faults = run->faults;
	void ***tablep = &pages->dir[index >> CORE_DIR_SHIFT];
	void *page;

	/* The guarantees of core_page() to the owner. */
	if (index >= pages->nr_max || core_page_peek(pages, index)) {
		fprintf(stderr, "page_in: page %u of %u\n", index,
			pages->nr_max);
		abort();
	}
	if (faults->fail_in > 1) {
		faults->fail_in--;
	} else if (faults->fail_in) {
		faults->fail_in = faults->for_good;
		faults->failed++;
		pages->error = faults->error;
		return NULL;
	}

	page = page_new();
	if (run->saved[index]) {
		memcpy(page, run->saved[index], CORE_PAGE_SIZE);
		free(run->saved[index]);
		run->saved[index] = NULL;
	} else {
		fill(run, page);
	}
	if (!*tablep) {
		*tablep = calloc(CORE_DIR_SIZE, sizeof(**tablep));
		if (!*tablep)
			abort();
	}
	*entry(run, index) = page;
	if (run->high <= index)
		run->high = index + 1;
	faults->ins++;
	return page;
}

void test_pages_init(struct test_pages *run, u32 nr_max,
		     struct test_faults *faults, u64 seed)
{
	memset(run, 0, sizeof(*run));
	run->pages.nr_max = nr_max;
	run->pages.page_in = page_in;
	run->pages.dir = calloc(nr_max / CORE_DIR_SIZE + 1,
				sizeof(*run->pages.dir));
	run->saved = calloc(nr_max + 1UL, sizeof(*run->saved));
	if (!run->pages.dir || !run->saved)
		abort();
	run->faults = faults;
	run->random = seed;
}

static void page_drop(struct test_pages *run, u32 index)
{
	void **page = entry(run, index);

	if (page) {
		free(*page);
		*page = NULL;
	}
	free(run->saved[index]);
	run->saved[index] = NULL;
}

void test_pages_free(struct test_pages *run)
{
	u32 i;

	for (i = 0; i < run->high; i++)
		page_drop(run, i);
	for (i = 0; i <= run->pages.nr_max / CORE_DIR_SIZE; i++)
		free(run->pages.dir[i]);
	free(run->pages.dir);
	free(run->saved);
}

void test_pages_evict_one(struct test_pages *run, u32 index)
{
	void **page = entry(run, index);

	if (!page || !*page)
		return;
	run->saved[index] = page_new();
	memcpy(run->saved[index], *page, CORE_PAGE_SIZE);
	free(*page);
	*page = NULL;
}

void test_pages_evict(struct test_pages *run, u32 nr)
{
	while (nr-- && run->high)
		test_pages_evict_one(run, test_below(&run->random, run->high));
}

void test_pages_evict_all(struct test_pages *run)
{
	u32 i;

	for (i = 0; i < run->high; i++)
		test_pages_evict_one(run, i);
}

void test_pages_trim(struct test_pages *run)
{
	while (run->high > run->pages.nr)
		page_drop(run, --run->high);
}

u32 test_pages_count(const struct test_pages *run)
{
	u32 i, count = 0;

	for (i = 0; i < run->high; i++)
		count += run->saved[i] || core_page_peek(&run->pages, i);
	return count;
}
