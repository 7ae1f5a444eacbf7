/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes of this machine.
 */
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_TEXT	64	/* bytes that hold any name */

/* Writes what a process calls itself, with '?' for what is no printable ASCII.
 * Returns whether it is known.
 */
bool process_name(char *text, uint32_t pid);

#endif /* TOOLS_PROCESS_H */
