// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/journal/commit-way.h"

bool commit_way_is_linked(struct commit_way *way)
{
	uint32_t interval = way->trial_ns ? COMMIT_WAY_TRIAL : COMMIT_WAY_SLOW;

	way->is_trial = ++way->nr >= interval ||
			way->nr_slow >= COMMIT_WAY_SLOW;
	return way->is_linked != way->is_trial;
}

/* Returns by how much a trial was faster, as a part of the faster one of the two. */
static int32_t advantage(uint64_t before_ns, uint64_t trial_ns)
{
	if (before_ns >= 2 * trial_ns)
		return COMMIT_WAY_UNIT;
	if (trial_ns >= 2 * before_ns)
		return -COMMIT_WAY_UNIT;
	if (before_ns >= trial_ns)
		return COMMIT_WAY_UNIT * (before_ns - trial_ns) / trial_ns;
	return -(int32_t)(COMMIT_WAY_UNIT * (trial_ns - before_ns) / before_ns);
}

/* A trial is held against the commit just before it: its size is alike, and so is what
 * else the machine does.
 */
static void end_trial(struct commit_way *way, uint64_t ns)
{
	way->nr = 0;
	way->nr_slow = 0;
	way->trial_ns = ns;
	way->score += advantage(way->before_ns, ns);
	if (way->score < -COMMIT_WAY_SCORE)
		way->score = -COMMIT_WAY_SCORE;
	if (way->score >= COMMIT_WAY_SCORE) {
		way->is_linked = !way->is_linked;
		way->score = 0;
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
