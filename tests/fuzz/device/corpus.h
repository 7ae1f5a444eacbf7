/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The programs worth keeping: each reached an edge that none before it did. */
#ifndef FUZZ_DEVICE_CORPUS_H
#define FUZZ_DEVICE_CORPUS_H

#include <stdbool.h>

#include "program.h"

#define CORPUS_MAX	8192
#define NAME_SIZE	13

/**
 * struct input - a program as bytes
 * @size: of them
 * @marks: its edges, if recorded
 * @nr_marks: how many
 */
struct input {
	uint16_t size;
	uint8_t data[PROGRAM_MAX];
	uint32_t *marks;
	unsigned int nr_marks;
};

extern struct input *corpus[CORPUS_MAX];
extern unsigned int corpus_nr;

struct input *corpus_add(const void *data, size_t size);

/* Reads all files of a directory; returns how many. */
unsigned int corpus_load(const char *dir);

/* Returns the file name of a program: a hash of its content. */
void corpus_name(char name[NAME_SIZE], const void *data, size_t size);

/* Writes it under that name; returns whether that succeeded. */
bool corpus_save(const char *dir, const void *data, size_t size);

/* Copies to @dir the fewest that cover every edge covered, at most @most. */
void corpus_cover(const char *dir, unsigned int most);

/* Makes another program from the existing ones. @prng: of the random numbers
 */
size_t corpus_mutate(void *data, uint32_t *prng);

#endif /* FUZZ_DEVICE_CORPUS_H */
