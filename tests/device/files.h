/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that configure the kernel: sysfs, procfs, cgroups. */
#ifndef TESTS_DEVICE_FILES_H
#define TESTS_DEVICE_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Returns the number after @key at a line's beginning, or -1. */
static inline long long read_number(const char *path, const char *key)
{
	char line[256];
	long long number = -1;
	size_t length = strlen(key);
	FILE *file = fopen(path, "r");

	if (!file)
		return -1;
	while (number < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length))
			number = atoll(line + length);
	fclose(file);
	return number;
}

/* Returns the number after @key in fdinfo, or -1. */
static inline long long fdinfo_number(int fd, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return read_number(path, key);
}

#endif /* TESTS_DEVICE_FILES_H */
