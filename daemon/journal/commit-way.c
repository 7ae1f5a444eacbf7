// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/journal/commit-way.h"

bool commit_way_is_linked(struct commit_way *way)
{
	way->is_trial = ++way->nr >= COMMIT_WAY_TRIAL ||
			way->nr_slow >= COMMIT_WAY_SLOW;
	return way->is_linked != way->is_trial;
}

/* A trial is held against the commit just before it: its size is alike, and so is what
 * else the machine does.
 */
static void end_trial(struct commit_way *way, uint64_t ns)
{
	way->nr = 0;
	way->nr_slow = 0;
	way->trial_ns = ns;
	if (ns < way->before_ns)
		way->wins++;
	else if (way->wins)
		way->wins--;
	if (way->wins == COMMIT_WAY_WINS) {
		way->is_linked = !way->is_linked;
		way->wins = 0;
		way->trial_ns = way->before_ns;
	}
}

void commit_way_took(struct commit_way *way, uint64_t ns)
{
	if (way->is_trial) {
		end_trial(way, ns);
		return;
	}
	way->before_ns = ns;
	if (way->trial_ns && ns > 2 * way->trial_ns)
		way->nr_slow++;
	else
		way->nr_slow = 0;
}
