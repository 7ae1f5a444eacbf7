/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of a file, however long and whatever is in them, in bounded memory.
 */
#ifndef TOOLS_LINES_H
#define TOOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct lines
 * @fd: the caller's
 * @number: of the line read last, from 1
 * @offset: bytes of the file read so far
 * @end: the file has no more
 */
struct lines {
	int fd;
	uint64_t number;
	uint64_t offset;
	bool end;
	size_t head;
	size_t tail;
	char buffer[65536];
};

void lines_init(struct lines *lines, int fd);

/* The next line, without its end; valid until the next call. Of one that does
 * not fit the buffer the beginning is given and the rest skipped. Returns 1, 0
 * at the end of the file, or -errno.
 */
int lines_next(struct lines *lines, const char **text, size_t *len);

#endif /* TOOLS_LINES_H */
