/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_FIRE_H
#define EXPIRY_FIRE_H

struct expiry_queue;

int expiry_fire_init(void);
void expiry_fire_wake(struct expiry_queue *queue);
void expiry_fire_exit(void);

void expiry_fire_open(struct expiry_queue *queue);
void expiry_fire_configure(struct expiry_queue *queue);
void expiry_fire_close(struct expiry_queue *queue);
void expiry_fire_update_locked(struct expiry_queue *queue);
void expiry_fire_trim_idle_locked(struct expiry_queue *queue);

#endif /* EXPIRY_FIRE_H */
