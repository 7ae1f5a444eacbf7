// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The naive twin: see horrible.h.
 */
#include <stdlib.h>

#include "horrible.h"
#include "support.h"

/* Deliveries held at a time. */
#define HELD_MAX	64U

void horrible_init(struct horrible *horrible, u32 mode, u64 limit)
{
	memset(horrible, 0, sizeof(*horrible));
	horrible->mode = mode;
	horrible->limit = limit;
	horrible->timer = calloc(limit, sizeof(*horrible->timer));
	assert_non_null(horrible->timer);
	horrible->held = calloc(HELD_MAX, sizeof(*horrible->held));
	assert_non_null(horrible->held);
}

void horrible_free(struct horrible *horrible)
{
	free(horrible->timer);
	free(horrible->held);
	free(horrible->given);
}

struct horrible_timer *horrible_find(struct horrible *horrible, u64 id)
{
	u32 i;

	for (i = 0; i < horrible->nr; i++)
		if (horrible->timer[i].id == id)
			return &horrible->timer[i];
	return NULL;
}

static void forget(struct horrible *horrible, struct horrible_timer *timer)
{
	*timer = horrible->timer[--horrible->nr];
}

static void remember(struct horrible *horrible, u64 id)
{
	u32 i;

	assert_true(id != 0);
	for (i = 0; i < horrible->nr_given; i++)
		assert_true(horrible->given[i] != id);
	if (horrible->nr_given == horrible->given_max) {
		horrible->given_max = 2 * horrible->given_max + 64;
		horrible->given = realloc(horrible->given,
					  horrible->given_max *
					  sizeof(*horrible->given));
		assert_non_null(horrible->given);
	}
	horrible->given[horrible->nr_given++] = id;
}

u8 horrible_row_flags(const struct horrible *horrible,
		      const struct horrible_timer *timer)
{
	bool waits = timer->unacked || timer->redeliver;

	/* A delivery that a plain queue's reader holds may be its timer's end. */
	if (!(horrible->mode & EXPIRY_MODE_ACK))
		waits = !timer->armed;
	return waits ? EXPIRY_F_REDELIVERED : 0;
}

static u64 add(u64 a, u64 b)
{
	return a > EXPIRY_NEVER - b ? EXPIRY_NEVER : a + b;
}

static u64 period_ns(const struct horrible_timer *timer)
{
	return timer->period_ms * MILLISECOND;
}

/* Returns the deadline of a periodic timer's last delivery. */
static u64 last_deadline(const struct horrible_timer *timer)
{
	if (!timer->armed || timer->deadline == EXPIRY_NEVER)
		return timer->deadline;
	return timer->deadline < period_ns(timer) ?
	       0 : timer->deadline - period_ns(timer);
}

/* Returns when its last delivery is due once more: at once. */
static u64 again_ns(const struct horrible_timer *timer, u64 now_ns)
{
	u64 last_ns = last_deadline(timer);

	return last_ns > now_ns ? now_ns : last_ns;
}

/* Returns its current deadline. */
static u64 due_ns(const struct horrible_timer *timer)
{
	return timer->redeliver && timer->period_ms ? timer->again :
						      timer->deadline;
}

static u64 wanted(const struct expiry_record *record,
		  const struct horrible_timer *timer, u64 now_ns)
{
	u64 deadline = record->flags & EXPIRY_F_RELATIVE ?
		       add(now_ns, record->deadline_ns) : record->deadline_ns;

	if (record->flags & EXPIRY_F_LATER && timer && timer->armed &&
	    timer->deadline > deadline)
		return timer->deadline;
	return deadline;
}

static int arm(struct horrible *horrible, struct expiry_record *record,
	       u64 now_ns, u64 given)
{
	bool keyed = horrible->mode & EXPIRY_MODE_KEYED;
	bool unacked = record->flags & EXPIRY_F_REDELIVERED;
	struct horrible_timer *timer = NULL;
	u64 deadline;

	if (unacked && !(horrible->mode & EXPIRY_MODE_ACK && record->period_ms))
		return -EINVAL;

	if (keyed != !!record->id ||
	    (!keyed && record->flags & EXPIRY_F_NEW))
		return -EINVAL;
	if (keyed)
		timer = horrible_find(horrible, record->id);
	if (timer && timer->armed && record->flags & EXPIRY_F_NEW)
		return -EEXIST;
	deadline = wanted(record, timer, now_ns);
	if (!timer) {
		if (horrible->nr == horrible->limit) {
			horrible->refused_limit++;
			return -ENOSPC;
		}
		if (!keyed) {
			remember(horrible, given);
			record->id = given;
		}
		timer = &horrible->timer[horrible->nr++];
	}
	*timer = (struct horrible_timer) {
		.id = record->id,
		.deadline = deadline,
		.cookie = record->cookie,
		.period_ms = record->period_ms,
		.armed = true,
		.unacked = unacked,
		.past = deadline < now_ns,
	};
	record->flags = unacked ? EXPIRY_F_REDELIVERED : 0;
	record->deadline_ns = deadline;
	horrible->arms++;
	return 0;
}

static void describe(const struct horrible *horrible,
		     struct expiry_record *record,
		     const struct horrible_timer *timer)
{
	record->flags = horrible->mode & EXPIRY_MODE_ACK ?
			horrible_row_flags(horrible, timer) : 0;
	record->deadline_ns = timer->deadline;
	record->cookie = timer->cookie;
	record->period_ms = timer->period_ms;
}

static int cancel(struct horrible *horrible, struct expiry_record *record,
		  struct horrible_timer *timer, u64 now_ns)
{
	timer->redeliver &= timer->unacked;
	describe(horrible, record, timer);
	horrible->cancels++;
	if (!timer->unacked) {
		forget(horrible, timer);
		return 0;
	}
	/* Only the last delivery of a periodic timer is left. */
	timer->deadline = again_ns(timer, now_ns);
	timer->period_ms = 0;
	timer->armed = false;
	timer->redeliver = false;
	return 0;
}

static void end_delivery(struct horrible *horrible, struct horrible_timer *timer)
{
	timer->unacked = false;
	if (!timer->armed)
		forget(horrible, timer);
}

/* Acknowledged between the rewind and the second delivery. */
static void end_late(struct horrible *horrible, struct horrible_timer *timer)
{
	timer->redeliver = false;
	if (!timer->period_ms)
		forget(horrible, timer);
}

static u8 flags_of(u8 op)
{
	if (op == EXPIRY_OP_ARM)
		return EXPIRY_F_RELATIVE | EXPIRY_F_LATER | EXPIRY_F_NEW |
		       EXPIRY_F_REDELIVERED;
	if (op == EXPIRY_OP_REFRESH)
		return EXPIRY_F_RELATIVE | EXPIRY_F_LATER;
	return 0;
}

static int apply(struct horrible *horrible, struct expiry_record *record,
		 u64 now_ns, u64 given)
{
	struct horrible_timer *timer;
	u32 i;

	if (record->op < EXPIRY_OP_ARM || record->op > EXPIRY_OP_CLEAR)
		return -EOPNOTSUPP;
	if (record->status || record->flags & ~flags_of(record->op))
		return -EINVAL;
	if (record->op == EXPIRY_OP_ARM)
		return arm(horrible, record, now_ns, given);
	if (record->op == EXPIRY_OP_CLEAR) {
		record->cookie = horrible->nr;
		for (i = 0; i < horrible->nr; i++)
			horrible->cancels += horrible->timer[i].armed;
		record->flags = 0;
		horrible->nr = 0;
		return 0;
	}
	if (!record->id)
		return -EINVAL;
	timer = horrible_find(horrible, record->id);
	if (record->op == EXPIRY_OP_ACK) {
		if (!(horrible->mode & EXPIRY_MODE_ACK))
			return -EINVAL;
		if (!timer || !(timer->unacked || timer->redeliver))
			return -ENOENT;
		describe(horrible, record, timer);
		record->flags = 0;
		if (timer->unacked)
			end_delivery(horrible, timer);
		else
			end_late(horrible, timer);
		horrible->acks++;
		return 0;
	}
	if (!timer || !timer->armed)
		return -ENOENT;
	switch (record->op) {
	case EXPIRY_OP_REFRESH:
		timer->deadline = wanted(record, timer, now_ns);
		timer->past = timer->deadline < now_ns;
		/* Independent of a periodic timer's last delivery. */
		if (!timer->period_ms)
			timer->redeliver = false;
		horrible->refreshes++;
		describe(horrible, record, timer);
		return 0;
	case EXPIRY_OP_CANCEL:
		return cancel(horrible, record, timer, now_ns);
	default:
		describe(horrible, record, timer);
		return 0;
	}
}

void horrible_submit(struct horrible *horrible, struct expiry_record *record,
		     u64 now_ns, u64 given)
{
	int status = apply(horrible, record, now_ns, given);

	record->status = status;
	if (status)
		horrible->refused++;
}

/* Returns how many times of a periodic timer a fresh delivery stands for. */
static u64 times(const struct horrible_timer *timer, u64 now_ns)
{
	return (now_ns - timer->deadline) / period_ns(timer) + 1;
}

static u32 count_of(const struct horrible_timer *timer, u64 now_ns)
{
	u64 count;

	if (!timer->period_ms)
		return 0;
	count = timer->redeliver ? 1 : times(timer, now_ns);
	return count > 0xffffffff ? 0xffffffff : count;
}

const char *horrible_deliver(struct horrible *horrible,
			     const struct expiry_record *expired, u64 now_ns,
			     bool hold)
{
	struct horrible_timer *timer = horrible_find(horrible, expired->id);
	u8 flags;

	if (!timer || !timer->armed)
		return "delivered, but not armed";
	if (expired->op != EXPIRY_OP_EXPIRED || expired->status)
		return "delivered with a wrong op or a status";
	if (expired->deadline_ns != due_ns(timer) ||
	    expired->cookie != timer->cookie)
		return "delivered with another deadline or cookie";
	flags = timer->redeliver ? EXPIRY_F_REDELIVERED : 0;
	if (expired->flags != flags)
		return "redelivery not marked, or marked and none";
	if (due_ns(timer) > now_ns)
		return "early";
	if (due_ns(timer) == EXPIRY_NEVER)
		return "delivered what is never due";
	if (due_ns(timer) > horrible_next_ns(horrible))
		return "out of order";
	if (expired->count != count_of(timer, now_ns))
		return "delivered with another count";

	if (hold) {
		assert_true(horrible->nr_held < HELD_MAX);
		horrible->held[horrible->nr_held++] = *timer;
	}
	horrible->delivered++;
	horrible->redelivered += timer->redeliver;
	horrible->past += timer->past && !timer->redeliver;
	timer->unacked |= hold || horrible->mode & EXPIRY_MODE_ACK;
	if (!timer->period_ms)
		timer->armed = false;
	else if (!timer->redeliver)
		timer->deadline = add(timer->deadline + period_ns(timer) *
				      (times(timer, now_ns) - 1),
				      period_ns(timer));
	timer->redeliver = false;
	timer->past &= timer->deadline < now_ns;
	timer->held_next = timer->deadline;
	if (!timer->armed && !timer->unacked)
		forget(horrible, timer);
	return NULL;
}

void horrible_release(struct horrible *horrible, u64 id)
{
	struct horrible_timer *timer = horrible_find(horrible, id);

	if (!(horrible->mode & EXPIRY_MODE_ACK) && timer && timer->unacked)
		end_delivery(horrible, timer);
}

void horrible_restore(struct horrible *horrible,
		      const struct expiry_record *expired)
{
	struct horrible_timer *timer = horrible_find(horrible, expired->id);

	const struct horrible_timer *before = horrible->held;

	if (!timer || !timer->unacked)
		return;		/* cleared or armed anew meanwhile */
	/* A redelivery and the next time may both be due at 0. */
	while (before->id != expired->id ||
	       due_ns(before) != expired->deadline_ns ||
	       before->redeliver != !!(expired->flags & EXPIRY_F_REDELIVERED))
		before++;
	assert_true(before < horrible->held + horrible->nr_held);
	timer->unacked = false;
	timer->again = before->again;
	timer->redeliver = before->redeliver;
	/* A refresh since then stays in force. */
	if (timer->armed && timer->deadline != timer->held_next)
		return;
	/* Cancelled since then: one delivery is left. */
	timer->deadline = timer->armed ? before->deadline : due_ns(before);
	timer->armed = true;
}

void horrible_end_held(struct horrible *horrible)
{
	horrible->nr_held = 0;
}

void horrible_rewind(struct horrible *horrible, u64 now_ns)
{
	struct horrible_timer *timer;

	for (timer = horrible->timer; timer < horrible->timer + horrible->nr;
	     timer++) {
		if (!timer->unacked)
			continue;
		if (timer->armed)
			timer->again = again_ns(timer, now_ns);
		timer->armed = true;
		timer->unacked = false;
		timer->redeliver = true;
	}
}

u64 horrible_next_ns(const struct horrible *horrible)
{
	u64 next_ns = EXPIRY_NEVER;
	u32 i;

	for (i = 0; i < horrible->nr; i++)
		if (horrible->timer[i].armed &&
		    due_ns(&horrible->timer[i]) < next_ns)
			next_ns = due_ns(&horrible->timer[i]);
	return next_ns;
}

u32 horrible_armed(const struct horrible *horrible)
{
	u32 i, armed = 0;

	for (i = 0; i < horrible->nr; i++)
		armed += horrible->timer[i].armed;
	return armed;
}
