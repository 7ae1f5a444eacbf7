// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>

#include "rows.h"

/* Writes 1234567 as 1,234,567; @text has room for 32 bytes. */
static const char *grouped(char *text, uint64_t number)
{
	char digits[24];
	int i, len, to = 0;

	len = snprintf(digits, sizeof(digits), "%llu",
		       (unsigned long long)number);
	for (i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			text[to++] = ',';
		text[to++] = digits[i];
	}
	text[to] = 0;
	return text;
}

void row(const char *name, uint64_t number, const char *remark)
{
	char text[32];

	printf("  %-12s %11s%s%s\n", name, grouped(text, number),
	       *remark ? "  " : "", remark);
}

const char *milliseconds(char *text, uint64_t ns)
{
	snprintf(text, MILLISECONDS_TEXT, "%.3f ms", (double)ns / 1000000);
	return text;
}
