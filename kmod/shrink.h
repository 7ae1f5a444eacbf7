/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_SHRINK_H
#define EXPIRY_SHRINK_H

struct expiry_queue;

int expiry_shrink_init(void);
void expiry_shrink_exit(void);

struct expiry_queue *expiry_shrink_queue_new(void);
void expiry_shrink_queue_free(struct expiry_queue *queue);
void expiry_shrink_update_locked(struct expiry_queue *queue);
void expiry_shrink_remove(struct expiry_queue *queue);

#endif /* EXPIRY_SHRINK_H */
