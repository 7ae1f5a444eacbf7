/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of a listening socket that the daemon makes itself, and its lock.
 *
 * The holder of the lock, PATH.lock, may remove a socket at PATH and make one
 * there. It is an flock() on an open file, so it always ends with its process.
 * Its holder removes the file at its end; a daemon that opened it before
 * detects that and opens the new one.
 */
#ifndef DAEMON_SOCKET_FILE_H
#define DAEMON_SOCKET_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#define SOCKET_LOCK_SUFFIX	".lock"

/**
 * struct socket_file - the file
 * @address: the socket's
 * @lock_path: of the lock
 * @lock_fd: -1 = not locked
 * @made: the socket was made here
 * @device: of the socket's file; likewise @inode
 */
struct socket_file {
	struct sockaddr_un address;
	char lock_path[sizeof(((struct sockaddr_un *)NULL)->sun_path) +
		       sizeof(SOCKET_LOCK_SUFFIX)];
	int lock_fd;
	bool made;
	dev_t device;
	ino_t inode;
};

/* Locks @path, removes a socket there that nobody answers on, and makes one
 * that does not listen yet. Returns its descriptor, or -errno after a line in
 * the log. The caller must call socket_file_remove() in both cases.
 */
int socket_file_make(struct socket_file *file, const char *path, mode_t mode);

/* Removes the socket, if it is still the daemon's, and the lock. */
void socket_file_remove(struct socket_file *file);

#endif /* DAEMON_SOCKET_FILE_H */
