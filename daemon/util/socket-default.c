// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <expiry/wire.h>

#include "daemon/util/log.h"
#include "daemon/util/socket-default.h"

#define USER_MODE	0700

/* Returns the fault of XDG_RUNTIME_DIR, or NULL. */
static const char *directory_fault(const char *directory)
{
	const size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path);

	if (!directory || !*directory)
		return "is not set";
	if (*directory != '/')
		return "is not an absolute path";
	if (strlen(directory) + strlen("/" EXPIRY_SOCKET_USER) >= max)
		return "is too long";
	return NULL;
}

void socket_default(char *path, size_t size)
{
	const char *directory = getenv("XDG_RUNTIME_DIR");

	if (!geteuid() || directory_fault(directory))
		snprintf(path, size, "%s", EXPIRY_SOCKET_DEFAULT);
	else
		snprintf(path, size, "%s/%s", directory, EXPIRY_SOCKET_USER);
}

/* Returns 0 if only this user can make and remove files in @directory. */
static int check_directory(const char *directory)
{
	struct stat st;

	if (lstat(directory, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) ?
	       0 : -EPERM;
}

int socket_default_prepare(const char *path)
{
	char own[PATH_MAX];
	int r;

	socket_default(own, sizeof(own));
	if (!geteuid() || strcmp(path, own) ||
	    !strcmp(path, EXPIRY_SOCKET_DEFAULT))
		return 0;
	*strrchr(own, '/') = '\0';
	/* The mode must not depend on the umask. */
	if (!mkdir(own, USER_MODE))
		r = chmod(own, USER_MODE) < 0 ? -errno : 0;
	else
		r = errno == EEXIST ? check_directory(own) : -errno;
	if (r < 0)
		log_err("%s: %s%s; set XDG_RUNTIME_DIR to a directory of this user, or name a socket with --socket PATH",
			own, strerror(-r),
			r == -EPERM ? " (another user can write there)" : "");
	return r;
}

const char *socket_default_hint(const char *path)
{
	static char hint[128];
	const char *fault = directory_fault(getenv("XDG_RUNTIME_DIR"));

	if (!geteuid() || !fault || strcmp(path, EXPIRY_SOCKET_DEFAULT))
		return "";
	snprintf(hint, sizeof(hint),
		 " (XDG_RUNTIME_DIR %s; set it, or name a socket with --socket PATH)",
		 fault);
	return hint;
}
