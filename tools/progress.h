/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A progress bar on stderr, if that is a terminal.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct progress
 * @shown: there is a terminal
 * @total: what makes the bar full; 0 = not known, only numbers are shown
 * @drawn_ns: when it was drawn last, 0 = never
 */
struct progress {
	bool shown;
	uint64_t total;
	uint64_t drawn_ns;
};

void progress_init(struct progress *progress, uint64_t total);
/* Draw it, ten times a second at most. @done of the total, @count of @what. */
void progress_draw(struct progress *progress, uint64_t done, uint64_t count,
		   const char *what);
/* Clear its line, so that something else can be printed. */
void progress_clear(struct progress *progress);

#endif /* TOOLS_PROGRESS_H */
