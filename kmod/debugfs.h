/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_DEBUGFS_H
#define EXPIRY_DEBUGFS_H

struct expiry_queue;

void expiry_debugfs_init(void);
void expiry_debugfs_exit(void);

void expiry_debugfs_add(struct expiry_queue *queue);
void expiry_debugfs_remove(struct expiry_queue *queue);
void expiry_debugfs_gone(void);

#endif /* EXPIRY_DEBUGFS_H */
