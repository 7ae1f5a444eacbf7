// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Parsing of numbers, and of lines for expiryctl load.
 */
#include <errno.h>
#include <string.h>

#include "tools/input/digits.h"
#include "tools/input/parse-line.h"
#include "tools/input/parse-time.h"

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

int parse_number(const char *text, uint64_t *number)
{
	int base = 10, digit;
	uint64_t n = 0;

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		digit = digit_value(*text);
		if (digit >= base ||
		    __builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			return -EINVAL;
	}
	*number = n;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts the next word out of *text. Returns NULL at the end of the line. */
static char *next_word(char **text)
{
	char *word = *text;

	while (is_blank(*word))
		word++;
	if (!*word || *word == '#')
		return NULL;
	*text = word;
	while (**text && !is_blank(**text))
		++*text;
	if (**text)
		*(*text)++ = '\0';
	return word;
}

int parse_load_line(const char *text, size_t len, struct load_line *line,
		    const char **why)
{
	struct load_line l = { .has_id = false };
	char copy[LOAD_LINE_MAX + 1];
	char *rest = copy, *word;

	if (len > LOAD_LINE_MAX)
		return refuse(why, "the line is too long: expected DEADLINE COOKIE [ID]");
	if (memchr(text, '\0', len))
		return refuse(why, "there is a NUL byte: expected text");
	memcpy(copy, text, len);
	copy[len] = '\0';

	word = next_word(&rest);
	if (!word)
		return 0;
	if (parse_deadline(word, &l.deadline, why))
		return -EINVAL;

	word = next_word(&rest);
	if (!word)
		return refuse(why, "expected a cookie after the deadline");
	if (parse_number(word, &l.cookie))
		return refuse(why, "expected a cookie: a number from 0 to 2^64-1");

	word = next_word(&rest);
	if (word) {
		if (parse_number(word, &l.id) || !l.id)
			return refuse(why, "expected an id: a number from 1 to 2^64-1");
		l.has_id = true;
		if (next_word(&rest))
			return refuse(why, "expected nothing after DEADLINE COOKIE ID");
	}
	*line = l;
	return 1;
}
