/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much memory the daemon may have, and what it makes of that where the
 * settings do not say.
 */
#ifndef DAEMON_MEMORY_LIMIT_H
#define DAEMON_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct config;

/**
 * struct memory_plan - what memory is for
 * @limit: what the process may have
 * @is_group: by its control group, else by the machine
 * @timers: for timers of the embedded engine; 2^48 is no limit
 * @backlog: for what clients do not read
 */
struct memory_plan {
	uint64_t limit;
	bool is_group;
	uint64_t timers;
	uint64_t backlog;
};

/* Returns the least of the machine's memory and the limits of the control group
 * of this process and of all above it, versions 1 and 2. @root: what to put before
 * /proc and /sys, "" but in tests.
 */
uint64_t memory_limit(const char *root, bool *is_groupp);

/* Fills in @plan by the settings and, where those are 0, by the limit. */
void memory_plan_init(struct memory_plan *plan, const struct config *config,
		      const char *root);

#endif /* DAEMON_MEMORY_LIMIT_H */
