// SPDX-License-Identifier: LGPL-2.1-or-later
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <linux/kcov.h>

#include "cover.h"
#include "program.h"
#include "report.h"

#define KCOV		"/sys/kernel/debug/kcov"
#define TEXT		"/sys/module/expiry/sections/.text"
#define TRACE_MAX	(2 << 20)	/* places of a thread and a program */
#define PCS_MAX		(1U << 16)

/* Written by the kernel: how many, then the places. */
static unsigned long *traces[THREADS];
static bool works;

static uint8_t edges[COVER_EDGES];	/* seen, ever */
static uint32_t seen_in[COVER_EDGES];	/* the last program that saw it */
static uint32_t generation;
static unsigned long pcs[PCS_MAX];	/* by hash, 0 = free */
static unsigned int nr_edges, nr_pcs;

bool cover_init(void)
{
	int fd = open(KCOV, O_RDWR | O_CLOEXEC);

	works = fd >= 0;
	if (works)
		close(fd);
	return works;
}

void cover_thread(unsigned int thread)
{
	unsigned long *trace;
	int fd;

	if (!works)
		return;
	fd = open(KCOV, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, TRACE_MAX))
		die(KCOV);
	trace = mmap(NULL, TRACE_MAX * sizeof(*trace), PROT_READ | PROT_WRITE,
		     MAP_SHARED, fd, 0);
	if (trace == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		die("KCOV_ENABLE");
	traces[thread] = trace;
}

void cover_begin(void)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		if (traces[i])
			__atomic_store_n(&traces[i][0], 0, __ATOMIC_RELAXED);
}

static void see_pc(unsigned long pc)
{
	unsigned int i = pc * 0x9e3779b97f4a7c15UL >> 48;

	for (; pcs[i] != pc; i = (i + 1) % PCS_MAX) {
		if (pcs[i])
			continue;
		if (nr_pcs == PCS_MAX / 2)
			return;
		pcs[i] = pc;
		nr_pcs++;
		return;
	}
}

static unsigned int edge_of(unsigned long from, unsigned long to)
{
	return (from * 0x9e3779b97f4a7c15UL ^ to * 0xc2b2ae3d27d4eb4fUL) >> 46;
}

unsigned int cover_end(uint32_t *marks, unsigned int *nr)
{
	unsigned long i, count, from;
	unsigned int thread, edge, new = 0, found = 0;

	generation++;
	for (thread = 0; thread < THREADS; thread++) {
		if (!traces[thread])
			continue;
		count = __atomic_load_n(&traces[thread][0], __ATOMIC_RELAXED);
		for (i = 1, from = 0; i <= count && i < TRACE_MAX; i++) {
			edge = edge_of(from, traces[thread][i]);
			from = traces[thread][i];
			if (seen_in[edge] == generation)
				continue;
			seen_in[edge] = generation;
			if (marks && found < COVER_MARKS_MAX)
				marks[found++] = edge;
			if (edges[edge])
				continue;
			edges[edge] = 1;
			nr_edges++;
			new++;
			see_pc(from);
		}
	}
	if (nr)
		*nr = found;
	return new;
}

unsigned int cover_edges(void)
{
	return nr_edges;
}

unsigned int cover_pcs(void)
{
	return nr_pcs;
}

void cover_save(const char *path)
{
	unsigned long text = 0;
	FILE *file = fopen(TEXT, "r");
	unsigned int i;

	if (!file || fscanf(file, "%lx", &text) != 1)
		text = 0;
	if (file)
		fclose(file);
	file = fopen(path, "w");
	if (!file)
		return;
	for (i = 0; i < PCS_MAX; i++)
		if (pcs[i])
			fprintf(file, "%lx\n", pcs[i] - text);
	fclose(file);
}
