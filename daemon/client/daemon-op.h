/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's own requests: CREDIT, SCAN, STAT, DROP, QUEUES. All others are the
 * engine's.
 */
#ifndef DAEMON_DAEMON_OP_H
#define DAEMON_DAEMON_OP_H

#include <stdbool.h>
#include <stdint.h>
#include <expiry/wire.h>

struct buffer;
struct client;

/* Extra budget units a request costs. A SCAN may check as many slots as a
 * buffer has rows, or more. QUEUES may check as many queues, and a STAT is
 * copied.
 */
#define SCAN_REQUESTS	512
#define STAT_REQUESTS	8

static inline bool is_daemon_op(uint8_t op)
{
	return op >= EXPIRY_OP_HELLO && op <= EXPIRY_OP_QUEUES;
}

/* Returns the extra budget units of a request. */
uint32_t daemon_op_cost(const struct expiry_record *request);

/* Carries out the next request of @buffer. Returns false if it must wait for the
 * next turn.
 */
bool daemon_op(struct client *client, struct buffer *buffer);

#endif /* DAEMON_DAEMON_OP_H */
