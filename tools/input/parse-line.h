/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing of numbers, and of lines for expiryctl load. Pure.
 */
#ifndef TOOLS_PARSE_LINE_H
#define TOOLS_PARSE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/input/parse-time.h"

/* Longest line, without its line feed. */
#define LOAD_LINE_MAX	1023

/**
 * struct load_line - one timer
 * @deadline: deadline
 * @cookie: cookie for the expiration
 * @id: valid if @has_id, not 0
 */
struct load_line {
	struct deadline deadline;
	uint64_t cookie;
	uint64_t id;
	bool has_id;
};

/**
 * parse_load_line - DEADLINE COOKIE [ID] [# comment]
 * @text: @len bytes, without the line feed
 *
 * Returns 1 with *line filled in, or 0 for a blank line or a comment. Otherwise
 * returns -EINVAL with *why, and leaves *line unchanged.
 */
int parse_load_line(const char *text, size_t len, struct load_line *line,
		    const char **why);

/* Parses a whole text as a number without a sign, decimal or hexadecimal with 0x.
 * Returns 0 or -EINVAL.
 */
int parse_number(const char *text, uint64_t *number);

#endif /* TOOLS_PARSE_LINE_H */
