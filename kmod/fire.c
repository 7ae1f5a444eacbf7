// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wake readers when timers are due, and maintain a queue between calls. A queue
 * has one hrtimer, set for the earliest deadline. One work item waits for pages
 * on behalf of callers that must not wait. Another frees memory.
 *
 * The hrtimer only wakes. Timers are taken in the reader's context: a page may
 * have to be swapped in. A reader that does not read costs the others nothing.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/poll.h>
#include <linux/sched.h>

#include "clock.h"
#include "compat/compat.h"
#include "fire.h"
#include "params.h"
#include "queue_state.h"
#include "trace.h"
#include "use.h"

/* Stale nodes dropped from the top of the heap in one critical section. */
#define DROP_STEPS	64U

/* Records whose work one critical section of compaction does. */
#define TIDY_WORK	32U

static struct workqueue_struct *fire_wq;

/**
 * expiry_fire_wake - wake readers and pollers
 * @queue: a configured one. In any context.
 */
void expiry_fire_wake(struct expiry_queue *queue)
{
	WRITE_ONCE(queue->due, true);
	wake_up_poll(&queue->wait, EPOLLIN | EPOLLRDNORM);
}

/* Runs in hard interrupt context. While the event is traced, @programmed_ns stays:
 * see timer_set().
 */
static void fired(struct expiry_queue *queue, ktime_t now)
{
	u64 deadline_ns = READ_ONCE(queue->programmed_ns);

	expiry_fire_wake(queue);
	trace_expiry_fire(queue, deadline_ns, ktime_to_ns(now) - deadline_ns);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	fired(container_of(timer, struct expiry_queue, timer),
	      hrtimer_cb_get_time(timer));
	return HRTIMER_NORESTART;
}

#ifdef EXPIRY_HAVE_ALARM_RESTART
static enum alarmtimer_restart alarm_fired(struct alarm *alarm, ktime_t now)
{
	fired(container_of(alarm, struct expiry_queue, alarm), now);
	return ALARMTIMER_NORESTART;
}
#else
static void alarm_fired(struct alarm *alarm, ktime_t now)
{
	fired(container_of(alarm, struct expiry_queue, alarm), now);
}
#endif

static bool is_alarm(const struct expiry_queue *queue)
{
	return queue->clock_id == CLOCK_BOOTTIME_ALARM;
}

static bool timer_is_set(struct expiry_queue *queue)
{
	/* The interrupt changes it. */
	if (is_alarm(queue))
		return READ_ONCE(queue->alarm.state) & ALARMTIMER_STATE_ENQUEUED;
	return hrtimer_is_queued(&queue->timer);
}

/* Stops the timer. Waits for its interrupt to end. */
static void timer_stop(struct expiry_queue *queue)
{
	if (is_alarm(queue))
		alarm_cancel(&queue->alarm);
	else
		hrtimer_cancel(&queue->timer);
}

static void timer_set(struct expiry_queue *queue, u64 next_ns)
{
	/*
	 * An interrupt that has begun on another processor reports what the timer
	 * was set for. To stop the timer costs programming it twice, so that is
	 * done only for the report.
	 */
	if (trace_expiry_fire_enabled())
		timer_stop(queue);
	WRITE_ONCE(queue->programmed_ns, next_ns);
	if (!is_alarm(queue))
		hrtimer_start_range_ns(&queue->timer, ns_to_ktime(next_ns),
				       queue->slack_ns, HRTIMER_MODE_ABS);
	else if (!compat_alarm_start(&queue->alarm, ns_to_ktime(next_ns)))
		expiry_fire_wake(queue);
}

static void timer_unset(struct expiry_queue *queue)
{
	if (is_alarm(queue))
		alarm_try_to_cancel(&queue->alarm);
	else
		hrtimer_try_to_cancel(&queue->timer);
}

static bool is_due(const struct expiry_queue *queue)
{
	return queue->rewind || expiry_clock_wakes(queue) ||
	       timers_due(&queue->timers, expiry_clock_now(queue));
}

/* Updates @due and the hrtimer for the earliest deadline. */
static void program_locked(struct expiry_queue *queue)
{
	u64 next_ns = timers_next_ns(&queue->timers);

	if (is_due(queue)) {
		if (!READ_ONCE(queue->due))
			expiry_fire_wake(queue);
		return;
	}
	if (READ_ONCE(queue->due)) {
		WRITE_ONCE(queue->due, false);
		/*
		 * Unpaired: the interrupt may set @due between our clock read
		 * and our store, so check again.
		 */
		smp_mb();
		if (is_due(queue)) {
			expiry_fire_wake(queue);
			return;
		}
	}
	if (next_ns > KTIME_MAX) {
		timer_unset(queue);
		return;
	}
	/* Set the timer again if it fired before the clock was set back. */
	if (next_ns == queue->programmed_ns && timer_is_set(queue))
		return;
	timer_set(queue, next_ns);
}

/**
 * expiry_fire_update_locked - update the hrtimer after a use of the queue
 * @queue: a configured one
 *
 * Never waits. If it would have to, the work item does it, and nothing can be
 * read until then.
 */
void expiry_fire_update_locked(struct expiry_queue *queue)
{
	bool may_be_due;
	int ret = -EAGAIN;

	lockdep_assert_held(&queue->lock);

	queue->memory.nowait = true;
	if (!queue->memory.wanted)
		ret = timers_drop_stale(&queue->timers, DROP_STEPS);
	/* Pollers read its line: it is written when it changes. */
	may_be_due = !ret && is_due(queue);
	if (unlikely(queue->may_be_due != may_be_due))
		WRITE_ONCE(queue->may_be_due, may_be_due);
	if (ret == 1) {
		program_locked(queue);
		return;
	}
	WRITE_ONCE(queue->due, false);
	queue_work(fire_wq, &queue->fetch);
}

/*
 * Makes the top node a live one, with the page that was fetched for it. Returns 1
 * if done, 0 to continue, or a page error.
 */
static int fetch_locked(struct expiry_queue *queue, struct expiry_use *use)
{
	int err = use->fetch.err, ret;

	expiry_use_begin_locked(queue, use);
	if (err)
		return err;
	do {
		ret = timers_drop_stale(&queue->timers, DROP_STEPS);
	} while (ret == -EAGAIN && expiry_memory_reclaim(&queue->memory));
	expiry_use_end_locked(queue, use);
	if (!ret)
		use->tries = 0;
	/* Of this item, or of the use that it works for. */
	return use->fetch.array || expiry_use_take_left(queue, use) ? 0 : ret;
}

static void fetch_work(struct work_struct *work)
{
	struct expiry_queue *queue =
		container_of(work, struct expiry_queue, fetch);
	struct expiry_use use = { };
	int ret;

	do {
		mutex_lock(&queue->lock);
		ret = fetch_locked(queue, &use);
		/*
		 * The next reader gets the error. The top node may be stale
		 * then, but is never later than the true one.
		 */
		if (ret < 0)
			queue->error = ret;
		if (ret)
			program_locked(queue);
		expiry_fire_trim_idle_locked(queue);
		mutex_unlock(&queue->lock);
		expiry_use_fetch(queue, &use);
		cond_resched();
	} while (!ret);
}

static unsigned long trim_idle_delay(void)
{
	return max(msecs_to_jiffies(READ_ONCE(expiry_param_unpin_ms)), 1UL);
}

static bool is_since(unsigned long begin, unsigned long delay)
{
	return !time_before(jiffies, begin + delay);
}

static bool are_walks_late(const struct expiry_queue *queue)
{
	return is_since(queue->walked,
			msecs_to_jiffies(READ_ONCE(expiry_param_scan_ms)));
}

/* Returns whether timers may move as soon as walks are given up. */
static bool waits_for_walks(const struct expiry_queue *queue)
{
	return queue->timers.walks && timers_is_sparse(&queue->timers);
}

/*
 * Moves timers of an idle queue to the first slots, as far as its pages are in
 * memory: those that are not need no memory. Returns whether there is more to do.
 */
static bool tidy_locked(struct expiry_queue *queue)
{
	struct expiry_use use = { .nowait = true };
	int ret;

	if (!timers_is_sparse(&queue->timers))
		return false;
	expiry_use_begin_locked(queue, &use);
	ret = timers_tidy(&queue->timers, TIDY_WORK, are_walks_late(queue));
	expiry_use_forget_locked(queue, &use);
	expiry_fire_update_locked(queue);
	return ret > 0;
}

/*
 * Frees or unpins a bounded amount: all of an idle queue, after its timers have moved
 * together; of another one, in one round, the pages that were not used since the last.
 * Returns whether there is more to do now.
 */
static bool trim_idle_locked(struct expiry_queue *queue, bool *round)
{
	u32 unpinned;

	if (expiry_memory_trim(&queue->memory))
		return true;
	if (is_since(queue->used, trim_idle_delay()))
		return tidy_locked(queue) || expiry_memory_unpin(&queue->memory);
	if (*round)
		*round = expiry_memory_age(&queue->memory, &unpinned);
	return *round;
}

static void trim_idle_work(struct work_struct *work)
{
	struct expiry_queue *queue =
		container_of(to_delayed_work(work), struct expiry_queue,
			     trim_idle);
	bool more, idle, round = true;

	do {
		mutex_lock(&queue->lock);
		more = trim_idle_locked(queue, &round);
		idle = expiry_memory_idle(&queue->memory) &&
		       !waits_for_walks(queue);
		mutex_unlock(&queue->lock);
		cond_resched();
	} while (more);
	if (!idle)
		queue_delayed_work(fire_wq, &queue->trim_idle,
				   trim_idle_delay());
}

/**
 * expiry_fire_trim_idle_locked - schedule freeing of unused memory
 * @queue: just used
 */
void expiry_fire_trim_idle_locked(struct expiry_queue *queue)
{
	lockdep_assert_held(&queue->lock);

	if (!delayed_work_pending(&queue->trim_idle) &&
	    (!expiry_memory_idle(&queue->memory) ||
	     timers_is_sparse(&queue->timers)))
		queue_delayed_work(fire_wq, &queue->trim_idle,
				   trim_idle_delay());
}

/**
 * expiry_fire_open - initialize what expiry_fire_close() stops
 * @queue: a new one
 */
void expiry_fire_open(struct expiry_queue *queue)
{
	init_waitqueue_head(&queue->wait);
	INIT_WORK(&queue->fetch, fetch_work);
	INIT_DELAYED_WORK(&queue->trim_idle, trim_idle_work);
}

/**
 * expiry_fire_configure - put the hrtimer on the queue's clock
 * @queue: has its clock
 */
void expiry_fire_configure(struct expiry_queue *queue)
{
	if (is_alarm(queue))
		alarm_init(&queue->alarm, ALARM_BOOTTIME, alarm_fired);
	else
		compat_hrtimer_setup(&queue->timer, timer_fired,
				     queue->clock_id, HRTIMER_MODE_ABS);
}

/**
 * expiry_fire_close - stop the hrtimer and the work items
 * @queue: no longer reachable by others. May sleep.
 */
void expiry_fire_close(struct expiry_queue *queue)
{
	/* The work items set the timer; the timer queues no work. */
	cancel_work_sync(&queue->fetch);
	cancel_delayed_work_sync(&queue->trim_idle);
	if (queue->configured)
		timer_stop(queue);
}

/**
 * expiry_fire_init - create the workqueue when the module is loaded
 *
 * Returns 0 or -ENOMEM.
 */
int expiry_fire_init(void)
{
	/*
	 * Frozen with the processes: the items read from swap and free its slots,
	 * which must not happen after a hibernation image was made.
	 */
	fire_wq = alloc_workqueue("expiry", WQ_UNBOUND | WQ_FREEZABLE, 0);
	return fire_wq ? 0 : -ENOMEM;
}

/**
 * expiry_fire_exit - destroy it at unloading, when there are no queues
 */
void expiry_fire_exit(void)
{
	destroy_workqueue(fire_wq);
}
