// SPDX-License-Identifier: GPL-2.0-only
/*
 * When memory is short, in the machine or in a memory cgroup, the shrinker
 * unpins pages of queues so that they can be paged out.
 *
 * Queues with pinned pages are in the list of the memory cgroup that they are
 * charged to. The list_lru derives the cgroup from the queue's own memory;
 * hence the slab cache.
 */
#include <linux/list_lru.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "queue_state.h"
#include "shrink.h"

static struct kmem_cache *cache;	/* of queues */
static struct list_lru queues_lru;	/* queues with pinned pages */
static struct shrinker *shrinker;
static bool ready;			/* @queues_lru can be used */

/* Counts a queue as one table of pages, the amount unpinned at a time. */
static unsigned long count_pages(struct shrinker *unused,
				 struct shrink_control *sc)
{
	unsigned long nr;

	/* Pairs with expiry_shrink_init(). */
	if (!smp_load_acquire(&ready))
		return SHRINK_EMPTY;
	nr = list_lru_shrink_count(&queues_lru, sc);
	return nr ? nr * CORE_DIR_SIZE : SHRINK_EMPTY;
}

/*
 * Unpins pages of one queue, under the list's spinlock, which keeps the queue
 * from being freed. Runs in any allocation, so also under the lock of a queue:
 * tries the lock and never waits for it. The lock's holder may itself wait for
 * memory: ask it to unpin at unlock. Each queue visited goes to the end of the
 * list, locked or not: one that is locked for long does not hide the others.
 */
static enum lru_status unpin_queue(struct list_head *item,
				   struct list_lru_one *list,
				   COMPAT_LIST_LRU_LOCK void *unpinned)
{
	struct expiry_queue *queue =
		container_of(item, struct expiry_queue, lru);
	enum lru_status status = LRU_ROTATE;

	if (!mutex_trylock(&queue->lock)) {
		WRITE_ONCE(queue->reclaim_wanted, true);
		return status;
	}
	*(unsigned long *)unpinned += expiry_memory_unpin(&queue->memory);
	if (!queue->memory.pinned) {
		list_lru_isolate(list, item);
		queue->listed = false;
		status = LRU_REMOVED;
	}
	mutex_unlock(&queue->lock);
	return status;
}

static unsigned long unpin_queues(struct shrinker *unused,
				  struct shrink_control *sc)
{
	unsigned long nr = DIV_ROUND_UP(sc->nr_to_scan, CORE_DIR_SIZE);
	unsigned long unpinned = 0;

	list_lru_walk_one(&queues_lru, sc->nid, sc->memcg, unpin_queue,
			  &unpinned, &nr);
	/* 0 is no reason to stop: the next queue may not be locked. */
	return unpinned;
}

/**
 * expiry_shrink_queue_new - allocate a queue, charged to the caller
 *
 * Returns it, all zero but for the list head, or NULL.
 */
struct expiry_queue *expiry_shrink_queue_new(void)
{
	struct expiry_queue *queue;

	queue = kmem_cache_alloc_lru(cache, &queues_lru,
				     GFP_KERNEL | __GFP_ZERO);
	if (queue)
		INIT_LIST_HEAD(&queue->lru);
	return queue;
}

/**
 * expiry_shrink_queue_free - free a queue's memory
 * @queue: not in the list
 */
void expiry_shrink_queue_free(struct expiry_queue *queue)
{
	kmem_cache_free(cache, queue);
}

/**
 * expiry_shrink_update_locked - list the queue if it has pinned pages
 * @queue: just used
 */
void expiry_shrink_update_locked(struct expiry_queue *queue)
{
	bool pins = queue->memory.file && queue->memory.pinned;

	lockdep_assert_held(&queue->lock);

	if (pins == queue->listed)
		return;
	if (pins)
		compat_list_lru_add(&queues_lru, &queue->lru);
	else
		compat_list_lru_del(&queues_lru, &queue->lru);
	queue->listed = pins;
}

/**
 * expiry_shrink_remove - unlist a queue and wait for its shrinking
 * @queue: no longer used by others
 */
void expiry_shrink_remove(struct expiry_queue *queue)
{
	compat_list_lru_del(&queues_lru, &queue->lru);
}

/**
 * expiry_shrink_init - register the shrinker when the module is loaded
 *
 * Returns 0 or -ENOMEM.
 */
int expiry_shrink_init(void)
{
	cache = KMEM_CACHE(expiry_queue, SLAB_ACCOUNT);
	if (!cache)
		return -ENOMEM;
	shrinker = compat_shrinker_new("expiry", &queues_lru, count_pages,
				       unpin_queues);
	if (!shrinker) {
		kmem_cache_destroy(cache);
		return -ENOMEM;
	}
	/* Pairs with count_pages(). */
	smp_store_release(&ready, true);
	return 0;
}

/**
 * expiry_shrink_exit - unregister it at unloading, when there are no queues
 */
void expiry_shrink_exit(void)
{
	compat_shrinker_free(shrinker, &queues_lru);
	kmem_cache_destroy(cache);
}
