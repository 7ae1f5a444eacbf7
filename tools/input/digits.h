/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the parsers: digits and single characters at the beginning of a text, and
 * refusals. Pure.
 *
 * Functions with **text advance *text past the characters that they read.
 */
#ifndef TOOLS_DIGITS_H
#define TOOLS_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Phrases for *why. */
extern const char expect_decimals[];
extern const char too_far[];

/* Sets *why, and returns -EINVAL. */
int refuse(const char **why, const char *text);

bool is_digit(char c);

/* Reads @c, or returns false. */
bool read_char(const char **text, char c);

/* Reads all digits. Returns false without a digit or on overflow. */
bool read_number(const char **text, uint64_t *number);

/* Reads exactly @digits digits. */
bool read_fixed(const char **text, int digits, int *number);

/* Reads one to nine decimals of a second, as nanoseconds. */
bool read_decimals(const char **text, uint32_t *nsec);

/* Returns the length of the word at the beginning of @text: its letters, and bytes
 * above 0x7f, which may be the letter mu in UTF-8.
 */
size_t word_length(const char *text);

/* Skips blanks and tabs. */
void skip_blanks(const char **text);

#endif /* TOOLS_DIGITS_H */
