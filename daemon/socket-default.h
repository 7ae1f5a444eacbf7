/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The default socket of the daemon: for root the system's
 * place, for any other user a directory of that user's.
 */
#ifndef DAEMON_SOCKET_DEFAULT_H
#define DAEMON_SOCKET_DEFAULT_H

#include <stddef.h>

/* Writes the default path to @path. */
void socket_default(char *path, size_t size);

/* Makes the user's directory, mode 0700, if @path is the user's default; nobody
 * else may own it. Returns 0, or -errno after saying on stderr what is wrong.
 */
int socket_default_prepare(const char *path);

/* Returns why a user's daemon has @path, the system's, as its default: words to
 * go behind an error, or "".
 */
const char *socket_default_hint(const char *path);

#endif /* DAEMON_SOCKET_DEFAULT_H */
