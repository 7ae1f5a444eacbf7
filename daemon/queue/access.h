/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access: who may use a queue and how, as for a file: three octal digits for
 * its owner, its group and others. hello.c computes the bits of a client once;
 * requests.c looks an op up here.
 */
#ifndef DAEMON_ACCESS_H
#define DAEMON_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <expiry/wire.h>

#define ACCESS_NONE	0
#define ACCESS_CONSUME	1
#define ACCESS_PRODUCE	2
#define ACCESS_LOOK	4
#define ACCESS_ALL	(ACCESS_CONSUME | ACCESS_PRODUCE | ACCESS_LOOK)

/* The mode of a queue that is not declared. */
#define ACCESS_OWNER_ALL	0700

/* Most supplementary groups of a client; of one with more they are ignored. A
 * process may have 65536: copying 256 KiB for each of many requests would delay
 * the thread.
 */
#define ACCESS_GROUPS_MAX	1024

/**
 * struct access_peer - the process that connected a socket
 * @uid: its user
 * @fd: the socket
 * @groups: its groups, @nr_groups of them, 0 = not read yet
 */
struct access_peer {
	uid_t uid;
	int fd;
	uint32_t nr_groups;
	gid_t groups[1 + ACCESS_GROUPS_MAX];
};

/* Returns the bits that a request needs. None for QUEUES, which does not
 * concern the client's queue; for CREDIT, which only the consumer may send; and
 * for ops that are no requests.
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

/* Returns whether @access, a client's rights, includes @op. */
static inline bool access_allows(uint8_t access, uint8_t op)
{
	return access == ACCESS_ALL || !(access_needed(op) & ~access);
}

/* Sets the user @uid and the socket @fd of a peer, for access_of(). */
void access_peer_init(struct access_peer *peer, uid_t uid, int fd);

/* Returns which bits of ACCESS_ALL the peer has by @mode on what @uid and @gid
 * own. Reads its groups once, and only if they matter.
 */
uint8_t access_of(uid_t uid, gid_t gid, uint16_t mode,
		  struct access_peer *peer);

/* Returns whether the peer's process has the group @gid. */
bool access_in_group(struct access_peer *peer, gid_t gid);

#endif /* DAEMON_ACCESS_H */
