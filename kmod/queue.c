// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: making, configuring and freeing them, and every use of core/.
 *
 * Locking
 *
 * queue->lock (mutex) protects the timers and their pages: all of core/ is
 *	called under it. Held for a bounded number of heap steps, which wait
 *	for a page from swap only where a use is patient (use.h); never while
 *	user memory is faulted in: a reader's records are copied with page
 *	faults disabled.
 *	expiry_queue_lock() takes it. Its nowait form waits neither for the
 *	lock nor, under it, for a page. expiry_queue_unlock() updates the
 *	hrtimer and @due before it releases the lock. So whenever the lock is
 *	free, they are correct, or a work item is queued to correct them.
 *
 * users_lock (mutex, user.c) protects the counts of queues.
 * expiry_registry_lock (mutex, registry.c) protects the list of all of them. No
 * other mutex is taken under either.
 *
 * The lists of tables with pinned pages have spinlocks of their own (list_lru, see
 * pins.h), which also keep a queue in them from being freed.
 *
 * queue->wait.lock (spinlock) is the innermost. The hrtimer's interrupt takes
 *	it to wake readers, with no other lock held.
 *
 * step_lock (mutex, step.c) protects the notifier of clock steps. A configuration
 * takes it under lock.
 *
 * Order: lock, the list's spinlock. The shrinker runs inside of any
 * memory allocation, under any of the mutexes. Its order is the reverse: under
 * the list's spinlock it tries lock.
 *
 * Contexts: system calls and io_uring's workers (lock), the work items of
 * fire.c (lock), the shrinker (tries lock), the hrtimer's interrupt (sets @due
 * and wakes), poll (reads @due, takes nothing).
 *
 * Lifetime: a queue is its open file. Every caller holds the file, so release
 * comes last; the file holds the module. Release stops the hrtimer and the work
 * items before it frees anything.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/memcontrol.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "bheap.h"
#include "clock.h"
#include "compat/compat.h"
#include "fire.h"
#include "params.h"
#include "queue.h"
#include "registry.h"
#include "step.h"
#include "trace.h"
#include "user.h"

/* About how many pages to unpin after a use that finds too many pinned, and how
 * many tables to visit for that.
 */
#define UNPIN_PAGES	2048U
#define UNPIN_VISITS	64U

/* Pages of a queue that stay pinned where the shrinker is not called when its
 * memory cgroup is short of memory.
 */
#define UNSHRUNK_PINS	64U

static atomic_t serials;

/**
 * expiry_queue_new - make an unconfigured queue for the calling process
 *
 * Returns it, or -EMFILE (the user has too many), -ENOMEM.
 */
struct expiry_queue *expiry_queue_new(void)
{
	struct expiry_queue *queue;
	int err;

	queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return ERR_PTR(-ENOMEM);
	queue->owner = current_uid();
	err = expiry_user_charge(queue->owner);
	if (err)
		goto out_free;
	queue->serial = atomic_inc_return(&serials);
	queue->memcg = compat_memcg_get_current();
	queue->layout = &bheap_sorted;
	mutex_init(&queue->lock);
	expiry_fire_open(queue);
	expiry_registry_add(queue);
	pr_debug("queue %u: created\n", queue->serial);
	return queue;

out_free:
	kfree(queue);
	return ERR_PTR(err);
}

/**
 * expiry_queue_free - remove a queue with its timers
 * @queue: no longer reachable by others. May sleep.
 */
void expiry_queue_free(struct expiry_queue *queue)
{
	expiry_registry_remove(queue);
	if (queue->wake_on_step)
		expiry_step_put();
	expiry_fire_close(queue);
	mutex_lock(&queue->lock);
	expiry_memory_destroy(&queue->memory);
	mutex_unlock(&queue->lock);
	mem_cgroup_put(queue->memcg);
	expiry_user_uncharge(queue->owner);
	pr_debug("queue %u: destroyed\n", queue->serial);
	mutex_destroy(&queue->lock);
	kfree(queue);
	expiry_registry_count_destroyed();
}

/**
 * expiry_queue_set_layout - set the layout of the heap
 * @queue: not yet configured
 * @layout: one of core/'s. May sleep.
 *
 * Returns 0, -EBUSY (it is configured), -EINTR.
 */
int expiry_queue_set_layout(struct expiry_queue *queue,
			    const struct bheap_layout *layout)
{
	int err;

	err = mutex_lock_killable(&queue->lock);
	if (err)
		return err;
	if (queue->configured)
		err = -EBUSY;
	else
		queue->layout = layout;
	mutex_unlock(&queue->lock);
	return err;
}

/* Configures a queue; on failure nothing has changed. */
static int configure_locked(struct expiry_queue *queue,
			    const struct expiry_config *config)
{
	struct core_pages *pages[TIMERS_PAGES_NR];
	struct timers_config timers = {
		.mode = config->mode,
		.limit = config->limit,
		.layout = queue->layout,
	};
	int i, err;

	lockdep_assert_held(&queue->lock);

	if (queue->configured)
		return -EBUSY;
	get_random_bytes(timers.seed, sizeof(timers.seed));
	err = expiry_memory_init(&queue->memory, &timers, queue->memcg,
				 READ_ONCE(expiry_param_pageable));
	if (err)
		return err;
	for (i = 0; i < TIMERS_PAGES_NR; i++)
		pages[i] = &queue->memory.array[i].pages;
	err = timers_setup(&queue->timers, &timers, pages);
	if (err)
		goto out_memory;

	if (config->flags & EXPIRY_CONFIG_CLOCK_SET) {
		err = expiry_step_get();
		if (err)
			goto out_memory;
		queue->wake_on_step = true;
	}
	queue->clock_id = config->clock_id;
	queue->slack_ns = min_t(u64, config->slack_ns, KTIME_MAX);
	expiry_clock_start(queue);
	expiry_fire_configure(queue);
	/* Pairs with expiry_queue_is_configured(). */
	smp_store_release(&queue->configured, true);
	/* A step since expiry_clock_start() may have found no queue yet. */
	if (expiry_clock_wakes(queue))
		expiry_fire_wake(queue);
	trace_expiry_config(queue);
	return 0;

out_memory:
	expiry_memory_destroy(&queue->memory);
	return err;
}

/**
 * expiry_queue_configure - set a queue's clock, mode, slack and limit
 * @queue: a new one
 * @config: checked, with the final limit. May sleep.
 *
 * Returns 0, -EBUSY (it is configured), -EINVAL, -ENOMEM, -ENFILE, -EOPNOTSUPP
 * (a flag), -EINTR.
 */
int expiry_queue_configure(struct expiry_queue *queue,
			   const struct expiry_config *config)
{
	int err;

	err = mutex_lock_killable(&queue->lock);
	if (err)
		return err;
	err = configure_locked(queue, config);
	mutex_unlock(&queue->lock);
	if (!err)
		pr_debug("queue %u: %s, mode %#x, limit %llu, %s pages\n",
			 queue->serial, expiry_clock_name(queue->clock_id),
			 config->mode, config->limit, queue->layout->name);
	return err;
}

/**
 * expiry_queue_lock - take the lock to use the queue
 * @queue: a configured one
 * @use: begun or continued
 *
 * core/ returns -EAGAIN where it would wait for a page. After the unlock,
 * expiry_use_fetch() brings that page in, and the use continues here.
 *
 * Returns 0, -EAGAIN (@use may not wait for the lock), -EINTR (killed while
 * waiting). On failure the use has ended.
 */
int expiry_queue_lock(struct expiry_queue *queue, struct expiry_use *use)
{
	if (use->nowait) {
		if (!mutex_trylock(&queue->lock))
			return -EAGAIN;
	} else if (mutex_lock_killable(&queue->lock)) {
		expiry_memory_drop(&use->fetch);
		return -EINTR;
	}
	queue->used = jiffies;
	expiry_use_begin_locked(queue, use);
	return 0;
}

/**
 * expiry_queue_lock_to_look - take the lock only to look at the queue
 * @queue: a configured one
 *
 * A look is no use of the queue: pages of a queue that is only looked at are
 * unpinned like those of an idle one.
 *
 * Returns 0 or -EINTR (killed while waiting).
 */
int expiry_queue_lock_to_look(struct expiry_queue *queue)
{
	return mutex_lock_killable(&queue->lock);
}

/* Returns about how many pages may stay pinned. */
static u32 most_pins(const struct expiry_queue *queue)
{
	u32 most = READ_ONCE(expiry_param_pin_max);

	return compat_memcg_shrinks(queue->memcg) ? most :
	       min(most, UNSHRUNK_PINS);
}

/* Visits tables while too many pages are pinned, and for the shrinker. */
static void unpin_some(struct expiry_queue *queue)
{
	struct expiry_memory *memory = &queue->memory;
	u32 wanted = atomic_read(&queue->reclaim_wanted), most = most_pins(queue);
	u32 visits = 0, done = 0, put;

	while (memory->file && memory->pinned && visits < UNPIN_VISITS &&
	       done < UNPIN_PAGES &&
	       (memory->pinned > most || visits < wanted)) {
		expiry_memory_age(memory, &put);
		done += put;
		visits++;
	}
	if (wanted)
		atomic_sub(memory->pinned ? min(visits, wanted) : wanted,
			   &queue->reclaim_wanted);
}

/**
 * expiry_queue_unlock - end a use of the queue, or a part of it
 * @queue: locked by expiry_queue_lock() or _lock_to_look()
 * @use: of expiry_queue_lock(), gets the page that was missing; else NULL
 */
void expiry_queue_unlock(struct expiry_queue *queue, struct expiry_use *use)
{
	u64 swept = queue->timers.stat.swept;

	if (use)
		expiry_use_end_locked(queue, use);
	if (swept != queue->swept) {
		trace_expiry_sweep(queue, swept - queue->swept);
		queue->swept = swept;
	}
	expiry_fire_update_locked(queue);
	unpin_some(queue);
	expiry_fire_trim_idle_locked(queue);
	mutex_unlock(&queue->lock);
}

/**
 * expiry_queue_submit_locked - process records in place
 * @queue: a configured one
 * @records: in kernel memory
 * @count: how many
 *
 * Returns how many were processed: all, unless a page is missing.
 */
u32 expiry_queue_submit_locked(struct expiry_queue *queue,
			       struct expiry_record *records, u32 count)
{
	u64 now_ns = expiry_clock_now(queue);
	u32 done;

	lockdep_assert_held(&queue->lock);

	done = timers_submit(&queue->timers, records, count, now_ns);
	while (done < count && expiry_memory_reclaim(&queue->memory))
		done += timers_submit(&queue->timers, records + done,
				      count - done, now_ns);
	WARN_ON_ONCE(done < count && !queue->memory.nowait);
	trace_expiry_submit(queue, count, done);
	return done;
}

/**
 * expiry_queue_scan_locked - list timers
 * @queue: a configured one
 * @records: room for @count rows, in kernel memory
 * @count: how many
 * @cursor: where to continue
 *
 * Returns as timers_scan().
 */
int expiry_queue_scan_locked(struct expiry_queue *queue,
			     struct expiry_record *records, u32 count,
			     u64 *cursor)
{
	int ret;

	lockdep_assert_held(&queue->lock);

	queue->walked = jiffies;
	do {
		ret = timers_scan(&queue->timers, records, count, cursor);
	} while (ret == -EAGAIN && expiry_memory_reclaim(&queue->memory));
	return ret;
}

/**
 * expiry_queue_rewind_locked - do a bounded part of a rewind
 * @queue: a configured one
 * @cursor: where to continue, 0 at first
 *
 * Returns 1 if there is more to do, 0 at the end, or a page error.
 */
int expiry_queue_rewind_locked(struct expiry_queue *queue, u64 *cursor)
{
	int ret;

	lockdep_assert_held(&queue->lock);

	queue->walked = jiffies;
	do {
		ret = timers_rewind(&queue->timers, cursor,
				    expiry_clock_now(queue));
	} while (ret == -EAGAIN && expiry_memory_reclaim(&queue->memory));
	return ret;
}

/**
 * expiry_queue_rewind - make unacknowledged deliveries due again
 * @queue: a configured one. May sleep.
 *
 * Leaves @queue->rewind to the readers: records that a reader could not restore
 * since this began may be behind it.
 *
 * Returns 0, or -EINTR, -ENOMEM, -EIO when only a part could be done.
 */
int expiry_queue_rewind(struct expiry_queue *queue)
{
	struct expiry_use use = { };
	u64 cursor = 0;
	int ret;

	do {
		ret = expiry_queue_lock(queue, &use);
		if (ret)
			return ret;
		ret = expiry_queue_rewind_locked(queue, &cursor);
		if (ret > 0 && fatal_signal_pending(current))
			ret = -EINTR;
		if (ret < 0 && ret != -EAGAIN)
			timers_walk_stop(&queue->timers, &cursor);
		expiry_queue_unlock(queue, &use);
		if (ret > 0)
			use.tries = 0;
		else if (ret == -EAGAIN && expiry_use_fetch(queue, &use))
			ret = 1;
		cond_resched();
	} while (ret > 0);
	return ret == -EAGAIN ? -EINTR : ret;
}

/**
 * expiry_queue_stat_locked - get the counters of a queue
 * @queue: a configured one
 * @stat: all of it is written
 */
void expiry_queue_stat_locked(struct expiry_queue *queue,
			      struct expiry_stat *stat)
{
	lockdep_assert_held(&queue->lock);

	memset(stat, 0, sizeof(*stat));
	timers_stat(&queue->timers, stat);
	expiry_clock_check_locked(queue);
	stat->now_ns = expiry_clock_now(queue);
	stat->pages_resident = expiry_memory_resident(&queue->memory);
	stat->clock_sets = queue->clock_sets;
	stat->clock_id = queue->clock_id;
}
