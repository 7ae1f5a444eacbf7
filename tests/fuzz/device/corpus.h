/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The programs worth keeping: each went somewhere that none before it did.
 */
#ifndef FUZZ_DEVICE_CORPUS_H
#define FUZZ_DEVICE_CORPUS_H

#include <stdbool.h>

#include "program.h"

#define CORPUS_MAX	8192
#define NAME_SIZE	13

/**
 * struct input - a program as bytes
 * @size: of them
 * @marks: the edges it goes along, where somebody wanted to know
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

/* All files of a directory; returns how many. */
unsigned int corpus_load(const char *dir);

/* What a file of it is called: made of its content. */
void corpus_name(char name[NAME_SIZE], const void *data, size_t size);

/* Under that name; returns whether that went well. */
bool corpus_save(const char *dir, const void *data, size_t size);

/* To @dir, as few as go along every edge that one of them went, @most. */
void corpus_cover(const char *dir, unsigned int most);

/* Another program, made from what is there. @state: of chance */
size_t corpus_mutate(void *data, uint32_t *state);

#endif /* FUZZ_DEVICE_CORPUS_H */
