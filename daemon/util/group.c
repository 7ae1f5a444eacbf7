// SPDX-License-Identifier: LGPL-2.1-or-later
#include <grp.h>
#include <stdint.h>

#include "daemon/util/group.h"
#include "daemon/util/key-file.h"

bool group_find(const char *name, gid_t *gid)
{
	const struct group *group;
	uint64_t number;
	const char *end = key_file_number(name, 10, &number);

	if (end && !*end && number < GROUP_NONE) {
		*gid = number;
		return true;
	}
	group = getgrnam(name);
	if (group)
		*gid = group->gr_gid;
	return group;
}
