/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that configure the kernel: sysfs, procfs, cgroups. */
#ifndef TESTS_DEVICE_FILES_H
#define TESTS_DEVICE_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Writes text to a file. Returns 0 or a negative errno, of open() or write().
 */
static inline int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

#endif /* TESTS_DEVICE_FILES_H */
