// SPDX-License-Identifier: LGPL-2.1-or-later
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/access.h"
#include "tools/output/error.h"
#include "tools/queue-list.h"

#define NAME_TEXT	80	/* bytes for a user or group */

static const char *user_text(char *text, uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(text, NAME_TEXT, "%s (uid %u)", user->pw_name, uid);
	else
		snprintf(text, NAME_TEXT, "uid %u", uid);
	return text;
}

static const char *group_text(char *text, gid_t gid)
{
	const struct group *group = getgrgid(gid);

	if (group)
		snprintf(text, NAME_TEXT, "%s", group->gr_name);
	else
		snprintf(text, NAME_TEXT, "%u", gid);
	return text;
}

int access_path_refused(const struct ctl *ctl)
{
	char user[NAME_TEXT], group[NAME_TEXT];
	struct stat st;

	if (stat(ctl->path, &st))
		return ctl_error("%s: you may not look into the folder it is in; run this as root",
				 ctl->path);
	if (st.st_mode & 0020)
		return ctl_error("%s: only user %s and group %s may use it; to join that group: sudo adduser NAME %s, then log in anew",
				 ctl->path, user_text(user, st.st_uid),
				 group_text(group, st.st_gid), group);
	return ctl_error("%s: only user %s may use it; run this as that user or as root",
			 ctl->path, user_text(user, st.st_uid));
}

unsigned int access_right(unsigned int op)
{
	switch (op) {
	case EXPIRY_OP_ARM:
	case EXPIRY_OP_REFRESH:
	case EXPIRY_OP_CANCEL:
		return ACCESS_PRODUCE;
	case EXPIRY_OP_DROP:
		return ACCESS_ALL;
	}
	return ACCESS_LOOK;
}

static const char *right_text(unsigned int right)
{
	switch (right) {
	case ACCESS_CONSUME:
		return "take expirations";
	case ACCESS_PRODUCE:
		return "arm, refresh or cancel";
	case ACCESS_LOOK:
		return "look";
	}
	return "drop it";
}

int access_queue_refused(const struct ctl *ctl, const char *name,
			 unsigned int right)
{
	char user[NAME_TEXT], group[NAME_TEXT];
	struct expiry_queue row;
	unsigned int mode;

	if (queue_find(ctl, name, &row) != 1)
		return ctl_error("queue %s belongs to another user; only root may see whose: sudo expiryctl queues; run this as that user or as root, or take another name with --queue",
				 name);
	user_text(user, row.daemon.uid);
	mode = row.daemon.access & 0777;
	if (row.daemon.uid != geteuid() && !(~(mode >> 3) & right) &&
	    row.daemon.gid != EXPIRY_NO_GROUP)
		return ctl_error("queue %s belongs to user %s, and its group %s may %s; to join that group: sudo adduser NAME %s, then log in anew",
				 name, user,
				 group_text(group, row.daemon.gid),
				 right_text(right), group);
	return ctl_error("queue %s belongs to user %s, and its mode %03o does not let you %s; run this as %s, or take another name with --queue",
			 name, user, mode, right_text(right),
			 mode >> 6 == ACCESS_ALL ? "that user or as root" :
			 "root");
}
