// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/server/socket-file.h"
#include "daemon/util/log.h"
#include "daemon/util/socket-default.h"

/* Attempts to get a path that is in use, and the pause between them. */
#define IN_USE_TRIES	10
#define IN_USE_PAUSE_US	50000

#define LOCK_MODE	0600

/* -------------------------------------------------------------------- lock */

/* Returns the lock's file, open, or -errno. It must be a plain file of the
 * daemon's user: another user who can open it could hold the lock for ever.
 */
static int lock_open(const char *path)
{
	struct stat st;
	int fd, r;

	/* Without O_NONBLOCK, another process' lease could delay us. */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
			O_NOCTTY, LOCK_MODE);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EEXIST;
	else if (st.st_uid != geteuid() || st.st_mode & (S_IRWXG | S_IRWXO))
		r = -EPERM;
	else
		return fd;
	close(fd);
	return r;
}

/* Returns whether @fd is the file that stands at @path. */
static bool is_at(int fd, const char *path)
{
	struct stat open, named;

	return !fstat(fd, &open) && !lstat(path, &named) &&
	       open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

/* Returns the locked file, -EWOULDBLOCK: another process has it, or -errno. */
static int lock_try(const char *path)
{
	int fd, r;

	for (;;) {
		fd = lock_open(path);
		if (fd < 0)
			return fd;
		r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		/* The holder before may have removed the file meanwhile. */
		if (!r && is_at(fd, path))
			return fd;
		close(fd);
		if (r < 0 && r != -EINTR)
			return r;
	}
}

/* Takes the lock. Waits a short time for a daemon that is about to end. */
static int lock_take(struct socket_file *file)
{
	int fd, tries = IN_USE_TRIES;

	while ((fd = lock_try(file->lock_path)) == -EWOULDBLOCK && --tries)
		usleep(IN_USE_PAUSE_US);
	if (fd == -EWOULDBLOCK)
		return -EADDRINUSE;
	if (fd < 0)
		return fd;
	file->lock_fd = fd;
	return 0;
}

/* Removes the file before the lock on it ends: see lock_try(). */
static void lock_drop(struct socket_file *file)
{
	if (file->lock_fd < 0)
		return;
	if (is_at(file->lock_fd, file->lock_path))
		unlink(file->lock_path);
	close(file->lock_fd);
	file->lock_fd = -1;
}

/* ------------------------------------------------------------------- socket */

/* Returns 0 if no server answers at the address, -EADDRINUSE if one does, or
 * -errno. The socket of a killed daemon may still answer until the kernel has
 * freed its ring; the credentials of the listener identify it.
 */
static int probe(const struct sockaddr_un *address)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred peer = { 0 };
	int fd, r = -EADDRINUSE;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const void *)address, sizeof(*address)) < 0) {
		if (errno == ECONNREFUSED || errno == ENOENT)
			r = 0;
		else if (errno != EAGAIN)
			r = -errno;
	} else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
		   peer.pid > 0 && kill(peer.pid, 0) < 0 && errno == ESRCH) {
		r = 0;
	}
	close(fd);
	return r;
}

/* Removes the socket at @path, if it is the one that @st describes. */
static int remove_if_same(const char *path, dev_t device, ino_t inode)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_dev != device || st.st_ino != inode)
		return -EADDRINUSE;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Removes the socket of a killed daemon. An old expiryd may listen there
 * without the lock.
 */
static int remove_stale(const struct sockaddr_un *address)
{
	int r, tries = IN_USE_TRIES;
	struct stat st;

	do {
		if (lstat(address->sun_path, &st) < 0)
			return errno == ENOENT ? 0 : -errno;
		if (!S_ISSOCK(st.st_mode))
			return -EEXIST;
		r = probe(address);
		if (!r)
			return remove_if_same(address->sun_path, st.st_dev,
					      st.st_ino);
	} while (r == -EADDRINUSE && --tries && !usleep(IN_USE_PAUSE_US));
	return r;
}

/* Makes the parent directory, if only that is missing. */
static void make_parent(const char *path)
{
	char parent[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	char *slash;

	strcpy(parent, path);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return;
	*slash = '\0';
	/* If this fails, making the lock fails and reports it. The mode must
	 * not depend on the umask, as that of the socket.
	 */
	if (!mkdir(parent, 0755))
		chmod(parent, 0755);
}

static int socket_bind(struct socket_file *file, int fd, mode_t mode)
{
	const char *path = file->address.sun_path;
	struct stat st;

	if (bind(fd, (void *)&file->address, sizeof(file->address)) < 0 ||
	    lstat(path, &st) < 0)
		return -errno;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	file->made = true;
	return chmod(path, mode) < 0 ? -errno : 0;
}

static const char *hint(const char *path, int error)
{
	if (error == -EADDRINUSE)
		return " (is another expiryd running?)";
	return socket_default_hint(path);
}

int socket_file_make(struct socket_file *file, const char *path, mode_t mode)
{
	int fd = -1, r;

	*file = (struct socket_file) {
		.address.sun_family = AF_UNIX,
		.lock_fd = -1,
	};
	strcpy(file->address.sun_path, path);
	strcpy(file->lock_path, path);
	strcat(file->lock_path, SOCKET_LOCK_SUFFIX);
	make_parent(path);
	r = lock_take(file);
	if (r < 0) {
		log_err("%s: %s%s", r == -EADDRINUSE ? path : file->lock_path,
			strerror(-r), r == -EPERM ?
			" (only this user may own and open it)" :
			hint(path, r));
		return r;
	}
	r = remove_stale(&file->address);
	if (!r) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 ? -errno : socket_bind(file, fd, mode);
	}
	if (!r)
		return fd;
	log_err("%s: %s%s", path, strerror(-r), hint(path, r));
	if (fd >= 0)
		close(fd);
	return r;
}

void socket_file_remove(struct socket_file *file)
{
	if (file->made)
		remove_if_same(file->address.sun_path, file->device,
			       file->inode);
	file->made = false;
	lock_drop(file);
}
