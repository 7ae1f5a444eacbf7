// SPDX-License-Identifier: LGPL-2.1-or-later
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <expiry/expiry.h>

#include "tools/output/json.h"
#include "tools/output/time-text.h"

void json_begin(struct json *json)
{
	json->has_members = false;
	putchar('{');
}

void json_end(struct json *json)
{
	(void)json;
	puts("}");
}

/* Writes a member's name, which needs no escapes. */
static void begin_member(struct json *json, const char *name,
			 const char *suffix)
{
	printf("%s\"%s%s\": ", json->has_members ? ", " : "", name, suffix);
	json->has_members = true;
}

static void write_string(const char *text)
{
	const unsigned char *c;

	putchar('"');
	for (c = (const void *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f)
			printf("\\u%04x", *c);
		else if (*c > 0x7f)
			fputs("\\ufffd", stdout);
		else
			putchar(*c);
	}
	putchar('"');
}

void json_text(struct json *json, const char *name, const char *text)
{
	begin_member(json, name, "");
	if (text)
		write_string(text);
	else
		fputs("null", stdout);
}

void json_bool(struct json *json, const char *name, bool value)
{
	begin_member(json, name, "");
	fputs(value ? "true" : "false", stdout);
}

void json_u32(struct json *json, const char *name, uint32_t value)
{
	begin_member(json, name, "");
	printf("%" PRIu32, value);
}

void json_u64(struct json *json, const char *name, uint64_t value)
{
	begin_member(json, name, "");
	printf("\"%" PRIu64 "\"", value);
}

void json_s64(struct json *json, const char *name, int64_t value)
{
	begin_member(json, name, "");
	printf("\"%" PRId64 "\"", value);
}

void json_rate(struct json *json, const char *name, double value)
{
	begin_member(json, name, "");
	printf("%.1f", value);
}

void json_counts(struct json *json, const char *name, const __u64 *counts,
		 size_t nr)
{
	size_t i;

	begin_member(json, name, "");
	putchar('[');
	for (i = 0; i < nr; i++)
		printf("%s\"%" PRIu64 "\"", i ? ", " : "", (uint64_t)counts[i]);
	putchar(']');
}

void json_time(struct json *json, const char *name, uint64_t ns,
	       uint32_t clock_id)
{
	char text[TIME_TEXT];

	begin_member(json, name, "_ns");
	printf("\"%" PRIu64 "\"", ns);
	json_text(json, name,
		  clock_id == CLOCK_REALTIME && ns != EXPIRY_NEVER ?
		  time_text(text, ns, clock_id, 9) : NULL);
}

void json_no_time(struct json *json, const char *name)
{
	begin_member(json, name, "_ns");
	fputs("null", stdout);
	json_text(json, name, NULL);
}
