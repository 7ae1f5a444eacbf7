// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Addresses: which daemon a handle without one belongs to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address.h"

/* Returns whether there is a file at @path, as far as this user can see. */
static bool is_there(const char *path)
{
	return !access(path, F_OK) || (errno != ENOENT && errno != ENOTDIR);
}

/* Returns the directory for sockets of this user's own, or NULL. root has none:
 * its daemon is the system's, and su(1) leaves the variable of its caller.
 */
static const char *user_directory(void)
{
	const char *directory = geteuid() ? secure_getenv("XDG_RUNTIME_DIR") : NULL;

	return directory && *directory == '/' ? directory : NULL;
}

/* Writes "unix:", @directory and @path. */
static int write_address(char *address, size_t size, const char *directory,
			 const char *path)
{
	int len = snprintf(address, size, "unix:%s%s", directory, path);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

EXPORT int expiry_default_address(char *address, size_t size)
{
	const char *given = secure_getenv("EXPIRY_SOCKET");
	const char *directory;

	if (given && *given)
		return write_address(address, size, "", given);
	directory = user_directory();
	if (directory && !is_there(EXPIRY_SOCKET_DEFAULT))
		return write_address(address, size, directory,
				     "/" EXPIRY_SOCKET_USER);
	return write_address(address, size, "", EXPIRY_SOCKET_DEFAULT);
}

const struct transport *address_split(const char *address, const char **path)
{
	*path = strchr(address, ':');
	if (!*path || !*++*path)
		return NULL;
	if (strncmp(address, "unix:", *path - address) == 0)
		return &transport_unix;
	if (strncmp(address, "device:", *path - address) == 0)
		return &transport_device;
	return NULL;
}
