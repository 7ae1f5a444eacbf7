/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The real disk: a directory, which one process has at a time. */
#ifndef DAEMON_JOURNAL_DIRECTORY_H
#define DAEMON_JOURNAL_DIRECTORY_H

#include <stdbool.h>

#include "daemon/journal/disk.h"

/**
 * struct journal_directory - an open directory
 * @disk: its operations
 * @fd: the directory, locked; -1 = closed
 * @why: text for the error of journal_directory_open()
 */
struct journal_directory {
	struct disk disk;
	int fd;
	const char *why;
};

/* Opens and locks the directory @path. Returns 0 or -errno, with text in @why:
 * -EPERM: it is another user's, or others may write to it; -EWOULDBLOCK: another
 * process has it; -ELOOP, -ENOTDIR, -ENOENT, -EACCES.
 */
int journal_directory_open(struct journal_directory *directory,
			   const char *path);
void journal_directory_close(struct journal_directory *directory);

#endif /* DAEMON_JOURNAL_DIRECTORY_H */
