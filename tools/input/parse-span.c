// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <linux/expiry.h>

#include "tools/input/digits.h"
#include "tools/input/parse-span.h"
#include "tools/output/span.h"

static const char expect_duration[] =
	"expected a span as in 250ms, 5s, 1h30min or '2 days'";
static const char expect_unit[] =
	"a number wants a unit: ns us ms s min h d w month y";

/* Reads a unit. Returns its nanoseconds, or 0. */
static uint64_t read_unit(const char **text)
{
	static const struct {
		const char *names;	/* each name has blanks around it */
		uint64_t ns;
	} units[] = {
		{ " ns nsec ", 1 },
		/* The micro sign and the Greek letter. */
		{ " us usec \302\265s \316\274s ", 1000 },
		{ " ms msec ", 1000000 },
		{ " s sec second seconds ", NSEC_PER_SEC },
		{ " m min minute minutes ", 60 * NSEC_PER_SEC },
		{ " h hr hour hours ", 3600 * NSEC_PER_SEC },
		{ " d day days ", 86400 * NSEC_PER_SEC },
		{ " w week weeks ", 7 * 86400 * NSEC_PER_SEC },
		{ " M month months ", 2629800 * NSEC_PER_SEC },
		{ " y year years ", 31557600 * NSEC_PER_SEC },
	};
	const size_t len = word_length(*text);
	const char *name;
	size_t i;

	for (i = 0; len && i < sizeof(units) / sizeof(*units); i++) {
		for (name = units[i].names + 1; *name;
		     name += strcspn(name, " ") + 1) {
			if (strcspn(name, " ") == len &&
			    !strncmp(*text, name, len)) {
				*text += len;
				return units[i].ns;
			}
		}
	}
	return 0;
}

int parse_duration(const char *text, uint64_t *ns, const char **why)
{
	uint64_t total = 0, number, unit, part;
	uint32_t decimals;

	skip_blanks(&text);
	if (!*text)
		return refuse(why, expect_duration);
	while (*text) {
		decimals = 0;
		if (!is_digit(*text))
			return refuse(why, expect_duration);
		if (!read_number(&text, &number))
			return refuse(why, too_far);
		if (read_char(&text, '.') && !read_decimals(&text, &decimals))
			return refuse(why, expect_decimals);
		skip_blanks(&text);
		unit = read_unit(&text);
		if (!unit)
			return refuse(why, expect_unit);
		skip_blanks(&text);
		part = (unsigned __int128)unit * decimals / NSEC_PER_SEC;
		if (__builtin_mul_overflow(number, unit, &number) ||
		    __builtin_add_overflow(total, number, &total) ||
		    __builtin_add_overflow(total, part, &total) ||
		    total == EXPIRY_NEVER)
			return refuse(why, too_far);
	}
	*ns = total;
	return 0;
}

int parse_period(const char *text, uint32_t *ms, const char **why)
{
	uint64_t ns;

	if (parse_duration(text, &ns, why))
		return -EINVAL;
	if (!ns || ns % 1000000 || ns / 1000000 > UINT32_MAX)
		return refuse(why, "expected whole milliseconds, from 1ms to 49d");
	*ms = ns / 1000000;
	return 0;
}
