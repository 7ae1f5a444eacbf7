// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A progress bar.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tools/output/progress.h"
#include "tools/output/span.h"

#define WIDTH		40
#define INTERVAL_NS	100000000

void progress_init(struct progress *progress, uint64_t total)
{
	progress->shown = isatty(STDERR_FILENO);
	progress->total = total;
	progress->drawn_ns = 0;
}

void progress_draw(struct progress *progress, uint64_t done, uint64_t count,
		   const char *what)
{
	struct timespec ts;
	uint64_t now_ns;
	int i, full;

	if (!progress->shown)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now_ns = ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
	if (progress->drawn_ns && now_ns - progress->drawn_ns < INTERVAL_NS)
		return;
	progress->drawn_ns = now_ns;

	fputc('\r', stderr);
	if (progress->total) {
		if (done > progress->total)
			done = progress->total;
		full = WIDTH * ((double)done / progress->total);
		fputc('[', stderr);
		for (i = 0; i < WIDTH; i++)
			fputc(i < full ? '#' : ' ', stderr);
		fprintf(stderr, "] %3d%% ",
			(int)(100 * ((double)done / progress->total)));
	}
	fprintf(stderr, "%" PRIu64 " %s", count, what);
	fflush(stderr);
}

void progress_clear(struct progress *progress)
{
	if (!progress->drawn_ns)
		return;
	fputs("\r\033[K", stderr);
	progress->drawn_ns = 0;
}
