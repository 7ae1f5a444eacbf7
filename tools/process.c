// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>

#include "tools/process.h"

bool process_name(char *text, uint32_t pid)
{
	char path[32];
	FILE *file;
	char *c;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	text = fgets(text, PROCESS_TEXT, file);
	fclose(file);
	for (c = text; c && *c; c++) {
		if (*c == '\n' && !c[1])
			*c = '\0';
		else if (*c <= 0x20 || *c > 0x7e)
			*c = '?';
	}
	return text;
}
