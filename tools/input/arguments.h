/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arguments that several commands take. Each function returns 0, or EXIT_USAGE with the
 * reason printed.
 */
#ifndef TOOLS_ARGUMENTS_H
#define TOOLS_ARGUMENTS_H

#include "tools/input/parse-time.h"
#include "tools/output/time-text.h"

int ctl_parse_deadline(const char *text, struct deadline *deadline);
/* Checks that @next, the argument after a time, is not the rest of that time. */
int ctl_check_quoted(const char *time_text, const char *next);
/* Parses the value of --in: a span, or a time with its date or weekday. */
int ctl_parse_in(const char *text, struct deadline *deadline);

#endif /* TOOLS_ARGUMENTS_H */
