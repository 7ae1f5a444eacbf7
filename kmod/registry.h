/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_REGISTRY_H
#define EXPIRY_REGISTRY_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>

struct expiry_queue;

extern struct list_head expiry_registry_queues;	/* under the lock */
extern struct mutex expiry_registry_lock;	/* innermost of the mutexes */
extern atomic_t expiry_registry_created;	/* since loading */
extern atomic_t expiry_registry_destroyed;

void expiry_registry_add(struct expiry_queue *queue);
void expiry_registry_remove(struct expiry_queue *queue);
void expiry_registry_count_destroyed(void);

#endif /* EXPIRY_REGISTRY_H */
