// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clocks that queues run on.
 *
 * A queue keeps the host's time; timens.c converts for callers in a time
 * namespace.
 */
#include <linux/bits.h>
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
	return clock_id < 32 && expiry_clock_all() & BIT(clock_id);
}

/**
 * expiry_clock_all - the clocks of queues: bit n is clock n
 */
u32 expiry_clock_all(void)
{
	return BIT(CLOCK_REALTIME) | BIT(CLOCK_MONOTONIC) |
	       BIT(CLOCK_BOOTTIME) | BIT(CLOCK_BOOTTIME_ALARM);
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
	case CLOCK_BOOTTIME_ALARM:
		return "boottime-alarm";
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
	ktime_t real, boot, again = ktime_mono_to_any(0, TK_OFFS_BOOT);

	/* The end of a suspend moves both, perhaps between the two calls. */
	do {
		boot = again;
		real = ktime_mono_to_any(0, TK_OFFS_REAL);
		again = ktime_mono_to_any(0, TK_OFFS_BOOT);
	} while (again != boot);
	return ktime_to_ns(ktime_sub(real, boot));
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
 * The kernel moves hrtimers itself when the clock is set. So checking at each
 * read is enough, unless a reader wants to be woken (step.c). Sets
 * queue->clock_set if the clock was stepped since the last check. What is due by
 * now then counts as held, not as late.
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
	WRITE_ONCE(queue->clock_offset_ns, offset_ns);
	WRITE_ONCE(queue->clock_set, true);
	queue->clock_sets++;
	/* A timer that the step made due is not late. */
	queue->timers.taken_ns = expiry_clock_now(queue);
}

/**
 * expiry_clock_wakes - check whether a step is to wake the queue's readers
 * @queue: a configured one
 */
bool expiry_clock_wakes(const struct expiry_queue *queue)
{
	return queue->wake_on_step &&
	       (READ_ONCE(queue->clock_set) ||
		clock_offset_ns() != READ_ONCE(queue->clock_offset_ns));
}
