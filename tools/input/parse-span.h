/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing of time spans as in systemd.time(7): 5min, 2h 30min. Pure.
 *
 * Each function returns 0. On failure it returns -EINVAL, sets *why to a constant
 * phrase with the expected format, and leaves the result unchanged.
 */
#ifndef TOOLS_PARSE_SPAN_H
#define TOOLS_PARSE_SPAN_H

#include <stdint.h>

/* Parses one or more of NUMBER[.FRACTION]UNIT, with or without blanks. Truncates to
 * nanoseconds. Every number needs one of these units:
 *
 * nsec ns			usec us µs		msec ms
 * seconds second sec s		minutes minute min m	hours hour hr h
 * days day d			weeks week w
 * months month M (30.4375 days)			years year y (365.25 days)
 */
int parse_duration(const char *text, uint64_t *ns, const char **why);

/* Parses a span of whole milliseconds, from 1 to 2^32 - 1. */
int parse_period(const char *text, uint32_t *ms, const char **why);

#endif /* TOOLS_PARSE_SPAN_H */
