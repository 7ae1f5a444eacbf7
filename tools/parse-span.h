/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Spans of time as people and systemd.time(7) write them: 5min, 2h 30min. Pure.
 *
 * Each function returns 0, or -EINVAL with *why saying in a constant phrase what
 * was expected; the result is untouched then.
 */
#ifndef TOOLS_PARSE_SPAN_H
#define TOOLS_PARSE_SPAN_H

#include <stdint.h>

/* Parses one or more of NUMBER[.FRACTION]UNIT, with or without blanks. Cuts off
 * what is smaller than a nanosecond. A number needs a unit; the units are
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
