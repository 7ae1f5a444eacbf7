/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The default socket of the daemon: the system's place for root, a directory of
 * their own for other users.
 */
#ifndef DAEMON_SOCKET_DEFAULT_H
#define DAEMON_SOCKET_DEFAULT_H

#include <stddef.h>

/* Writes the default path to @path. Without the system's socket, clients of the
 * same user find it by the same rule: lib/address.c.
 */
void socket_default(char *path, size_t size);

/* Makes the user's directory, mode 0700, if @path is the user's default. No
 * other user may own it. Returns 0, or -errno after a line in the log.
 */
int socket_default_prepare(const char *path);

/* Returns why @path, the system's, is the default of a user's daemon: text to
 * append to an error, or "".
 */
const char *socket_default_hint(const char *path);

#endif /* DAEMON_SOCKET_DEFAULT_H */
