// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clocks that queues run on.
 *
 * Deadlines are on the host's clocks, also for a caller in a time namespace.
 */
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/time.h>
#include <linux/timekeeping.h>

#include "clock.h"
#include "queue_state.h"

/**
 * expiry_clock_valid - check whether a queue can run on a clock
 * @clock_id: as userspace gave it
 */
bool expiry_clock_valid(u32 clock_id)
{
	switch (clock_id) {
	case CLOCK_REALTIME:
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
		return true;
	default:
		return false;
	}
}

/**
 * expiry_clock_name - get a clock's readable name
 * @clock_id: a valid one
 */
const char *expiry_clock_name(clockid_t clock_id)
{
	switch (clock_id) {
	case CLOCK_REALTIME:
		return "realtime";
	case CLOCK_MONOTONIC:
		return "monotonic";
	default:
		return "boottime";
	}
}

/**
 * expiry_clock_now - nanoseconds on the queue's clock
 * @queue: a configured one
 */
u64 expiry_clock_now(const struct expiry_queue *queue)
{
	switch (queue->clock_id) {
	case CLOCK_REALTIME:
		return ktime_get_real_ns();
	case CLOCK_MONOTONIC:
		return ktime_get_ns();
	default:
		return ktime_get_boottime_ns();
	}
}

/*
 * Returns CLOCK_REALTIME minus CLOCK_BOOTTIME. Changes when CLOCK_REALTIME is
 * stepped (also by a leap second). Slewing moves both clocks, and both count
 * suspend.
 */
static s64 clock_offset_ns(void)
{
	return ktime_to_ns(ktime_sub(ktime_mono_to_any(0, TK_OFFS_REAL),
				     ktime_mono_to_any(0, TK_OFFS_BOOT)));
}

/**
 * expiry_clock_start - detect steps of the clock from here on
 * @queue: being configured
 */
void expiry_clock_start(struct expiry_queue *queue)
{
	if (queue->clock_id == CLOCK_REALTIME)
		queue->clock_offset_ns = clock_offset_ns();
}

/**
 * expiry_clock_check_locked - check whether the clock was stepped
 * @queue: a configured one
 *
 * The kernel notifies no module when the clock is set, but moves hrtimers
 * itself. So checking at each read is enough. Sets queue->clock_set if the
 * clock was stepped since the last check.
 */
void expiry_clock_check_locked(struct expiry_queue *queue)
{
	s64 offset_ns;

	lockdep_assert_held(&queue->lock);

	if (queue->clock_id != CLOCK_REALTIME)
		return;
	offset_ns = clock_offset_ns();
	if (likely(offset_ns == queue->clock_offset_ns))
		return;
	queue->clock_offset_ns = offset_ns;
	queue->clock_set = true;
	queue->clock_sets++;
}
