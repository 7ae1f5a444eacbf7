/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EXPIRY_READ_H
#define EXPIRY_READ_H

#include <linux/types.h>

struct expiry_queue;
struct iov_iter;

ssize_t expiry_read(struct expiry_queue *queue, struct iov_iter *to,
		    bool nonblock, bool nowait);

#endif /* EXPIRY_READ_H */
