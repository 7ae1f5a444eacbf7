/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A progress bar on stderr, if stderr is a terminal.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct progress - a progress bar
 * @shown: stderr is a terminal
 * @total: value of a full bar, 0 = unknown
 * @drawn_ns: time of the latest update, 0 = never
 *
 * With an unknown total only numbers are shown.
 */
struct progress {
	bool shown;
	uint64_t total;
	uint64_t drawn_ns;
};

void progress_init(struct progress *progress, uint64_t total);
/* Draws the bar, at most ten times a second: @done of the total, @count @what. */
void progress_draw(struct progress *progress, uint64_t done, uint64_t count,
		   const char *what);
/* Clears the bar's line, so that other text can be printed. */
void progress_clear(struct progress *progress);

#endif /* TOOLS_PROGRESS_H */
