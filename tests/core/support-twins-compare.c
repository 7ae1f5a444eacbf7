// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the twins: everything visible of a queue from outside. */
#include "twins-check.h"

void twins_compare(struct twins *twins)
{
	struct horrible *horrible = &twins->horrible;
	struct timers *timers = &twins->queue.timers;
	struct horrible_timer *timer;
	struct expiry_record *row;
	u32 nr, armed = horrible_armed(horrible);
	int ret;

	ret = timers_validate(timers);
	check(twins, !ret, "not valid: %d", ret);
	check(twins, timers_nr(timers) == horrible->nr,
	      "%llu timers, not %u", timers_nr(timers), horrible->nr);
	check(twins, timers->armed == armed, "%llu armed, not %u",
	      timers->armed, armed);
	check(twins, timers_next_ns(timers) <= horrible_next_ns(horrible),
	      "next at %llu, not %llu", timers_next_ns(timers),
	      horrible_next_ns(horrible));
	check(twins, timers->heap.nr <=
	      2 * timers->limit + 4 * BHEAP_NODES_PER_PAGE,
	      "%u nodes for at most %llu timers", timers->heap.nr,
	      timers->limit);
	if (!horrible->nr)
		check(twins, !timers->heap.nr && !timers->heap.pages->nr &&
		      !timers->slots.pages->nr, "empty, and has pages");

	nr = test_list(&twins->queue, twins->rows, timers->limit + 1);
	check(twins, nr == horrible->nr, "%u rows for %u timers", nr,
	      horrible->nr);
	for (row = twins->rows; row < twins->rows + nr; row++) {
		timer = horrible_find(horrible, row->id);
		check(twins, timer, "row %#llx is no timer", row->id);
		check(twins, row == twins->rows || row[-1].id != row->id,
		      "row %#llx twice", row->id);
		check(twins, row->op == EXPIRY_OP_QUERY && !row->status &&
		      row->flags == horrible_row_flags(horrible, timer) &&
		      row->deadline_ns == timer->deadline &&
		      row->cookie == timer->cookie &&
		      row->period_ms == timer->period_ms,
		      "row %#llx: flags %#x deadline %llu, not %llu",
		      row->id, row->flags, row->deadline_ns, timer->deadline);
	}
}

void twins_compare_counters(struct twins *twins)
{
	struct horrible *horrible = &twins->horrible;
	struct expiry_stat stat;
	u64 on_time = 0;
	u32 i;

	memset(&stat, 0, sizeof(stat));
	timers_stat(&twins->queue.timers, &stat);
	check(twins, stat.arms == horrible->arms &&
	      stat.refreshes == horrible->refreshes &&
	      stat.cancels == horrible->cancels &&
	      stat.acks == horrible->acks, "counts of requests");
	check(twins, stat.refused == horrible->refused &&
	      stat.refused_limit == horrible->refused_limit,
	      "%llu refused, not %llu; for the limit %llu, not %llu",
	      stat.refused, horrible->refused, stat.refused_limit,
	      horrible->refused_limit);
	if (twins->restored)
		return;
	for (i = 0; i < EXPIRY_LATENESS_BUCKETS; i++)
		on_time += stat.lateness[i];
	check(twins, stat.delivered == horrible->delivered &&
	      stat.redelivered == horrible->redelivered &&
	      stat.past == horrible->past && !stat.held &&
	      on_time == stat.delivered - stat.redelivered - stat.past,
	      "counts of deliveries");
}
