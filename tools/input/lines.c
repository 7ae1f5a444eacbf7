// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading lines of a file.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tools/input/lines.h"

void lines_init(struct lines *lines, int fd)
{
	lines->fd = fd;
	lines->number = 0;
	lines->offset = 0;
	lines->end = false;
	lines->head = 0;
	lines->tail = 0;
}

/* Appends bytes of the file to the buffer. Returns 0, also at the end of the file,
 * or -errno.
 */
static int fill(struct lines *lines)
{
	ssize_t ret;

	memmove(lines->buffer, lines->buffer + lines->head,
		lines->tail - lines->head);
	lines->tail -= lines->head;
	lines->head = 0;
	do
		ret = read(lines->fd, lines->buffer + lines->tail,
			   sizeof(lines->buffer) - lines->tail);
	while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	lines->tail += ret;
	lines->offset += ret;
	lines->end = ret == 0;
	return 0;
}

static char *find_end(struct lines *lines, size_t from)
{
	return memchr(lines->buffer + from, '\n', lines->tail - from);
}

/* Discards the rest of a line whose beginning fills the buffer. */
static int skip_rest(struct lines *lines)
{
	const size_t kept = sizeof(lines->buffer) / 2;
	char *end = NULL;
	int ret;

	while (!end && !lines->end) {
		lines->tail = kept;
		ret = fill(lines);
		if (ret)
			return ret;
		end = find_end(lines, kept);
	}
	/* Move the next line behind the kept beginning. */
	if (end) {
		size_t rest = lines->buffer + lines->tail - end;

		memmove(lines->buffer + kept, end, rest);
		lines->tail = kept + rest;
	}
	return 0;
}

int lines_next(struct lines *lines, const char **text, size_t *len)
{
	char *end;
	int ret;

	while (!(end = find_end(lines, lines->head)) && !lines->end) {
		if (lines->tail - lines->head == sizeof(lines->buffer))
			ret = skip_rest(lines);
		else
			ret = fill(lines);
		if (ret)
			return ret;
	}
	*text = lines->buffer + lines->head;
	if (end) {
		*len = end - *text;
		lines->head += *len + 1;
	} else {
		*len = lines->tail - lines->head;
		if (!*len)
			return 0;
		lines->head = lines->tail;
	}
	lines->number++;
	return 1;
}
