// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time namespaces: deadlines are on the caller's clocks, as with timerfd.
 *
 * A queue keeps the host's time. What a caller passes in is converted by the
 * offsets of the caller's own namespace, and so is what it gets. Holders of a
 * queue in different namespaces each see their own clocks.
 *
 * do_timens_ktime_to_host() is not exported; the offsets are in the headers. Its
 * arithmetic is done here, in 64 unsigned bits and with EXPIRY_NEVER.
 */
#include <linux/expiry.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/time.h>
#include <linux/time_namespace.h>

#include "timens.h"

/**
 * expiry_timens_offset - get how far the caller's clock is ahead of the host's
 * @clock_id: a queue's
 */
s64 expiry_timens_offset(clockid_t clock_id)
{
#ifdef CONFIG_TIME_NS
	const struct timens_offsets *offsets =
		&current->nsproxy->time_ns->offsets;

	switch (clock_id) {
	case CLOCK_MONOTONIC:
		return timespec64_to_ns(&offsets->monotonic);
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return timespec64_to_ns(&offsets->boottime);
	}
#endif
	return 0;
}

/* Adds, from 0 to EXPIRY_NEVER, which stays as it is. */
static u64 shift(u64 ns, s64 by_ns)
{
	if (ns == EXPIRY_NEVER)
		return ns;
	if (by_ns < 0)
		return ns > -(u64)by_ns ? ns + by_ns : 0;
	return ns > EXPIRY_NEVER - by_ns ? EXPIRY_NEVER : ns + by_ns;
}

/**
 * expiry_timens_to_host - convert a time of the caller's to the host's
 * @ns: it, or EXPIRY_NEVER
 * @offset_ns: by expiry_timens_offset()
 */
u64 expiry_timens_to_host(u64 ns, s64 offset_ns)
{
	return shift(ns, -offset_ns);
}

/**
 * expiry_timens_from_host - convert a time of the host's to the caller's
 * @ns: it, or EXPIRY_NEVER
 * @offset_ns: by expiry_timens_offset()
 */
u64 expiry_timens_from_host(u64 ns, s64 offset_ns)
{
	return shift(ns, offset_ns);
}

static bool takes_deadline(const struct expiry_record *record)
{
	return record->op == EXPIRY_OP_ARM || record->op == EXPIRY_OP_REFRESH;
}

/**
 * expiry_timens_enter - convert requests
 * @records: of the caller
 * @count: how many
 * @asked_ns: filled in with their deadlines, for expiry_timens_leave()
 * @offset_ns: not 0
 */
void expiry_timens_enter(struct expiry_record *records, u32 count,
			 u64 *asked_ns, s64 offset_ns)
{
	u32 i;

	for (i = 0; i < count; i++) {
		asked_ns[i] = records[i].deadline_ns;
		if (takes_deadline(&records[i]) &&
		    !(records[i].flags & EXPIRY_F_RELATIVE))
			records[i].deadline_ns =
				expiry_timens_to_host(asked_ns[i], offset_ns);
	}
}

/**
 * expiry_timens_leave - convert replies
 * @records: as processed
 * @count: how many of them were
 * @asked_ns: by expiry_timens_enter(); a refused record gets its own back
 * @offset_ns: likewise
 */
void expiry_timens_leave(struct expiry_record *records, u32 count,
			 const u64 *asked_ns, s64 offset_ns)
{
	u32 i;

	for (i = 0; i < count; i++) {
		if (records[i].status)
			records[i].deadline_ns = asked_ns[i];
		else if (takes_deadline(&records[i]) ||
			 records[i].op == EXPIRY_OP_CANCEL ||
			 records[i].op == EXPIRY_OP_ACK ||
			 records[i].op == EXPIRY_OP_QUERY)
			records[i].deadline_ns =
				expiry_timens_from_host(records[i].deadline_ns,
							offset_ns);
	}
}
