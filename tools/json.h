/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * JSON objects on the standard output, one a line.
 *
 * A number that can have 64 bits is a string of decimal digits: jq 1.6 and
 * JavaScript round numbers above 2^53. Numbers of 32 bits are numbers.
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

/* Begin an object; end it, and its line. */
void json_begin(struct json *json);
void json_end(struct json *json);

/* Write one member. Bytes of @text that are not ASCII become U+FFFD; NULL
 * becomes null.
 */
void json_text(struct json *json, const char *name, const char *text);
void json_bool(struct json *json, const char *name, bool value);
void json_u32(struct json *json, const char *name, uint32_t value);
void json_u64(struct json *json, const char *name, uint64_t value);
void json_s64(struct json *json, const char *name, int64_t value);
/* Write a number with one decimal. */
void json_rate(struct json *json, const char *name, double value);
/* Write @nr numbers of 64 bits as an array. */
void json_counts(struct json *json, const char *name, const __u64 *counts,
		 size_t nr);

/* Write NAME_ns, and as NAME the same time in RFC 3339, in UTC and with nine
 * decimals. NAME is null on clocks that know no dates, and for never.
 */
void json_time(struct json *json, const char *name, uint64_t ns,
	       uint32_t clock_id);
/* Write both as null: the time is not known. */
void json_no_time(struct json *json, const char *name);

#endif /* TOOLS_JSON_H */
