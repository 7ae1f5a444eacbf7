/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Digits, and single characters, at the front of a text. Pure.
 *
 * Each function moves *text behind what it has read.
 */
#ifndef TOOLS_DIGITS_H
#define TOOLS_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

bool is_digit(char c);

/* Reads @c, or returns false. */
bool read_char(const char **text, char c);

/* Reads all digits; false if there is none, or the number does not fit. */
bool read_number(const char **text, uint64_t *number);

/* Reads exactly @digits of them. */
bool read_fixed(const char **text, int digits, int *number);

/* Reads the decimals behind a point: one to nine, as nanoseconds of a second. */
bool read_decimals(const char **text, uint32_t *nsec);

/* Moves behind blanks and tabs. */
void skip_blanks(const char **text);

#endif /* TOOLS_DIGITS_H */
