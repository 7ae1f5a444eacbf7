/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the seeds of a fuzz target from the text file that tests/fuzz/pack writes. */
#ifndef TESTS_FUZZ_SEEDS_H
#define TESTS_FUZZ_SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SEED_MAX	4096

/**
 * struct seed - one line of the file
 * @name: ends with a 0
 * @size: bytes in @data
 */
struct seed {
	char name[64];
	uint8_t data[SEED_MAX];
	size_t size;
};

/* Returns how many lines the file has, and goes back to its start. */
static inline unsigned int seeds_count(FILE *file)
{
	unsigned int nr = 0;
	int c;

	while ((c = getc(file)) != EOF)
		nr += c == '\n';
	rewind(file);
	return nr;
}

/* Returns the value of a hexadecimal digit, or -1. */
static inline int seeds_digit(int c)
{
	const char *digits = "0123456789abcdef";
	const char *digit = c > 0 ? strchr(digits, c) : NULL;

	return digit ? digit - digits : -1;
}

/* Reads the next line. Returns whether it was a name and at least one byte. */
static inline bool seeds_next(FILE *file, struct seed *seed)
{
	int high, low, next;

	seed->size = 0;
	if (fscanf(file, "%63s", seed->name) != 1 || getc(file) != ' ')
		return false;
	while (seed->size < SEED_MAX) {
		high = seeds_digit(getc(file));
		low = seeds_digit(getc(file));
		if (high < 0 || low < 0)
			return false;
		seed->data[seed->size++] = high << 4 | low;
		next = getc(file);
		if (next == '\n')
			return true;
		ungetc(next, file);
	}
	return false;
}

#endif /* TESTS_FUZZ_SEEDS_H */
