/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that a preloaded object and its test have both mapped. */
#ifndef TESTS_SOCKET_SHARED_MAP_H
#define TESTS_SOCKET_SHARED_MAP_H

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Maps the file that the environment's @variable names. Returns NULL if it names
 * none. A program that cannot map what it is given ends: its test would count nothing.
 */
static inline void *shared_map(const char *variable, size_t size)
{
	const char *path = getenv(variable);
	void *map;
	int fd;

	fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return NULL;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* close() may be the object's own. */
	syscall(SYS_close, fd);
	if (map == MAP_FAILED)
		abort();
	return map;
}

#endif /* TESTS_SOCKET_SHARED_MAP_H */
