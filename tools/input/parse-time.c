// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Parsing of deadlines.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/expiry.h>

#include "tools/input/digits.h"
#include "tools/input/parse-span.h"
#include "tools/input/parse-time.h"
#include "tools/input/timestamp.h"

/* Longest span before a word. */
#define SPAN_MAX	127

static const char expect_seconds[] =
	"expected seconds with at most nine decimals, as in @1700000000.25";
static const char expect_whole[] =
	"expected a date with time and zone, as in 2027-01-31T12:00:00Z";
static const char missing_plus[] =
	"a span from now begins with +, as in +5s";
static const char in_the_past[] =
	"that is in the past; write now, or a span as in +5s";

static int parse_seconds(const char *text, uint64_t *ns, const char **why)
{
	uint64_t seconds;
	uint32_t nsec = 0;

	if (!is_digit(*text))
		return refuse(why, expect_seconds);
	if (!read_number(&text, &seconds) || seconds > INT64_MAX)
		return refuse(why, too_far);
	if (read_char(&text, '.') && !read_decimals(&text, &nsec))
		return refuse(why, expect_seconds);
	if (*text)
		return refuse(why, expect_seconds);
	return timestamp_ns(seconds, nsec, ns, why);
}

/* Copies the text before the last word. Returns false if that word is not @word. */
static bool cut_word(const char *text, const char *word, char *span)
{
	const size_t len = strlen(text), end = strlen(word);

	if (len <= end || len > SPAN_MAX || strcmp(text + len - end, word) ||
	    (text[len - end - 1] != ' ' && text[len - end - 1] != '\t'))
		return false;
	memcpy(span, text, len - end);
	span[len - end] = '\0';
	return true;
}

static int parse_date(const char *text, uint64_t *ns, const char **why)
{
	struct timestamp ts;
	const char *unused;
	uint64_t span;

	if (timestamp_read(text, &ts, why)) {
		if (!parse_duration(text, &span, &unused))
			*why = missing_plus;
		return -EINVAL;
	}
	if (ts.day != DAY_DATE || !ts.has_time || ts.zone != ZONE_OFFSET)
		return refuse(why, expect_whole);
	return timestamp_ns(timestamp_seconds(&ts), ts.nsec, ns, why);
}

int parse_deadline(const char *text, struct deadline *deadline,
		   const char **why)
{
	char span[SPAN_MAX + 1];
	struct deadline d;
	int ret = 0;

	if (strcmp(text, "never") == 0) {
		d.kind = DEADLINE_RAW;
		d.ns = EXPIRY_NEVER;
	} else if (strcmp(text, "now") == 0) {
		d.kind = DEADLINE_RELATIVE;
		d.ns = 0;
	} else if (*text == '+') {
		d.kind = DEADLINE_RELATIVE;
		ret = parse_duration(text + 1, &d.ns, why);
	} else if (cut_word(text, "left", span)) {
		d.kind = DEADLINE_RELATIVE;
		ret = parse_duration(span, &d.ns, why);
	} else if (*text == '-' || cut_word(text, "ago", span)) {
		ret = refuse(why, in_the_past);
	} else if (*text == '@') {
		d.kind = DEADLINE_RAW;
		ret = parse_seconds(text + 1, &d.ns, why);
	} else {
		d.kind = DEADLINE_CALENDAR;
		ret = parse_date(text, &d.ns, why);
	}
	if (!ret)
		*deadline = d;
	return ret;
}
