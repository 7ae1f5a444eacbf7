// SPDX-License-Identifier: GPL-2.0-only
/* The list of all queues, and how many were created and destroyed. */
#include "queue_state.h"
#include "registry.h"

LIST_HEAD(expiry_registry_queues);
DEFINE_MUTEX(expiry_registry_lock);		/* the list */
atomic_t expiry_registry_created, expiry_registry_destroyed;

/**
 * expiry_registry_add - list a new queue
 * @queue: stays until expiry_registry_remove(). May sleep.
 */
void expiry_registry_add(struct expiry_queue *queue)
{
	mutex_lock(&expiry_registry_lock);
	list_add_tail(&queue->registered, &expiry_registry_queues);
	mutex_unlock(&expiry_registry_lock);
	atomic_inc(&expiry_registry_created);
}

/**
 * expiry_registry_remove - unlist a queue before it is freed
 * @queue: a listed one. May sleep.
 */
void expiry_registry_remove(struct expiry_queue *queue)
{
	mutex_lock(&expiry_registry_lock);
	list_del(&queue->registered);
	mutex_unlock(&expiry_registry_lock);
}

/**
 * expiry_registry_count_destroyed - count a queue as freed
 */
void expiry_registry_count_destroyed(void)
{
	atomic_inc(&expiry_registry_destroyed);
}
