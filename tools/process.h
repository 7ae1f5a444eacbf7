/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes of this machine.
 */
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROCESS_TEXT	64	/* bytes for any name */

/* Writes a process's own name, with '?' for characters other than printable ASCII.
 * Returns whether the name is known.
 */
bool process_name(char *text, uint32_t pid);

#endif /* TOOLS_PROCESS_H */
