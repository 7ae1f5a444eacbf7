// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: making, configuring and freeing them, and every use of core/.
 *
 * Locking
 *
 * queue->lock (mutex) protects the timers and their pages: all of core/ is
 *	called under it. Held for a bounded number of heap steps, which may
 *	wait for a page from swap; never while user memory is faulted in: a
 *	reader's records are copied with page faults disabled.
 *	expiry_queue_lock() takes it. Its nowait form waits neither for the
 *	lock nor, under it, for a page. expiry_queue_unlock() updates the
 *	hrtimer and @due before it releases the lock. So whenever the lock is
 *	free, they are correct, or a work item is queued to correct them.
 *
 * users_lock (mutex, user.c) protects the counts of queues.
 * expiry_registry_lock (mutex, registry.c) protects the list of all of them. No
 * other mutex is taken under either.
 *
 * The list of queues with pinned pages has a spinlock of its own (list_lru, see
 * shrink.c), which also keeps a queue in it from being freed.
 *
 * queue->wait.lock (spinlock) is the innermost. The hrtimer's interrupt takes
 *	it to wake readers, with no other lock held.
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

#include "bheap.h"
#include "clock.h"
#include "compat/compat.h"
#include "fire.h"
#include "params.h"
#include "queue.h"
#include "registry.h"
#include "shrink.h"
#include "trace.h"
#include "user.h"

/* About how many pages to unpin after a use that finds too many pinned. */
#define UNPIN_PAGES	2048

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

	queue = expiry_shrink_queue_new();
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
	expiry_shrink_queue_free(queue);
	return ERR_PTR(err);
}

/**
 * expiry_queue_free - remove a queue with its timers
 * @queue: no longer reachable by others. May sleep.
 */
void expiry_queue_free(struct expiry_queue *queue)
{
	expiry_registry_remove(queue);
	expiry_fire_close(queue);
	expiry_shrink_remove(queue);
	expiry_memory_destroy(&queue->memory);
	mem_cgroup_put(queue->memcg);
	expiry_user_uncharge(queue->owner);
	pr_debug("queue %u: destroyed\n", queue->serial);
	mutex_destroy(&queue->lock);
	expiry_shrink_queue_free(queue);
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

	queue->clock_id = config->clock_id;
	queue->slack_ns = min_t(u64, config->slack_ns, KTIME_MAX);
	expiry_clock_start(queue);
	expiry_fire_configure(queue);
	/* Pairs with expiry_queue_is_configured(). */
	smp_store_release(&queue->configured, true);
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
 * Returns 0, -EBUSY (it is configured), -EINVAL, -ENOMEM, -ENFILE, -EINTR.
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
 * @nowait: wait neither for the lock nor for a page
 *
 * With @nowait core/ returns -EAGAIN where it would wait for a page.
 *
 * Returns 0, -EAGAIN (the lock is taken), -EINTR (killed while waiting).
 */
int expiry_queue_lock(struct expiry_queue *queue, bool nowait)
{
	if (nowait) {
		if (!mutex_trylock(&queue->lock))
			return -EAGAIN;
	} else if (mutex_lock_killable(&queue->lock)) {
		return -EINTR;
	}
	queue->used = jiffies;
	queue->memory.nowait = nowait;
	queue->memory.reclaimed = false;
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

/* Unpins some of the pages above the limit. */
static void unpin_some(struct expiry_queue *queue)
{
	struct expiry_memory *memory = &queue->memory;
	bool reclaim_wanted = READ_ONCE(queue->reclaim_wanted);
	u32 most = reclaim_wanted ? 0 : READ_ONCE(expiry_param_pin_max);
	u32 put = 1, done = 0;

	while (memory->pinned > most && put && done < UNPIN_PAGES) {
		put = expiry_memory_unpin(memory);
		done += put;
	}
	if (reclaim_wanted && !memory->pinned)
		WRITE_ONCE(queue->reclaim_wanted, false);
}

/**
 * expiry_queue_unlock - end a use of the queue
 * @queue: locked by expiry_queue_lock() or _lock_to_look()
 */
void expiry_queue_unlock(struct expiry_queue *queue)
{
	u64 swept = queue->timers.stat.swept;

	if (swept != queue->swept) {
		trace_expiry_sweep(queue, swept - queue->swept);
		queue->swept = swept;
	}
	expiry_fire_update_locked(queue);
	unpin_some(queue);
	expiry_fire_trim_idle_locked(queue);
	expiry_shrink_update_locked(queue);
	mutex_unlock(&queue->lock);
}

/**
 * expiry_queue_submit_locked - process records in place
 * @queue: a configured one
 * @records: in kernel memory
 * @count: how many
 *
 * Returns how many were processed: all, unless the queue was locked with
 * @nowait.
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
	u64 cursor = 0;
	int ret;

	do {
		ret = expiry_queue_lock(queue, false);
		if (ret)
			return ret;
		ret = expiry_queue_rewind_locked(queue, &cursor);
		expiry_queue_unlock(queue);
		if (ret > 0 && fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	} while (ret > 0);
	return ret;
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
