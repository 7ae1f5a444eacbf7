// SPDX-License-Identifier: GPL-2.0-only
/*
 * Uses of a queue: see use.h.
 */
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "queue_state.h"
#include "use.h"

/*
 * Pages fetched in a row before a use waits under the lock. Where memory is very
 * short, what one page needs may push out another that the same operation needs.
 */
#define TRIES_MAX	64U

/*
 * Returns whether sweeps have left many stale nodes because their pages were not
 * in memory. A sweep that waits for them keeps the heap within its pages.
 */
static bool has_old_nodes(const struct expiry_queue *queue)
{
	const struct timers *timers = &queue->timers;

	return timers->heap.nr > timers->limit + timers->limit / 2 +
	       timers->limit / 4 + 2 * BHEAP_NODES_PER_PAGE;
}

/**
 * expiry_use_begin_locked - begin or continue a use
 * @queue: just locked
 * @use: may have a fetched page, which the core then finds
 */
void expiry_use_begin_locked(struct expiry_queue *queue,
			     struct expiry_use *use)
{
	struct expiry_memory *memory = &queue->memory;

	lockdep_assert_held(&queue->lock);

	memory->failed = NULL;
	if (use->fetch.array)
		expiry_memory_install(memory, &use->fetch);
	memory->nowait = use->nowait ||
			 !(use->patient || has_old_nodes(queue));
	memory->reclaimed = false;
	use->left = memory->wanted;
	use->left_index = memory->wanted_index;
	memory->wanted = NULL;
}

/**
 * expiry_use_end_locked - note the page that is missing
 * @queue: about to be unlocked
 * @use: gets the page; with @nowait it is left to the work item
 */
void expiry_use_end_locked(struct expiry_queue *queue, struct expiry_use *use)
{
	struct expiry_memory *memory = &queue->memory;

	lockdep_assert_held(&queue->lock);

	if (!use->nowait)
		expiry_memory_want(memory, &use->fetch);
	if (!memory->wanted) {
		memory->wanted = use->left;
		memory->wanted_index = use->left_index;
	}
}

/**
 * expiry_use_forget_locked - end a use whose missing page nobody shall bring in
 * @queue: about to be unlocked
 * @use: with @nowait
 */
void expiry_use_forget_locked(struct expiry_queue *queue,
			      const struct expiry_use *use)
{
	struct expiry_memory *memory = &queue->memory;

	lockdep_assert_held(&queue->lock);

	memory->wanted = use->left;
	memory->wanted_index = use->left_index;
}

/**
 * expiry_use_take_left - take over the page that another use could not wait for
 * @queue: locked
 * @use: ended and misses no page itself
 *
 * Returns whether there was one.
 */
bool expiry_use_take_left(struct expiry_queue *queue, struct expiry_use *use)
{
	lockdep_assert_held(&queue->lock);

	expiry_memory_want(&queue->memory, &use->fetch);
	return use->fetch.array;
}

/* Unpins all pages of a queue that found no memory. */
static void unpin_all(struct expiry_queue *queue)
{
	if (mutex_lock_killable(&queue->lock))
		return;
	while (expiry_memory_unpin(&queue->memory))
		cond_resched();
	mutex_unlock(&queue->lock);
}

/**
 * expiry_use_fetch_page - bring in the page that is missing
 * @queue: not locked; may sleep
 * @use: with a missing page
 *
 * Returns whether to continue the use: see expiry_use_fetch().
 */
bool expiry_use_fetch_page(struct expiry_queue *queue, struct expiry_use *use)
{
	if (fatal_signal_pending(current)) {
		expiry_memory_drop(&use->fetch);
		return false;
	}
	if (use->tries++ >= TRIES_MAX) {
		expiry_memory_drop(&use->fetch);
		use->patient = true;
		return true;
	}
	expiry_memory_fetch(&queue->memory, &use->fetch, false);
	if (use->fetch.err == -ENOMEM) {
		unpin_all(queue);
		expiry_memory_fetch(&queue->memory, &use->fetch, true);
	}
	return true;
}
