/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading lines of any length and content in bounded memory.
 */
#ifndef TOOLS_LINES_H
#define TOOLS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct lines - a file that is being read
 * @fd: the caller's descriptor
 * @number: number of the latest line, from 1
 * @offset: bytes read so far
 * @end: the end of the file was reached
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

/* Reads the next line, without its line feed; it is valid until the next call. A
 * line that does not fit the buffer is cut. Returns 1, 0 at the end of the file, or
 * -errno.
 */
int lines_next(struct lines *lines, const char **text, size_t *len);

#endif /* TOOLS_LINES_H */
