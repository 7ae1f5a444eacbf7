/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests of the epoll loop, tried by calls that do not wait. */
#ifndef DAEMON_ATTEMPT_H
#define DAEMON_ATTEMPT_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/loop/loop.h"

/**
 * struct provided - the buffers of receives without one of their own
 * @ring: @nr of them, a power of two
 * @next: modulo @nr, comes next
 */
struct provided {
	struct io_uring_buf_ring *ring;
	uint32_t nr;
	uint16_t next;
};

/* Tries a request. Returns the result and *@flags of its completion. -EAGAIN: it
 * has to wait.
 */
int attempt(struct provided *provided, const struct loop_request *request,
	    uint32_t *flags);

/* Returns how many bytes a send has. */
size_t attempt_send_len(const struct loop_request *request);

#endif /* DAEMON_ATTEMPT_H */
