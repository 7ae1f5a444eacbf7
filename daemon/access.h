/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a connection may do with its queue: the bits of an octal digit, as a file's
 * mode has them. queue_attach() computes the bits of a client once; requests.c
 * looks an op up here.
 */
#ifndef DAEMON_ACCESS_H
#define DAEMON_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <expiry/wire.h>

#define ACCESS_NONE	0
#define ACCESS_CONSUME	1
#define ACCESS_PRODUCE	2
#define ACCESS_LOOK	4
#define ACCESS_ALL	(ACCESS_CONSUME | ACCESS_PRODUCE | ACCESS_LOOK)

/* Returns the bits that a request needs. None for QUEUES, which is not about the
 * client's queue; for CREDIT, which is refused by itself to all but the consumer;
 * and for what is no request.
 */
static inline uint8_t access_needed(uint8_t op)
{
	switch (op) {
	case EXPIRY_OP_ARM:
	case EXPIRY_OP_REFRESH:
	case EXPIRY_OP_CANCEL:
	case EXPIRY_OP_CLEAR:
		return ACCESS_PRODUCE;
	case EXPIRY_OP_ACK:
		return ACCESS_CONSUME;
	case EXPIRY_OP_QUERY:
	case EXPIRY_OP_SCAN:
	case EXPIRY_OP_STAT:
		return ACCESS_LOOK;
	case EXPIRY_OP_DROP:
		return ACCESS_ALL;
	default:
		return ACCESS_NONE;
	}
}

/* Returns whether @access, which is all that a client may do, includes @op. */
static inline bool access_allows(uint8_t access, uint8_t op)
{
	return access == ACCESS_ALL || !(access_needed(op) & ~access);
}

#endif /* DAEMON_ACCESS_H */
