// SPDX-License-Identifier: GPL-2.0-only
/*
 * Telling readers that something is due, and what is done for a queue while
 * nobody calls: one hrtimer set for the earliest deadline, one work item that
 * waits for pages in the place of callers who must not, one that lets go of
 * memory.
 *
 * The hrtimer only wakes. Timers are taken in the reader's context, where a
 * page may have to come back from swap and where a reader that does not read
 * costs nobody anything.
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
#include "queue.h"
#include "shrink.h"
#include "trace.h"

/* Stale nodes dropped from the top of the heap under one hold of the lock. */
#define SETTLE_STEPS	64U

static struct workqueue_struct *fire_wq;

static void wake(struct expiry_queue *queue)
{
	WRITE_ONCE(queue->due, true);
	wake_up_poll(&queue->wait, EPOLLIN | EPOLLRDNORM);
}

/* In hard interrupt context. */
static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct expiry_queue *queue =
		container_of(timer, struct expiry_queue, timer);

	wake(queue);
	trace_expiry_fire(queue, ktime_to_ns(hrtimer_get_softexpires(timer)),
			  ktime_to_ns(ktime_sub(hrtimer_cb_get_time(timer),
						hrtimer_get_softexpires(timer))));
	return HRTIMER_NORESTART;
}

static bool is_due(const struct expiry_queue *queue)
{
	return queue->rewind ||
	       timers_due(&queue->timers, expiry_clock_now(queue));
}

/* Make @due and the hrtimer tell the earliest deadline. */
static void program_locked(struct expiry_queue *queue)
{
	u64 next_ns = timers_next_ns(&queue->timers);

	if (is_due(queue)) {
		if (!READ_ONCE(queue->due))
			wake(queue);
		return;
	}
	if (READ_ONCE(queue->due)) {
		WRITE_ONCE(queue->due, false);
		/*
		 * Pairs with nothing: the interrupt may have set it between
		 * our look at the clock and our store, so look again.
		 */
		smp_mb();
		if (is_due(queue)) {
			wake(queue);
			return;
		}
	}
	if (next_ns > KTIME_MAX) {
		hrtimer_try_to_cancel(&queue->timer);
		return;
	}
	/* One that fired before the clock was set back is to be set again. */
	if (next_ns == queue->programmed_ns && hrtimer_is_queued(&queue->timer))
		return;
	queue->programmed_ns = next_ns;
	hrtimer_start_range_ns(&queue->timer, ns_to_ktime(next_ns),
			       queue->slack_ns, HRTIMER_MODE_ABS);
}

/**
 * expiry_fire_update_locked - the queue was used: tell when to look next
 * @queue: a configured one
 *
 * Never waits: where it would have to, it leaves that to the work item, and
 * until then nothing can be read.
 */
void expiry_fire_update_locked(struct expiry_queue *queue)
{
	lockdep_assert_held(&queue->lock);

	queue->memory.nowait = true;
	if (!queue->memory.wanted &&
	    timers_settle(&queue->timers, SETTLE_STEPS) == 1) {
		program_locked(queue);
		return;
	}
	WRITE_ONCE(queue->due, false);
	queue_work(fire_wq, &queue->settle);
}

/*
 * Bring in the page that a caller could not wait for, and put the top of the
 * heap right: 1 = done, 0 = go on, or the error of a page. -EAGAIN: not while
 * records are on their way to a reader, whose unlock will see to it again.
 */
static int settle_locked(struct expiry_queue *queue)
{
	int ret;

	queue->memory.nowait = false;
	queue->memory.relieved = false;
	do {
		ret = expiry_memory_fetch(&queue->memory);
		if (!ret)
			ret = timers_settle(&queue->timers, SETTLE_STEPS);
	} while (ret == -EAGAIN && expiry_memory_relieve(&queue->memory));
	return ret;
}

static void settle_work(struct work_struct *work)
{
	struct expiry_queue *queue =
		container_of(work, struct expiry_queue, settle);
	int ret;

	do {
		mutex_lock(&queue->lock);
		ret = settle_locked(queue);
		/*
		 * An error is the next reader's to hear; what is on top may be
		 * stale then, but is never later than the truth.
		 */
		if (ret < 0 && ret != -EAGAIN)
			queue->error = ret;
		if (ret && ret != -EAGAIN)
			program_locked(queue);
		expiry_fire_tend_locked(queue);
		expiry_shrink_update_locked(queue);
		mutex_unlock(&queue->lock);
		cond_resched();
	} while (!ret);
}

static unsigned long tend_delay(void)
{
	return max(msecs_to_jiffies(READ_ONCE(expiry_param_unpin_ms)), 1UL);
}

/* One bounded step of letting go; true: there is more to do now. */
static bool tend_locked(struct expiry_queue *queue)
{
	if (expiry_memory_trim(&queue->memory))
		return true;
	if (time_before(jiffies, queue->used + tend_delay()))
		return false;
	return expiry_memory_unpin(&queue->memory);
}

static void tend_work(struct work_struct *work)
{
	struct expiry_queue *queue =
		container_of(to_delayed_work(work), struct expiry_queue, tend);
	bool more, idle;

	do {
		mutex_lock(&queue->lock);
		more = tend_locked(queue);
		idle = expiry_memory_idle(&queue->memory);
		expiry_shrink_update_locked(queue);
		mutex_unlock(&queue->lock);
		cond_resched();
	} while (more);
	if (!idle)
		queue_delayed_work(fire_wq, &queue->tend, tend_delay());
}

/**
 * expiry_fire_tend_locked - see to it that memory no longer used is let go of
 * @queue: that was just used
 */
void expiry_fire_tend_locked(struct expiry_queue *queue)
{
	lockdep_assert_held(&queue->lock);

	if (!delayed_work_pending(&queue->tend) &&
	    !expiry_memory_idle(&queue->memory))
		queue_delayed_work(fire_wq, &queue->tend, tend_delay());
}

/**
 * expiry_fire_open - make ready what can be closed again
 * @queue: a new one
 */
void expiry_fire_open(struct expiry_queue *queue)
{
	init_waitqueue_head(&queue->wait);
	INIT_WORK(&queue->settle, settle_work);
	INIT_DELAYED_WORK(&queue->tend, tend_work);
}

/**
 * expiry_fire_configure - put the hrtimer on the queue's clock
 * @queue: whose clock is known
 */
void expiry_fire_configure(struct expiry_queue *queue)
{
	compat_hrtimer_setup(&queue->timer, timer_fired, queue->clock_id,
			     HRTIMER_MODE_ABS);
}

/**
 * expiry_fire_close - nothing happens to the queue by itself any more
 * @queue: that nobody else knows any more. May sleep.
 */
void expiry_fire_close(struct expiry_queue *queue)
{
	/* The work items set the timer; the timer queues no work. */
	cancel_work_sync(&queue->settle);
	cancel_delayed_work_sync(&queue->tend);
	if (queue->configured)
		hrtimer_cancel(&queue->timer);
}

/**
 * expiry_fire_init - at the loading of the module
 *
 * Returns 0 or -ENOMEM.
 */
int expiry_fire_init(void)
{
	fire_wq = alloc_workqueue("expiry", WQ_UNBOUND, 0);
	return fire_wq ? 0 : -ENOMEM;
}

/**
 * expiry_fire_exit - at its unloading, when there are no queues left
 */
void expiry_fire_exit(void)
{
	destroy_workqueue(fire_wq);
}
