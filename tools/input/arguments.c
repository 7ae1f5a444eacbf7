// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Arguments that several commands take, and the messages about bad ones.
 */
#include <stdio.h>
#include <string.h>

#include "tools/input/arguments.h"
#include "tools/input/local-time.h"
#include "tools/input/parse-span.h"
#include "tools/input/parse-time.h"
#include "tools/input/timestamp.h"
#include "tools/output/error.h"
#include "tools/output/time-text.h"

int ctl_check_quoted(const char *time_text, const char *next)
{
	struct deadline deadline;
	const char *why;
	char text[128];
	uint64_t ns;

	if (snprintf(text, sizeof(text), "%s %s", time_text, next) >=
	    (int)sizeof(text))
		return 0;
	if (parse_local_deadline(text, time(NULL), &deadline, &why) &&
	    parse_duration(text, &ns, &why))
		return 0;
	return ctl_usage("%s: did you mean '%s'? A time with blanks needs quotes",
			 next, text);
}

int ctl_parse_deadline(const char *text, struct deadline *deadline)
{
	const char *why, *unused, *quote;
	uint64_t ns;

	if (!parse_local_deadline(text, time(NULL), deadline, &why))
		return 0;
	/* Here it is an option's value or behind --; getopt() refuses others. */
	if (*text == '-' && !parse_duration(text + 1, &ns, &unused))
		return ctl_usage("%s is in the past; did you mean +%s?", text,
				 text + 1);
	if (!parse_duration(text, &ns, &unused)) {
		quote = strchr(text, ' ') ? "'" : "";
		return ctl_usage("%s: did you mean %s+%s%s? A span from now begins with +",
				 text, quote, text, quote);
	}
	return ctl_usage("%s: %s", text, why);
}

int ctl_parse_in(const char *text, struct deadline *deadline)
{
	const char *why, *unused;
	struct timestamp date;

	/* The sign that a deadline needs is harmless here. */
	deadline->kind = DEADLINE_RELATIVE;
	if (!parse_duration(text + (*text == '+'), &deadline->ns, &why))
		return 0;
	/* A date names one moment only. A time without a day may be a span: 1:30. */
	if (!timestamp_read(text, &date, &unused) &&
	    (date.day != DAY_NONE || date.weekday >= 0) &&
	    !parse_local_deadline(text, time(NULL), deadline, &why))
		return 0;
	return ctl_usage("--in %s: %s", text, why);
}
