// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/socket.h>

#include "daemon/queue/access.h"
#include "daemon/util/group.h"

/* Linux 4.13; older headers lack it. */
#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS	59
#endif

void access_peer_init(struct access_peer *peer, uid_t uid, int fd)
{
	peer->uid = uid;
	peer->fd = fd;
	peer->nr_groups = 0;
}

/* Reads the peer's groups: its own, then the supplementary ones. */
static void read_groups(struct access_peer *peer)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;

	if (getsockopt(peer->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return;
	peer->groups[0] = cred.gid;
	peer->nr_groups = 1;
	len = sizeof(peer->groups) - sizeof(*peer->groups);
	if (!getsockopt(peer->fd, SOL_SOCKET, SO_PEERGROUPS, peer->groups + 1,
			&len))
		peer->nr_groups += len / sizeof(*peer->groups);
}

bool access_in_group(struct access_peer *peer, gid_t gid)
{
	uint32_t i;

	if (gid == GROUP_NONE)
		return false;
	if (!peer->nr_groups)
		read_groups(peer);
	for (i = 0; i < peer->nr_groups; i++)
		if (peer->groups[i] == gid)
			return true;
	return false;
}

uint8_t access_of(uid_t uid, gid_t gid, uint16_t mode, struct access_peer *peer)
{
	uint32_t group = mode >> 3 & ACCESS_ALL;
	uint32_t others = mode & ACCESS_ALL;

	if (!peer->uid)
		return ACCESS_ALL;
	if (peer->uid == uid)
		return mode >> 6 & ACCESS_ALL;
	if (group == others)
		return others;
	return access_in_group(peer, gid) ? group : others;
}
