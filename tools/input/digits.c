// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>

#include "tools/input/digits.h"

const char expect_decimals[] =
	"expected one to nine decimals behind the point";
const char too_far[] =
	"too large: 2^64 nanoseconds are 584 years; write never";

int refuse(const char **why, const char *text)
{
	*why = text;
	return -EINVAL;
}

bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool read_char(const char **text, char c)
{
	if (**text != c)
		return false;
	++*text;
	return true;
}

bool read_number(const char **text, uint64_t *number)
{
	uint64_t n = 0;

	if (!is_digit(**text))
		return false;
	for (; is_digit(**text); ++*text) {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, **text - '0', &n))
			return false;
	}
	*number = n;
	return true;
}

bool read_fixed(const char **text, int digits, int *number)
{
	*number = 0;
	while (digits--) {
		if (!is_digit(**text))
			return false;
		*number = *number * 10 + (*(*text)++ - '0');
	}
	return true;
}

bool read_decimals(const char **text, uint32_t *nsec)
{
	uint32_t n = 0;
	int digits = 0;

	for (; is_digit(**text); ++*text, digits++) {
		if (digits == 9)
			return false;
		n = n * 10 + (**text - '0');
	}
	if (!digits)
		return false;
	for (; digits < 9; digits++)
		n *= 10;
	*nsec = n;
	return true;
}

size_t word_length(const char *text)
{
	size_t nr = 0;

	while ((text[nr] >= 'a' && text[nr] <= 'z') ||
	       (text[nr] >= 'A' && text[nr] <= 'Z') || text[nr] & 0x80)
		nr++;
	return nr;
}

void skip_blanks(const char **text)
{
	while (**text == ' ' || **text == '\t')
		++*text;
}
