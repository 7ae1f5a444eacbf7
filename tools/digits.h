/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parsing of digits and single characters at the beginning of a text. Pure.
 *
 * Each function advances *text past the characters that it read.
 */
#ifndef TOOLS_DIGITS_H
#define TOOLS_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

bool is_digit(char c);

/* Reads @c, or returns false. */
bool read_char(const char **text, char c);

/* Reads all digits. Returns false without a digit or on overflow. */
bool read_number(const char **text, uint64_t *number);

/* Reads exactly @digits digits. */
bool read_fixed(const char **text, int digits, int *number);

/* Reads one to nine decimals of a second, as nanoseconds. */
bool read_decimals(const char **text, uint32_t *nsec);

/* Skips blanks and tabs. */
void skip_blanks(const char **text);

#endif /* TOOLS_DIGITS_H */
