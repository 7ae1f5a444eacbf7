/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers, and the lines that expiryctl load reads. Pure.
 */
#ifndef TOOLS_PARSE_LINE_H
#define TOOLS_PARSE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parse-time.h"

/* Longest line, without its end. */
#define LOAD_LINE_MAX	1023

/**
 * struct load_line - one timer
 * @deadline: when
 * @cookie: the caller's own
 * @id: not 0 if @has_id
 */
struct load_line {
	struct deadline deadline;
	uint64_t cookie;
	uint64_t id;
	bool has_id;
};

/**
 * parse_load_line - DEADLINE COOKIE [ID] [# comment]
 * @text: @len bytes, without the line's end
 *
 * Returns 1: *line is filled in; 0: nothing but blanks or a comment; -EINVAL
 * with *why, *line untouched.
 */
int parse_load_line(const char *text, size_t len, struct load_line *line,
		    const char **why);

/* Decimal, or hexadecimal behind 0x; no sign, nothing behind. -EINVAL. */
int parse_number(const char *text, uint64_t *number);

#endif /* TOOLS_PARSE_LINE_H */
