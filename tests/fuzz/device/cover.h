/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What of the module a program went through, by KCOV.
 */
#ifndef FUZZ_DEVICE_COVER_H
#define FUZZ_DEVICE_COVER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the kernel has KCOV; from here on it can be asked. */
bool cover_init(void);

/* Each thread calls this before its first program. */
void cover_thread(unsigned int thread);

void cover_begin(void);

/**
 * cover_end - what the program did since cover_begin()
 * @marks: room for COVER_MARKS_MAX, the edges it went along, each once; or NULL
 * @nr: how many
 *
 * Returns how many of them no program went along before.
 */
unsigned int cover_end(uint32_t *marks, unsigned int *nr);

#define COVER_EDGES	(1U << 18)
#define COVER_MARKS_MAX	16384

unsigned int cover_edges(void);
unsigned int cover_pcs(void);

/* The places seen, from the start of the module's code, a line each. */
void cover_save(const char *path);

#endif /* FUZZ_DEVICE_COVER_H */
