// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures an operation by the memory of the queue's pages that it touches:
 * different lines of 64 bytes, different pages, and loads and stores. Other
 * load cannot disturb that, and every operation is counted.
 */
#include "bench/paper/watch.h"
#include "bounds.h"

#define LINE_SHIFT	6U
#define LINES_PER_PAGE	(CORE_PAGE_SIZE >> LINE_SHIFT)

const char *const measure_units[] = { "lines", "pages", "accesses", NULL };
const bool measure_all = true;

/**
 * struct watching - the current operation
 * @lines: by line of the memory, the last operation that touched it
 * @pages: by page
 * @operation: the number of this one
 */
static struct watching {
	const struct subject *subject;
	u32 nr_lines;
	u32 *lines;
	u32 *pages;
	u32 operation;
	uint32_t values[MEASURES_MAX];
} watching;

static void touch(void *context, uint32_t line, bool write)
{
	struct watching *w = context;
	u32 page = line / LINES_PER_PAGE;

	(void)write;
	w->values[2]++;
	if (w->lines[line] == w->operation)
		return;
	w->lines[line] = w->operation;
	w->values[0]++;
	if (w->pages[page] == w->operation)
		return;
	w->pages[page] = w->operation;
	w->values[1]++;
}

void measure_open(const struct subject *subject)
{
	memset(&watching, 0, sizeof(watching));
	watching.subject = subject;
	watching.nr_lines = subject->size >> LINE_SHIFT;
	watching.lines = bench_map(watching.nr_lines *
				   sizeof(*watching.lines));
	watching.pages = bench_map(watching.nr_lines / LINES_PER_PAGE *
				   sizeof(*watching.pages));
}

void measure_close(void)
{
	bench_unmap(watching.lines, watching.nr_lines *
		    sizeof(*watching.lines));
	bench_unmap(watching.pages, watching.nr_lines / LINES_PER_PAGE *
		    sizeof(*watching.pages));
}

void measure_begin(void)
{
	watching.operation++;
	memset(watching.values, 0, sizeof(watching.values));
	watch(watching.subject->memory, watching.nr_lines, LINE_SHIFT, touch,
	      &watching);
}

bool measure_end(uint32_t values[MEASURES_MAX])
{
	watch(NULL, 0, 0, NULL, NULL);
	memcpy(values, watching.values, sizeof(watching.values));
	return true;
}
