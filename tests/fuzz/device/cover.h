/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Coverage of the module by a program, through KCOV. */
#ifndef FUZZ_DEVICE_COVER_H
#define FUZZ_DEVICE_COVER_H

#include <stdbool.h>
#include <stdint.h>

/* Opens KCOV; returns whether the kernel has it. */
bool cover_init(void);

/* Called by each thread before its first program. */
void cover_thread(unsigned int thread);

void cover_begin(void);

/**
 * cover_end - get the program's coverage since cover_begin()
 * @marks: room for COVER_MARKS_MAX edges, each once; or NULL
 * @nr: how many
 *
 * Returns how many of them no earlier program reached.
 */
unsigned int cover_end(uint32_t *marks, unsigned int *nr);

#define COVER_EDGES	(1U << 18)
#define COVER_MARKS_MAX	16384

unsigned int cover_edges(void);
unsigned int cover_pcs(void);

/* Prints the places seen, from the start of the module's code, a line each. */
void cover_save(const char *path);

#endif /* FUZZ_DEVICE_COVER_H */
