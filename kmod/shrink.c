// SPDX-License-Identifier: GPL-2.0-only
/*
 * When memory is short, on a node or in a memory cgroup, the shrinker unpins
 * pages of queues so that they can be paged out. It visits one table's pages on
 * that node after the other; a page has a second chance (table.h).
 */
#include <linux/list_lru.h>
#include <linux/mutex.h>
#include <linux/shrinker.h>

#include "compat/compat.h"
#include "pins.h"
#include "queue_state.h"
#include "shrink.h"

static struct shrinker *shrinker;
static bool ready;			/* the lists can be used */

/* Counts a full table for each item. */
static unsigned long count_pages(struct shrinker *unused,
				 struct shrink_control *sc)
{
	unsigned long nr;

	/* Pairs with expiry_shrink_init(). */
	if (!smp_load_acquire(&ready))
		return SHRINK_EMPTY;
	nr = list_lru_shrink_count(&expiry_pins_lru, sc);
	return nr ? nr * CORE_DIR_SIZE : SHRINK_EMPTY;
}

/*
 * Visits one table, under the list's spinlock, which keeps the queue from being
 * freed. Runs in any allocation, so also under the lock of a queue: tries the
 * lock and never waits for it. The lock's holder may itself wait for memory: ask
 * it to visit tables at unlock. Each item goes to the end of the list, locked or
 * not: a queue that is locked for long does not hide the others.
 */
static enum lru_status visit_table(struct list_head *item,
				   struct list_lru_one *list,
				   COMPAT_LIST_LRU_LOCK void *unpinned)
{
	struct expiry_pins *pins = container_of(item, struct expiry_pins, lru);
	struct expiry_queue *queue = container_of(pins->table->array->memory,
						  struct expiry_queue, memory);
	enum lru_status status = LRU_ROTATE;

	if (!mutex_trylock(&queue->lock)) {
		atomic_inc(&queue->reclaim_wanted);
		return status;
	}
	*(unsigned long *)unpinned += expiry_memory_age_pins(&queue->memory,
							     pins);
	if (!pins->nr) {
		list_lru_isolate(list, item);
		status = LRU_REMOVED;
	}
	mutex_unlock(&queue->lock);
	return status;
}

/**
 * expiry_shrink_scan - visit some tables
 * @sc: node, memory cgroup, and how many pages about
 *
 * Returns how many pages were unpinned. 0 is no reason to stop: the next visit
 * may find pages that were not used since.
 */
unsigned long expiry_shrink_scan(struct shrink_control *sc)
{
	unsigned long nr = DIV_ROUND_UP(sc->nr_to_scan, CORE_DIR_SIZE);
	unsigned long unpinned = 0;

	sc->nr_scanned = nr * CORE_DIR_SIZE;
	list_lru_walk_one(&expiry_pins_lru, sc->nid, sc->memcg, visit_table,
			  &unpinned, &nr);
	return unpinned;
}

static unsigned long scan_pages(struct shrinker *unused,
				struct shrink_control *sc)
{
	return expiry_shrink_scan(sc);
}

/**
 * expiry_shrink_init - register the shrinker when the module is loaded
 *
 * Returns 0 or -ENOMEM.
 */
int expiry_shrink_init(void)
{
	int err = expiry_pins_init();

	if (err)
		return err;
	shrinker = compat_shrinker_new("expiry", &expiry_pins_lru, count_pages,
				       scan_pages, CORE_DIR_SIZE);
	if (!shrinker) {
		expiry_pins_exit();
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
	compat_shrinker_free(shrinker, &expiry_pins_lru);
	expiry_pins_exit();
}
