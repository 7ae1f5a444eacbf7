/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Groups of users, by name or number. */
#ifndef DAEMON_GROUP_H
#define DAEMON_GROUP_H

#include <stdbool.h>
#include <sys/types.h>
#include <expiry/wire.h>

#define GROUP_NONE	((gid_t)EXPIRY_NO_GROUP)

/* Finds a group by its name or number. Returns false if there is none. */
bool group_find(const char *name, gid_t *gid);

#endif /* DAEMON_GROUP_H */
