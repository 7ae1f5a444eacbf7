/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of a report: a name, a number, a remark. */
#ifndef DEMO_ROWS_H
#define DEMO_ROWS_H

#include <stdint.h>

#define MILLISECONDS_TEXT	32

void row(const char *name, uint64_t number, const char *remark);

/* Writes a time, MILLISECONDS_TEXT bytes, and returns it. */
const char *milliseconds(char *text, uint64_t ns);

#endif /* DEMO_ROWS_H */
