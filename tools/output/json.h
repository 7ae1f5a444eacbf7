/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JSON objects on the standard output, one a line.
 *
 * A 64-bit number is a string of decimal digits: jq 1.6 and JavaScript round numbers
 * above 2^53. A 32-bit number is a number.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>

/**
 * struct json - an object that is being written
 * @has_members: the next member needs a comma
 */
struct json {
	bool has_members;
};

/* Begin an object; end the object and its line. */
void json_begin(struct json *json);
void json_end(struct json *json);

/* Write one member. Bytes of @text that are not ASCII become U+FFFD. NULL becomes
 * null.
 */
void json_text(struct json *json, const char *name, const char *text);
void json_bool(struct json *json, const char *name, bool value);
void json_u32(struct json *json, const char *name, uint32_t value);
void json_u64(struct json *json, const char *name, uint64_t value);
void json_s64(struct json *json, const char *name, int64_t value);
/* Writes a number with one decimal. */
void json_rate(struct json *json, const char *name, double value);
/* Writes @nr 64-bit numbers as an array. */
void json_counts(struct json *json, const char *name, const __u64 *counts,
		 size_t nr);

/* Writes a time twice: NAME_ns is in nanoseconds, NAME in RFC 3339, in UTC with nine
 * decimals. NAME is null on clocks without dates, and for never.
 */
void json_time(struct json *json, const char *name, uint64_t ns,
	       uint32_t clock_id);
/* Writes both as null, for an unknown time. */
void json_no_time(struct json *json, const char *name);

#endif /* TOOLS_JSON_H */
