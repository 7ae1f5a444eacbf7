// SPDX-License-Identifier: LGPL-2.1-or-later
#include <assert.h>

#include "daemon/queue/pace.h"
#include "daemon/util/util.h"

void pace_begin(struct pace *pace)
{
	pace->share = 0;
}

void pace_commit(struct pace *pace, uint64_t records)
{
	uint64_t share = PACE_SHARE * records;

	assert(!pace->committing);
	pace->share += share < PACE_LEAST ? PACE_LEAST : share;
	pace->committing = true;
}

void pace_commit_ended(struct pace *pace, uint64_t now_ns)
{
	pace->committing = false;
	pace->ended_ns = now_ns;
}

void pace_put(struct pace *pace, uint64_t rows)
{
	pace->share -= min_u64(pace->share, rows);
}

uint64_t pace_rows(const struct pace *pace)
{
	return pace->share ? pace->share : UINT64_MAX;
}

uint64_t pace_wait_ns(const struct pace *pace, uint64_t now_ns)
{
	uint64_t idle_ns = pace->ended_ns + PACE_IDLE_NS;

	if (pace->share)
		return 0;
	if (pace->committing)
		return UINT64_MAX;
	return now_ns < idle_ns ? idle_ns - now_ns : 0;
}
