// SPDX-License-Identifier: LGPL-2.1-or-later
#include <stdio.h>

#include "tools/output/span.h"

static const struct unit {
	uint64_t ns;
	const char *name;
} units[] = {
	{ 86400 * NSEC_PER_SEC, "d" },
	{ 3600 * NSEC_PER_SEC, "h" },
	{ 60 * NSEC_PER_SEC, "m" },
	{ NSEC_PER_SEC, "s" },
	{ 1000000, "ms" },
	{ 1000, "us" },
	{ 1, "ns" },
};

/* Returns @ns in hundredths of a unit, rounded to three significant figures. */
static uint64_t rounded_hundredths(uint64_t ns, uint64_t unit_ns)
{
	uint64_t step = 1;	/* value of the last figure, in hundredths */
	uint64_t steps;

	while (ns / unit_ns >= 10 * step)
		step *= 10;
	/* Two cases avoid a product above 64 bits. */
	if (step >= 100) {
		unit_ns *= step / 100;
		steps = ns / unit_ns + (ns % unit_ns >= unit_ns - unit_ns / 2);
	} else {
		steps = (ns * (100 / step) + unit_ns / 2) / unit_ns;
	}
	return steps * step;
}

const char *span_text(char *text, uint64_t ns)
{
	const struct unit *unit = units;
	uint64_t hundredths;
	int decimals;

	if (!ns) {
		snprintf(text, SPAN_TEXT, "0s");
		return text;
	}
	while (ns < unit->ns)
		unit++;
	hundredths = rounded_hundredths(ns, unit->ns);
	/* 59.96s is rounded to a whole minute. */
	if (unit > units && hundredths * unit->ns >= 100 * unit[-1].ns) {
		unit--;
		hundredths = 100;
	}
	decimals = hundredths % 100 == 0 ? 0 : hundredths % 10 == 0 ? 1 : 2;
	snprintf(text, SPAN_TEXT, "%.*f%s", decimals, hundredths / 100.0,
		 unit->name);
	return text;
}
