/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_DEBUGFS_H
#define EXPIRY_DEBUGFS_H

void expiry_debugfs_init(void);
void expiry_debugfs_exit(void);

#endif /* EXPIRY_DEBUGFS_H */
