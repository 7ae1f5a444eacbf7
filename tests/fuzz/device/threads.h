/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Running a program: its threads, and their end. */
#ifndef FUZZ_DEVICE_THREADS_H
#define FUZZ_DEVICE_THREADS_H

#include <stddef.h>

#include "program.h"

/**
 * threads_start - once for the process
 * @hello: called by each thread before its first program, by its number; or NULL
 */
void threads_start(void (*hello)(unsigned int thread));

/* Runs a program; everything is closed afterwards. */
void program_run(const void *data, size_t size);

#endif /* FUZZ_DEVICE_THREADS_H */
