/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_CMD_H
#define EXPIRY_CMD_H

#include <linux/types.h>

struct expiry_queue;
struct io_uring_cmd;

long expiry_cmd_ioctl(struct expiry_queue *queue, fmode_t mode,
		      unsigned int cmd, void __user *arg);
int expiry_cmd_uring(struct expiry_queue *queue, struct io_uring_cmd *cmd,
		     unsigned int issue_flags);

#endif /* EXPIRY_CMD_H */
