/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The daemon's memory limit, and its use where the settings do not say. */
#ifndef DAEMON_MEMORY_LIMIT_H
#define DAEMON_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct config;

/**
 * struct memory_plan - use of the memory
 * @limit: of the process
 * @is_group: the control group's limit, else the machine's
 * @timers: for the embedded engine's timers; 2^48 = no limit
 * @backlog: for records that clients do not read
 */
struct memory_plan {
	uint64_t limit;
	bool is_group;
	uint64_t timers;
	uint64_t backlog;
};

/* Returns the least of the machine's memory and the limits of control groups:
 * this process' group and all above it, versions 1 and 2. @root: prefix of
 * /proc and /sys, "" except in tests.
 */
uint64_t memory_limit(const char *root, bool *is_groupp);

/* Fills in @plan by the settings, and by the limit where those are 0. */
void memory_plan_init(struct memory_plan *plan, const struct config *config,
		      const char *root);

#endif /* DAEMON_MEMORY_LIMIT_H */
